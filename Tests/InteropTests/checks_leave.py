"""Graceful leaves and failure detection (sections 8 to 10)."""

import signal

from check import check


@check()
def python_leaves_and_muster_sees_it(t):
    python = t.start_peer()
    muster = t.start_muster(knows=[python])
    t.linked(python, muster)
    python.send("quit")
    left = muster.wait("member.left", member=python.id)
    t.expect(left["reason"] == "left", f"expected the reason left, saw {left['reason']}")
    down = muster.wait("link.down", member=python.id)
    t.expect(down["reason"] == "left", f"expected link.down because left, saw {down['reason']}")
    code = python.ended(10)
    t.expect(code == 0, f"expected exit code 0 of Python, saw {code}")


@check()
def muster_leaves_and_python_sees_it(t):
    python = t.start_peer()
    muster = t.start_muster(knows=[python])
    t.linked(python, muster)
    muster.send("quit")
    left = python.wait("member.left", member=muster.id)
    t.expect(left["reason"] == "left", f"expected the reason left, saw {left['reason']}")
    down = python.wait("link.down", member=muster.id)
    t.expect(down["reason"] == "left", f"expected link.down because left, saw {down['reason']}")


@check()
def a_member_that_vanishes_is_missed(t):
    """One node of each implementation crashes, and both of the others detect it."""
    python = t.start_peer()
    muster = t.start_muster(knows=[python])
    lost_python = t.start_peer(name="lost", knows=[python, muster])
    lost_muster = t.start_muster(name="berta", knows=[python, muster, lost_python])
    t.linked(python, muster, lost_python, lost_muster)
    for victim in (lost_python, lost_muster):
        victim.signal(signal.SIGKILL)
    for victim in (lost_python, lost_muster):
        for watcher in (python, muster):
            left = watcher.wait("member.left", member=victim.id)
            t.expect(left["reason"] == "crashed",
                     f"{watcher.name}: expected the reason crashed, saw {left['reason']}")

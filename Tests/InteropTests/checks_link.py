"""Discovery and handshakes, in both roles (sections 5 to 7)."""

from check import check
from context import address, has_ipv6


@check(gate=True)
def python_begins_the_handshake(t):
    """muster announces itself to Python, which finds it there and begins the handshake."""
    python = t.start_peer()
    muster = t.start_muster(knows=[python])
    done = python.wait("handshake", member=muster.id)
    t.expect(done["role"] == "initiator", f"expected to be the initiator, saw {done}")
    t.linked(python, muster)


@check(gate=True)
def python_answers_the_handshake(t):
    muster = t.start_muster()
    python = t.start_peer(knows=[muster])
    done = python.wait("handshake", member=muster.id)
    t.expect(done["role"] == "responder", f"expected to be the responder, saw {done}")
    t.linked(python, muster)
    seen = python.wait("seen", member=muster.id)
    t.expect(seen["address"] == address(python),
             f"expected to be seen at {address(python)}, saw {seen['address']}")


@check()
def both_begin_the_handshake_at_once(t):
    """Both know each other's address: muster is given a port on which Python listens afterwards."""
    probe = t.start_peer(name="before")
    free = address(probe)
    probe.send("quit")
    probe.ended(10)
    muster = t.start_muster(knows=[free])
    python = t.start_peer(knows=[muster], listen=[free])
    t.linked(python, muster)
    up = [event for event in muster.all("link.up") if event["member"] == python.id]
    t.expect(len(up) == 1, f"expected one link.up of muster, saw {len(up)}")


@check(gate=True)
def muster_comes_again_with_a_cookie(t):
    """Python answers no initiation without a cookie (section 6, "Cookies")."""
    muster = t.start_muster()
    python = t.start_peer("--demand-cookies", knows=[muster])
    done = python.wait("handshake", member=muster.id)
    t.expect(done["role"] == "responder", f"expected to be the responder, saw {done}")
    t.linked(python, muster)


@check()
def they_find_each_other_on_the_local_network(t):
    python = t.start_peer("--lan", listen=["0.0.0.0:0", *(["[::]:0"] if has_ipv6() else [])])
    # On loopback only: the port of discovery is shared with whatever else runs here.
    muster = t.node("anna", call=False, video="none", audio="none")
    t.linked(python, muster)


@check(gate=True)
def they_meet_at_a_rendezvous(t):
    """muster serves as the rendezvous of a channel that it is not in."""
    server = t.start_muster("--offer-rendezvous", name="server", channels=[t.channel + "-other"])
    through = ("--rendezvous", address(server))
    muster = t.start_muster(*through)
    python = t.start_peer(*through)
    seen = python.wait("rendezvous")
    t.expect(seen["seenAt"] == address(python),
             f"expected to be seen at {address(python)}, saw {seen['seenAt']}")
    t.linked(python, muster)

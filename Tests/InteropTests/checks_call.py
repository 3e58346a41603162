"""Calls: start, join, leave (section 10)."""

from check import check


@check(gate=True)
def python_joins_a_call_of_muster(t):
    muster = t.start_muster(call=True)
    started = muster.wait("call.started")
    python = t.start_peer(knows=[muster], call=True)
    seen = python.wait("call.started", call=started["call"])
    t.expect(seen["initiator"] == muster.id,
             f"expected the initiator {muster.id}, saw {seen['initiator']}")
    joined = muster.wait("call.joined", member=python.id)
    both = sorted([muster.id, python.id])
    t.expect(joined["participants"] == both,
             f"expected the participants {both}, saw {joined['participants']}")


@check()
def muster_joins_a_call_of_python(t):
    python = t.start_peer(call=True)
    started = python.wait("call.started")
    muster = t.start_muster(knows=[python])
    seen = muster.wait("call.started", call=started["call"])
    t.expect(seen["initiator"] == python.id,
             f"expected the initiator {python.id}, saw {seen['initiator']}")
    muster.send("join-call")
    muster.wait("call.state", state="connected")
    python.wait("call.joined", member=muster.id)


@check()
def a_call_goes_on_when_python_leaves_it(t):
    muster = t.start_muster(call=True)
    python = t.start_peer(knows=[muster], call=True)
    muster.wait("call.joined", member=python.id)
    python.send("leave-call")
    left = muster.wait("call.left", member=python.id)
    t.expect(left["reason"] == "left", f"expected the reason left, saw {left['reason']}")
    t.expect(not muster.all("call.ended"), "expected the call to go on, saw call.ended")
    t.expect(not muster.all("member.left"), "expected Python in the roster, saw member.left")
    python.send("join-call")
    muster.wait("call.joined", since=left["at"], member=python.id)


@check()
def a_call_ends_when_its_initiator_leaves_it(t):
    """Once with muster and once with Python as the initiator."""
    muster = t.start_muster(call=True)
    first = muster.wait("call.started")
    python = t.start_peer(knows=[muster], call=True)
    muster.wait("call.joined", member=python.id)
    muster.send("leave-call")
    python.wait("call.ended", call=first["call"])
    python.send("start-call")
    second = muster.wait("call.started", initiator=python.id)
    t.expect(second["call"] != first["call"], "expected another call, saw the first one again")
    muster.send("join-call")
    python.wait("call.joined", member=muster.id, call=second["call"])
    python.send("leave-call")
    muster.wait("call.ended", call=second["call"])


@check()
def a_call_is_handed_over(t):
    """Once from muster to Python and once back."""
    muster = t.start_muster(call=True)
    call = muster.wait("call.started")["call"]
    python = t.start_peer(knows=[muster], call=True)
    muster.wait("call.joined", member=python.id)
    sent = muster.send("leave-call", handOver=True)
    for one in (muster, python):
        one.wait("call.handed-over", 5, since=sent, call=call, initiator=python.id)
    muster.send("join-call")
    python.wait("call.joined", since=sent, member=muster.id)
    sent = python.send("leave-call", handOver=True)
    for one in (muster, python):
        one.wait("call.handed-over", 5, since=sent, call=call, initiator=muster.id)


@check(gate=True)
def two_calls_become_one(t):
    """When two calls merge, the earlier one continues and the members of the other join it."""
    python = t.start_peer(call=True)
    muster = t.start_muster(call=True)
    calls = {one.wait("call.started")["call"] for one in (python, muster)}
    t.expect(len(calls) == 2, f"expected two calls before the two meet, saw {calls}")
    # It knows both, and through it they find each other's entries.
    t.start_peer(name="bridge", knows=[python, muster])
    both = sorted([python.id, muster.id])
    joined = {one.wait("call.joined", where=lambda event: event["participants"] == both)["call"]
              for one in (python, muster)}
    t.expect(len(joined) == 1 and joined <= calls, f"expected one of {calls}, saw {joined}")

"""Merging of two calls that become known to each other: the established one stays."""

import time

from check import check
from meeting import AWAY, rendezvous, through

# Seconds. A call that two members have been in together for ten seconds displaces any younger one.
LASTING = 12
# A node that hears nobody starts a call after one second on a LAN, and after five beyond it.
STARTS_WITHIN = 20
MOVES_WITHIN = 20
STAYS = 3


@check(needs="namespaces", measures=True)
def a_newcomer_that_hears_late_of_a_call_joins_it(t):
    lan = t.lan(3, faulty=True)
    lan.split([0, 1], [2])
    old = _lasting_call(t, lan.hosts)
    newcomer = t.node("cilla", host=lan.hosts[2])
    _newcomers_move_over(t, old, [newcomer], lan.join)


@check(needs="namespaces", measures=True)
def a_newcomer_that_meets_the_others_late_through_a_rendezvous_joins_their_call(t):
    internet = t.internet(delay=AWAY)
    public = internet.host("public")
    rendezvous(t, public)
    homes = [internet.home("preserving") for _ in range(3)]
    ways = [(homes[2], other) for other in (public, homes[0], homes[1])]
    for way in ways:
        internet.cut(*way)
    old = _lasting_call(t, [home.hosts[0] for home in homes], *through(public))
    newcomer = t.node("cilla", *through(public), host=homes[2].hosts[0])
    _newcomers_move_over(t, old, [newcomer], lambda: [internet.mend(*way) for way in ways])


@check(needs="namespaces", measures=True)
def two_newcomers_that_met_each_other_first_join_the_call_of_the_others(t):
    lan = t.lan(4, faulty=True)
    lan.split([0, 1], [2, 3])
    old = _lasting_call(t, lan.hosts)
    new = [t.node(name, host=host) for name, host in zip(("cilla", "dora"), lan.hosts[2:])]
    t.meet(*new)
    _newcomers_move_over(t, old, new, lan.join)


@check(needs="namespaces", measures=True)
def two_lasting_calls_become_one(t):
    lan = t.lan(4, faulty=True)
    lan.split([0, 1], [2, 3])
    nodes = [t.node(f"node{host.number}", host=host) for host in lan.hosts]
    t.meet(*nodes[:2])
    t.meet(*nodes[2:])
    t.pause(LASTING)
    mended = time.monotonic()
    lan.join()
    t.meet(*(nodes[0], nodes[2]), since=mended)
    t.meet(*(nodes[1], nodes[3]), since=mended)
    ends = [[event["reason"] for event in node.all("call.ended")] for node in nodes]
    t.expect(sorted(ends) == [[], [], ["merged"], ["merged"]], f"calls ended: {ends}")
    t.expect(ends[0] == ends[1] and ends[2] == ends[3], f"a pair was parted: {ends}")
    _share_a_call(t, nodes)


@check(needs="namespaces", measures=True)
def ten_nodes_that_start_together_make_one_call(t):
    lan = t.lan(10)
    nodes = [t.node(f"node{host.number}", host=host, video="none") for host in lan.hosts]
    for node in nodes:
        node.wait("call.joined", MOVES_WITHIN, where=lambda event: len(event["participants"]) == 10)
    t.pause(STAYS)
    _share_a_call(t, nodes)
    t.figure("calls that ended", sum(len(node.all("call.ended")) for node in nodes), at_most=0)


def _lasting_call(t, hosts, *more):
    """Two nodes that have been in one call for a while. The second never starts one of its own,
    however late it hears of the first."""
    anna = t.node("anna", *more, host=hosts[0])
    berta = t.node("berta", *more, host=hosts[1], call=False)
    berta.wait("call.started", STARTS_WITHIN)
    berta.send("join-call")
    t.meet(anna, berta)
    t.pause(LASTING)
    return [anna, berta]


def _newcomers_move_over(t, old, new, mend):
    """The newcomers are in a call of their own; then everyone hears of everyone."""
    call = old[0].all("call.started")[-1]
    own = [node.wait("call.started", STARTS_WITHIN) for node in new]
    t.require(own[0]["call"] != call["call"], "the newcomer knew of the call")
    mended = time.monotonic()
    mend()
    for node, before in zip(new, own):
        ended = node.wait("call.ended", MOVES_WITHIN, mended, call=before["call"])
        t.expect(ended["reason"] == "merged", f"its call ended because {ended['reason']}")
        started = node.wait("call.started", MOVES_WITHIN, mended, call=call["call"])
        t.expect(started["initiator"] == call["initiator"], "the newcomer leads the call")
    for node in old:
        for one in new:
            node.wait("call.joined", MOVES_WITHIN, mended, member=one.id)
    t.meet(*old, *new)
    _share_a_call(t, [*old, *new])
    for node in new:
        left = node.send("leave-call")
        for other in old:
            other.wait("call.left", MOVES_WITHIN, left, member=node.id)
    t.pause(STAYS)
    for node in old:
        t.expect(not node.all("call.ended"), f"{node.name}: {node.all('call.ended')}")
        t.expect(len(node.all("call.started")) == 1, f"{node.name} saw several calls")
    t.video_grows(*old)


def _share_a_call(t, nodes):
    calls = {(event["call"], event["initiator"])
             for event in (node.all("call.started")[-1] for node in nodes)}
    t.figure("calls", len(calls), at_most=1)

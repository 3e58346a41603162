"""Failure detection: crashes, suspended nodes, and no effect on others."""

import signal
import time

from check import check
from checks_mesh import call_of, crowd, wait_for_rosters


@check(needs="namespaces", measures=True)
def a_killed_node_is_gone_within_five_seconds_and_nobody_freezes(t):
    lan = t.lan(5)
    nodes = [t.node(f"node{number + 1}", host=lan.hosts[number], video="test:320x180@10")
             for number in range(5)]
    t.meet(*nodes)
    t.pause(1)
    initiator = nodes[0].all("call.started")[-1]["initiator"]
    plain = next(node for node in nodes if node.id != initiator)
    leader = next(node for node in nodes if node.id == initiator)
    rest = [node for node in nodes if node not in (plain, leader)]
    before = {node.name: freezes(node, rest) for node in rest}
    for victim, others in ((plain, [leader, *rest]), (leader, rest)):
        killed = victim.signal(signal.SIGKILL)
        gone = max(node.wait("member.left", 10, killed, member=victim.id)["at"] for node in others)
        t.figure(f"{'initiator' if victim is leader else 'participant'} gone",
                 gone - killed, "s", at_most=5)
    # The call is handed over after the grace time, to a single participant.
    handed = [node.wait("call.handed-over", 20, killed) for node in rest]
    t.figure("handed over", max(event["at"] for event in handed) - killed, "s", at_most=17)
    t.expect(len({event["initiator"] for event in handed}) == 1, "handed over to several")
    t.expect({event["call"] for event in handed} == {call_of(node) for node in rest},
             "another call")
    t.pause(1)
    for node in rest:
        t.expect(freezes(node, rest) == before[node.name], f"{node.name}: pictures froze")


@check(needs="namespaces", measures=True)
def half_of_the_nodes_may_crash_at_once(t):
    lan = t.lan(6)
    nodes = [t.node(f"node{number + 1}", host=lan.hosts[number], video="test:160x90@10")
             for number in range(6)]
    t.meet(*nodes)
    t.pause(1)
    initiator = nodes[0].all("call.started")[-1]["initiator"]
    lost = sorted(nodes, key=lambda node: node.id != initiator)[:3]
    rest = [node for node in nodes if node not in lost]
    before = {node.name: freezes(node, rest) for node in rest}
    for victim in lost:
        killed = victim.signal(signal.SIGKILL)
    gone = max(node.wait("member.left", 10, killed, member=victim.id)["at"]
               for node in rest for victim in lost)
    t.figure("half are gone", gone - killed, "s", at_most=5)
    handed = [node.wait("call.handed-over", 20, killed) for node in rest]
    t.expect(len({event["initiator"] for event in handed}) == 1, "handed over to several")
    t.pause(1)
    for node in rest:
        t.expect(freezes(node, rest) == before[node.name], f"{node.name}: pictures froze")


@check(needs="namespaces", measures=True)
def nobody_is_ejected_for_loss(t):
    lan = t.lan(5, faulty=True)
    for host in lan.hosts:
        host.impair_both_directions(loss=5.2)  # up and down: 10 % from host to host
    nodes = crowd(t, 5, lan, call=False)
    wait_for_rosters(t, nodes)
    since = time.monotonic()
    length = 600 if t.is_long else 20
    t.pause(length)
    gone = [event for node in nodes for event in node.all("member.left", since)]
    t.figure("ejected", len(gone), f"in {length} s", at_most=0)
    # A crash is still detected, and a graceful leave is seen at once.
    killed = nodes[4].signal(signal.SIGKILL)
    gone = max(node.wait("member.left", 10, killed, member=nodes[4].id)["at"] for node in nodes[:4])
    t.figure("a crash is seen by all", gone - killed, "s", at_most=5)
    sent = nodes[3].send("quit")
    gone = max(node.wait("member.left", 5, sent, member=nodes[3].id)["at"] for node in nodes[:3])
    t.figure("a clean leave is seen by all", gone - sent, "s", at_most=1)


def freezes(node, others):
    reported = node.wait("stats", 5, time.monotonic())
    ids = {other.id for other in others}
    return sum(peer["in"]["freezes"] for peer in reported["peers"]
               if peer["in"] and peer["member"] in ids)


@check(needs="namespaces", measures=True)
def a_suspended_node_returns_without_disturbing_anyone(t):
    lan = t.lan(3)
    nodes = [t.node(f"node{number + 1}", host=lan.hosts[number], video="test:320x180@10")
             for number in range(3)]
    t.meet(*nodes)
    sleeper, rest = nodes[2], nodes[:2]
    t.pause(1)
    for seconds in (3, 8, 60) if t.is_long else (3, 8):
        before = {node.name: freezes(node, rest) for node in rest}
        stopped = sleeper.signal(signal.SIGSTOP)
        t.pause(seconds)
        woken = sleeper.signal(signal.SIGCONT)
        t.figure(f"pictures again after {seconds} s of sleep",
                 t.video_continues(*nodes, since=woken, within=12), "s", at_most=10)
        left = [event for node in rest for event in node.all("member.left", stopped)]
        if seconds <= 3:
            t.expect(not left, "a short sleep was taken for a crash")
        for node in rest:
            t.expect(freezes(node, rest) == before[node.name], f"{node.name}: pictures froze")
        calls = {call_of(node) for node in nodes}
        t.expect(len(calls) == 1 and None not in calls, f"not one call: {calls}")

"""The mesh: rosters, calls and messages that stay consistent on many nodes under faults."""

import json
import os
import random
import signal
import statistics
import subprocess
import time

from check import check

# Seventeen members on two cores: no media, only the mesh.
QUIET = {"video": "none", "audio": "none"}


def crowd(t, count, lan=None, *more, **options):
    """`count` members of one channel without media, each on a host of its own if there is a LAN."""
    hosts = lan.hosts if lan else [None] * count
    return [
        t.node(f"node{number + 1}", *more, host=hosts[number], **{**QUIET, **options})
        for number in range(count)]


def wait_for_rosters(t, nodes, limit=20.0):
    """Waits until all rosters are complete; returns when the last one was."""
    last = 0.0
    for one in nodes:
        for other in nodes:
            if one is not other:
                last = max(last, one.wait("member.joined", limit, member=other.id)["at"])
    return last


def call_of(node):
    """A node's current call, from its events; None if there is none."""
    call = None
    for event in list(node.events):
        if event["event"] in ("call.started", "call.handed-over"):
            call = event["call"]
        elif event["event"] == "call.ended" and event["call"] == call:
            call = None
    return call


def wait_for_one_call(t, nodes, limit, since):
    """Waits until all nodes are in the same call; returns the time since `since`."""
    end = time.monotonic() + limit
    while time.monotonic() < end:
        calls = {call_of(node) for node in nodes}
        if len(calls) == 1 and None not in calls:
            changes = [event["at"] for node in nodes for event in list(node.events)
                       if event["event"] in ("call.started", "call.ended") and event["at"] > since]
            return max(changes, default=since) - since
        time.sleep(0.01)
    t.require(False, f"calls differ after {limit:g} s: {[call_of(node) for node in nodes]}")


@check(needs="namespaces", measures=True)
def seventeen_nodes_agree_on_roster_metadata_and_call(t):
    lan = t.lan(17)
    nodes = crowd(t, 17, lan, call=False)
    last_start = max(node.ready()["at"] for node in nodes)
    t.figure("rosters equal", max(wait_for_rosters(t, nodes) - last_start, 0.0),
             "s after the last start", at_most=2)
    t.pause(2)

    delays = []
    for number in range(30 if t.is_long else 10):
        author = nodes[number % len(nodes)]
        sent = author.send("mute" if number < len(nodes) else "unmute", media="audio")
        for other in nodes:
            if other is not author:
                heard = other.wait("member.updated", 5, sent, member=author.id)
                delays.append(heard["at"] - sent)
        t.pause(0.1)
    delays.sort()
    t.figure("a change is everywhere: median", statistics.median(delays), "s", at_most=0.1)
    t.figure("p99", delays[int(len(delays) * 0.99)], "s", at_most=0.5)

    sent = nodes[3].send("start-call")
    seen = max(node.wait("call.started", 5, sent)["at"] for node in nodes)
    t.figure("a call is seen by all", seen - sent, "s", at_most=0.3)
    started = [node.all("call.started")[-1] for node in nodes]
    t.expect(len({event["call"] for event in started}) == 1, "calls differ")
    t.expect({event["initiator"] for event in started} == {nodes[3].id}, "initiators differ")

    sent = nodes[5].send("quit")
    gone = max(node.wait("member.left", 5, sent, member=nodes[5].id)["at"]
               for node in nodes if node is not nodes[5])
    t.figure("a clean leave is seen by all", gone - sent, "s", at_most=1)


@check(needs="namespaces", measures=True)
def concurrent_starts_settle_on_one_call(t):
    lan = t.lan(5)
    nodes = crowd(t, 5, lan, call=False)
    wait_for_rosters(t, nodes)
    rounds = 50 if t.is_long else 10
    times = []
    for _ in range(rounds):
        sent = time.monotonic()
        for node in nodes:
            node.send("start-call")
        # All nodes are in one call.
        times.append(wait_for_one_call(t, nodes, 5, sent))
        t.pause(0.2)
        calls = {call_of(node) for node in nodes}
        t.require(len(calls) == 1 and None not in calls, f"not one call: {calls}")
        initiators = {node.all("call.started")[-1]["initiator"] for node in nodes}
        t.require(len(initiators) == 1, f"not one initiator: {initiators}")
        starter = next(node for node in nodes if node.id in initiators)
        sent = starter.send("leave-call")
        for node in nodes:
            node.wait("call.ended", 5, sent)
    t.figure("rounds", rounds)
    t.figure("one call after, at most", max(times), "s", at_most=2)


@check(needs="namespaces", measures=True)
def a_healed_partition_has_one_call(t):
    lan = t.lan(6, faulty=True)
    nodes = crowd(t, 6, lan, call=False)
    wait_for_rosters(t, nodes)
    rounds = 20 if t.is_long else 2
    times = []
    for _ in range(rounds):
        cut = time.monotonic()
        lan.split([0, 1, 2], [3, 4, 5])
        for one in nodes[:3]:
            for other in nodes[3:]:
                one.wait("member.left", 10, cut, member=other.id)
                other.wait("member.left", 10, cut, member=one.id)
        sent = nodes[0].send("start-call")
        nodes[3].send("start-call")
        for node in nodes:
            node.wait("call.started", 5, sent)
        t.expect(call_of(nodes[0]) != call_of(nodes[3]), "one call in spite of the cut")
        healed = time.monotonic()
        lan.join()
        times.append(wait_for_one_call(t, nodes, 20, healed))
        wait_for_rosters_again(t, nodes, healed)
        # The initiator's leave ends the call for all.
        initiator = nodes[0].all("call.started")[-1]["initiator"]
        leader = next((node for node in nodes if node.id == initiator), nodes[0])
        ended = leader.send("leave-call")
        for node in nodes:
            node.wait("call.ended", 5, ended)
    t.figure("rounds", rounds)
    t.figure("one call after healing, at most", max(times), "s", at_most=2)


def wait_for_rosters_again(t, nodes, since, limit=20.0):
    end = time.monotonic() + limit
    ids = {node.id for node in nodes}
    while time.monotonic() < end:
        if all({member for _, member in node.roster()} == ids - {node.id} for node in nodes):
            return time.monotonic() - since
        time.sleep(0.02)
    t.require(False, "rosters differ")


@check(needs="namespaces", measures=True)
def a_chain_of_links_converges(t):
    lan = t.lan(5, faulty=True)
    lan.chain()
    nodes = crowd(t, 5, lan, call=False)
    start = max(node.ready()["at"] for node in nodes)
    t.figure("rosters equal", max(wait_for_rosters(t, nodes) - start, 0.0), "s", at_most=5)
    sent = nodes[0].send("start-call")
    seen = nodes[4].wait("call.started", 5, sent)
    t.figure("four links away a call is seen", seen["at"] - sent, "s", at_most=1)
    t.expect(seen["initiator"] == nodes[0].id, "another initiator")
    sent = nodes[4].send("say", text="from the far end")
    heard = nodes[0].wait("message", 5, sent, text="from the far end")
    t.figure("a message arrives", heard["at"] - sent, "s", at_most=1)
    # The middle node crashes: both halves detect it.
    cut = nodes[2].signal(signal.SIGKILL)
    gone = max(nodes[0].wait("member.left", 10, cut, member=nodes[4].id)["at"],
               nodes[4].wait("member.left", 10, cut, member=nodes[0].id)["at"])
    t.figure("two halves after", gone - cut, "s", at_most=5.5)


@check(needs="namespaces", measures=True)
def seventeen_idle_members_cost_little(t):
    lan = t.lan(17)
    nodes = crowd(t, 17, lan, call=False)
    wait_for_rosters(t, nodes)
    t.pause(5)
    length = 30 if t.is_long else 10
    host = lan.hosts[8]
    before = (traffic(host), ticks(nodes[8]))
    t.pause(length)
    after = (traffic(host), ticks(nodes[8]))
    bits = (after[0] - before[0]) * 8 / length
    t.figure("traffic per link, both ways", bits / 16 / 1000, "kbit/s", at_most=4)
    t.figure("of it per node", bits / 1000, "kbit/s")
    cpu = (after[1] - before[1]) / os.sysconf("SC_CLK_TCK") / length
    t.figure("of a core", cpu * 100, "%", at_most=1)


def traffic(host):
    shown = subprocess.run(["ip", "-n", host.namespace, "-s", "-j", "link", "show", "eth0"],
                           capture_output=True, check=True).stdout
    counted = json.loads(shown)[0]["stats64"]
    return counted["rx"]["bytes"] + counted["tx"]["bytes"]


def ticks(node):
    with open(f"/proc/{node.process.pid}/stat", encoding="ascii") as stat:
        fields = stat.read().rsplit(")", 1)[1].split()
    return int(fields[11]) + int(fields[12])


@check(needs="namespaces", measures=True)
def messages_survive_loss_and_restarts(t):
    lan = t.lan(4, faulty=True)
    for host in lan.hosts:
        host.impair_both_directions(loss=10.6)  # up and down: 20 % from host to host
    nodes = crowd(t, 4, lan, call=False)
    wait_for_rosters(t, nodes)
    total, restarts = (1000, 10) if t.is_long else (120, 3)
    generator = random.Random(7)
    said, seen = [], [[] for _ in nodes]
    every = total // restarts

    def gather(place):
        seen[place] += [event["text"] for event in nodes[place].all("message")]

    for number in range(total):
        author = nodes[number % 3]
        text = f"message {number}"
        author.send("say", text=text)
        said.append(text)
        if generator.random() < 0.2:
            t.pause(0.02)
        if number % every == every - 1:
            # The node that only reads is killed and restarted.
            place = 3
            nodes[place].signal(signal.SIGKILL)
            nodes[place].ended(5)
            gather(place)
            nodes[place] = t.node("node4", host=lan.hosts[3], call=False, **QUIET)
            nodes[place].ready()
    end = time.monotonic() + 120
    while time.monotonic() < end:
        counts = [len(node.all("message")) + len(seen[place])
                  for place, node in enumerate(nodes)]
        if min(counts) >= total:
            break
        time.sleep(0.2)
    t.pause(1)
    for place, node in enumerate(nodes):
        gather(place)
        t.figure(f"{node.name} has", len(seen[place]), "messages",
                 at_least=total, at_most=total)
        t.expect(sorted(seen[place]) == sorted(said), f"{node.name}: lost or doubled")
        for author in range(3):
            own = [text for text in seen[place] if int(text.split()[1]) % 3 == author]
            t.expect(own == sorted(own, key=lambda text: int(text.split()[1])),
                     f"{node.name}: cause after effect")


@check()
def a_message_waits_for_who_is_away(t):
    anna = t.node("anna", call=False, **QUIET)
    # As under systemd, where standard output goes to the journal.
    journal = ("exec 9>&1; export JOURNAL_STREAM=$(stat -L -c %d:%i /proc/self/fd/9); "
               "exec \"$@\" 9>&-")
    berta = t.node("berta", call=False, wrap=["sh", "-c", journal, "sh"], **QUIET)
    carl = t.node("carl", call=False, **QUIET)
    wait_for_rosters(t, [anna, berta, carl])
    carl_id, anna_id = carl.id, anna.id
    carl.send("quit")
    anna.wait("member.left", 5, member=carl_id)
    carl.ended(5)
    anna.send("say", text="to all")
    anna.send("say", text="only to carl", to=carl_id)
    anna.send("say", text="only to berta", to=berta.id)
    anna.send("say", text="to all again")
    berta.wait("message", 5, text="to all again")
    t.expect(not berta.all("message", text="only to berta"), "the journal has what is berta's")
    t.pause(0.5)
    anna.send("quit")
    berta.wait("member.left", 5, member=anna_id)
    again = t.node("carl", call=False, **QUIET)
    again.wait("message", 20, text="to all")
    direct = again.wait("message", 20, text="only to carl")
    t.expect(direct["to"] == carl_id and direct["from"] == anna_id, "direct: from or to")
    t.pause(0.5)
    t.expect(not berta.all("message", text="only to carl"), "berta reads what is carl's")
    t.expect(len(again.all("message")) == 3, "doubled")

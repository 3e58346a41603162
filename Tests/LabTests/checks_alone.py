"""Why somebody is alone: a hint, once, with what to do."""

import shutil

from check import check
from checks_rights import data
from nat import nft, reason_against_nat

LIMIT = 60


def _hints(node):
    return [one["message"] for one in node.all("warning") if "alone in" in one["message"]]


@check()
def a_peer_that_nobody_is_at_becomes_a_hint(t):
    lost = t.node("lost", "--peer", "no-such-host.invalid:4711", "--no-lan")
    waits = t.node("waits", "--peer", "127.0.0.1:9", "--no-lan")
    lost.wait("warning", LIMIT, where=lambda one: "no-such-host.invalid" in one["message"])
    told = waits.wait("warning", LIMIT, where=lambda one: "nobody answers" in one["message"])
    t.expect("127.0.0.1:9" in told["message"] and "firewall" in told["hint"], told)
    t.pause(12)
    t.expect(len(_hints(waits)) == 1, f"once: {_hints(waits)}")
    names = [one for one in lost.all("warning") if "no address" in one["message"]]
    t.expect(len(names) == 1, f"once: {names}")


@check(needs="namespaces")
def a_typo_in_the_passphrase_becomes_a_hint(t):
    lan = t.lan(2)
    nodes = [t.node(name, host=host, passphrase=t.passphrase + typo)
             for name, host, typo in zip(("anna", "berta"), lan.hosts, ("", "x"))]
    for node, other in zip(nodes, reversed(lan.hosts)):
        told = node.wait("warning", LIMIT, where=lambda one: "alone in" in one["message"])
        is_named = any(one in told["message"] for one in (other.address, other.address6))
        t.expect(is_named and "passphrase" in told["hint"], told)
    t.pause(12)
    for node in nodes:
        t.expect(len(_hints(node)) == 1, f"once: {_hints(node)}")


@check(needs="namespaces")
def a_firewall_becomes_a_hint_at_both_ends(t):
    if reason_against_nat():
        t.skip(reason_against_nat())
    lan = t.lan(2)
    behind, open_one = lan.hosts
    nft(behind.namespace, "table inet lan { chain in { type filter hook input priority 0;"
                          " ct state established accept; meta l4proto udp drop; }; }")
    deaf = t.node("deaf", host=behind)
    hears = t.node("hears", host=open_one)
    told = hears.wait("warning", LIMIT, where=lambda one: "does not answer" in one["message"])
    is_named = any(one in told["message"] for one in (behind.address, behind.address6))
    t.expect(is_named and "firewall" in told["hint"], told)
    told = deaf.wait("warning", LIMIT, where=lambda one: "nobody is heard" in one["message"])
    t.expect("firewall" in told["hint"] and "access point" in told["hint"], told)


@check(needs="namespaces")
def an_identity_on_two_machines_is_named_at_all(t):
    """Two copies of one data directory, and a third member that sees them take turns."""
    lan = t.lan(3)
    copied = t.node("anna", host=lan.hosts[0])
    copied.ready()
    copied.send("quit")
    copied.ended(LIMIT)
    shutil.copytree(data(t, "anna"), data(t, "copy"))
    third = t.node("carl", host=lan.hosts[2])
    third.ready()
    twins = [t.node("anna", host=lan.hosts[0]),
             t.node("anna", host=lan.hosts[1], data=data(t, "copy"))]
    for twin, other in zip(twins, reversed(lan.hosts[:2])):
        told = twin.wait("warning", LIMIT, where=lambda one: "second time" in one["message"])
        t.expect(other.address in told["message"] and "--data" in told["hint"], told)
    third.wait("warning", LIMIT, where=lambda one: "anna runs twice" in one["message"])


@check(needs="namespaces")
def a_restart_is_no_second_machine(t):
    lan = t.lan(2)
    stays = t.node("berta", host=lan.hosts[1])
    for _ in range(4):
        anna = t.node("anna", host=lan.hosts[0])
        stays.wait("member.joined", LIMIT, since=anna.started_at)
        anna.process.kill()
        anna.ended(LIMIT)
    for node in t.nodes:
        told = [one for one in node.all("warning") if "second time" in one["message"]
                or "runs twice" in one["message"]]
        t.expect(not told, f"{node.name}: {told}")

"""Degraded hosts and networks."""

import os
import signal

from check import check
from nat import nft, reason_against_nat
from netns import ip


@check(needs="namespaces", measures=True)
def hosts_with_one_address_family_meet(t):
    lan = t.lan(2)
    for host in lan.hosts:
        ip("addr", "flush", "dev", "eth0", "scope", "global", namespace=host.namespace)
    nodes = _pair_on(t, lan)
    t.meet(*nodes)
    address = nodes[0].wait("link.up")["address"]
    t.expect(address.startswith("["), f"linked over {address}")
    t.figure("link-local IPv6", address)
    for node in nodes:
        node.send("quit")
        node.ended(3)
    for host in lan.hosts:
        path = "/proc/sys/net/ipv6/conf/all/disable_ipv6"
        _in(host, f"echo 1 > {path}")
        ip("addr", "add", f"{host.address}/24", "dev", "eth0", namespace=host.namespace)
    nodes = _pair_on(t, lan)
    t.meet(*nodes)
    address = nodes[0].wait("link.up")["address"]
    t.expect(address.startswith("10.77.0."), f"linked over {address}")
    t.figure("IPv4", address)


@check(needs="namespaces", measures=True)
def each_way_of_announcing_is_enough(t):
    """The other ways are dropped at the hosts, as access points and containers do."""
    if reason_against_nat():
        t.skip(reason_against_nat())
    groups = {"IPv4 multicast": "ip daddr 224.0.0.0/4", "IPv4 broadcast": "ip daddr 10.77.0.255",
              "IPv6 multicast": "ip6 daddr ff00::/8 udp dport 47474"}
    lan = t.lan(2)
    for way in groups:
        dropped = "; ".join(f"{to} drop" for other, to in groups.items() if other != way)
        for host in lan.hosts:
            nft(host.namespace, "flush ruleset; table inet lan { chain out {"
                                f" type filter hook output priority 0; {dropped}; }}; }}")
            # What most hosts have, and what addresses given by hand lack.
            brd = ["broadcast", "10.77.0.255"] if way != "IPv4 broadcast" else []
            ip("addr", "flush", "dev", "eth0", "scope", "global", namespace=host.namespace)
            ip("addr", "add", f"{host.address}/24", *brd, "dev", "eth0", namespace=host.namespace)
        nodes = _pair_on(t, lan)
        linked = nodes[1].wait("link.up")
        # A bridge learns of an IPv6 group a second after it is joined.
        t.figure(way, linked["at"] - nodes[1].ready()["at"], "s", at_most=4)
        for node in nodes:
            node.send("quit")
            node.ended(3)


@check(needs="namespaces", measures=True)
def an_interface_that_comes_later_is_used(t):
    lan = t.lan(2)
    late = lan.hosts[1]
    ip("link", "set", "eth0", "down", namespace=late.namespace)
    nodes = _pair_on(t, lan)
    for node in nodes:
        node.ready()
    t.pause(1)
    at = t.now()
    ip("link", "set", "eth0", "up", namespace=late.namespace)
    t.figure("pictures", t.meet(*nodes) - at, "s after the cable", at_most=7)


@check(needs="namespaces", measures=True)
def a_node_without_any_route_for_a_while_comes_back(t):
    lan = t.lan(2)
    nodes = _pair_on(t, lan)
    t.meet(*nodes)
    lost = lan.hosts[1].namespace
    ip("link", "set", "eth0", "down", namespace=lost)
    nodes[0].wait("member.left", 10)
    ip("link", "set", "eth0", "up", namespace=lost)
    t.figure("pictures", t.video_continues(*nodes), "s later")


@check(needs="namespaces", measures=True)
def after_an_outage_the_picture_is_back_with_the_sound(t):
    lan = t.lan(2, faulty=True)
    first, second = (
        t.node(name, audio="tone", speaker="none", record=True, host=host)
        for name, host in zip(("anna", "berta"), lan.hosts))
    t.meet(first, second)
    t.pause(10)
    cut = t.now()
    lan.split([0], [1])
    for node, other in ((first, second), (second, first)):
        left = node.wait("call.left", 10, cut, member=other.id)
        t.expect(left["reason"] == "crashed", f"{left}")
    t.pause(8)
    lan.join()
    healed = t.now()
    for node, other in ((first, second), (second, first)):
        back = node.wait("call.joined", 10, healed, member=other.id)["at"]
        whole = node.wait("layer", 5, healed, member=other.id, direction="in",
                          where=lambda event: event["to"].endswith("@15"))
        t.figure("picture after the member", whole["at"] - back, "s", at_most=2)
        t.expect(whole["why"] == "call-started", f"{whole}")
        seen = node.wait("stats", 10, back + 5)["at"]
        silent = back - cut
        # The call began a moment before the pause of ten seconds.
        most, least = 100 * silent / (seen - cut + 10), 100 * silent / (seen - cut + 14)
        lost = [peer["in"]["audioLostPercent"] for peer in node.all("stats")[-1]["peers"]][0]
        t.figure("audio lost", lost, "%")
        t.expect(least - 3 <= lost <= most + 3, f"{lost} is not within {least} to {most}")


def _pair_on(t, lan):
    return t.node("anna", host=lan.hosts[0]), t.node("berta", host=lan.hosts[1])


def _in(host, command):
    """Runs a shell command in a host's namespace; ip(8) also mounts its /sys."""
    status = os.system(f"ip netns exec {host.namespace} sh -c '{command}'")
    if status != 0:
        raise OSError(f"{command}: {status}")


@check(needs="namespaces", measures=True)
def a_full_disk_ends_the_recording_and_not_the_call(t):
    first = t.node("anna", video="test:640x360@30")
    first.ready()
    small = os.path.join(t.folder, "small")
    os.mkdir(small)
    # In a separate mount namespace, which ends with the process.
    wrap = ["unshare", "--mount", "sh", "-c",
            f"mount -t tmpfs -o size=200k none {small} && exec \"$@\"", "sh"]
    second = t.node("berta", "--record", os.path.join(small, "record"), wrap=wrap)
    t.meet(first, second)
    warning = second.wait("warning", limit=15, where=lambda event: "record" in event["message"])
    t.expect(warning["hint"], "it does not say what to do")
    t.figure("said", repr(warning["message"]))
    t.figure("pictures go on within", t.video_continues(first, second), "s")
    second.send("quit")
    t.figure("exit code", second.ended(3), at_most=0)


@check(measures=True)
def a_reader_that_never_reads_costs_nobody_a_frame(t):
    first, second = t.pair()
    third = t.node("cilla")
    t.meet(first, second, third)
    ids = {"second": second.id}
    second.stop_reading()
    # Far more events than a pipe of 4 KiB holds.
    for _ in range(60):
        third.send("mute", media="audio")
        third.send("unmute", media="audio")
        t.pause(0.02)
    t.pause(1)
    before = first.peer_statistics(second)
    t.pause(1)
    after = first.peer_statistics(second)
    rate = (after["in"]["frames"] - before["in"]["frames"]) / (after["at"] - before["at"])
    t.figure("frames of it meanwhile", rate, "a second", at_least=13)
    at = second.signal(signal.SIGINT)
    left = first.wait("member.left", since=at, member=ids["second"], limit=5)
    t.figure("leave seen", left["at"] - at, "s", at_most=1)
    second.ended(5)
    t.figure("gone", second.exited_at - at, "s", at_most=1.2)


@check()
def secrets_come_from_the_environment_and_files_too(t):
    key = os.path.join(t.folder, "key")
    with open(key, "w", encoding="ascii") as file:
        file.write("5a" * 32 + "\n")
    first = t.node("anna")
    second = t.node("berta", passphrase=False, environment={"MUSTER_PASSPHRASE": t.passphrase})
    t.meet(first, second)
    t.expect(not second.all("warning"), f"it warns: {second.all('warning')[:1]}")
    pair = [t.node(name, "--key-file", key, passphrase=False) for name in ("cilla", "dora")]
    t.meet(*pair)
    opened = [t.node(name, passphrase=False) for name in ("emil", "franz")]
    t.meet(*opened)
    warnings = opened[0].all("warning")
    t.expect(any("anyone" in event["message"] for event in warnings), "no warning of an open name")
    for node in t.nodes:
        t.expect(len(node.roster()) == 1, f"{node.name}'s roster: {node.roster()}")

"""DNS-SD: nodes with the option find each other; others publish nothing."""

import re
import time

from check import check
from dnssd import Avahi, SilentBus, Zeroconf, python_with_zeroconf, reason_against_avahi

_MDNS_PORT = 5353
# RFC 6763 section 6.1: a length byte, then the string.
_TEXT = b"\x03v=1".hex()
_QUIET = {"video": "none", "audio": "none"}


@check(needs="namespaces", measures=True)
def zeroconf_finds_nodes_until_they_leave_and_learns_nothing_else(t):
    lan = _lan(t, 2)
    avahi = _avahi(t, lan.hosts[0])
    avahi.start()
    seeker = _zeroconf(t, lan.hosts[1])
    capture = t.capture(lan.hosts[1])
    nodes = []
    for name in ("anna-of-the-hill", "berta-by-the-sea"):
        node = t.node(name, "--dns-sd", "--no-lan", host=lan.hosts[0],
                      environment=avahi.environment, **_QUIET)
        ready = node.ready()
        found = seeker.wait("found", port=node.port)
        t.figure("found", found["at"] - ready["at"], "s after it was ready", at_most=3)
        t.expect(lan.hosts[0].address in found["addresses"], f"found at {found['addresses']}")
        t.expect(found["text"] == _TEXT, f"the text says {bytes.fromhex(found['text'])}")
        nodes.append((node, found["service"]))
    labels = [service.split(".")[0] for _, service in nodes]
    t.expect(all(re.fullmatch("[0-9a-f]{16}", label) for label in labels), f"named {labels}")
    t.expect(labels[0] != labels[1], "two processes have one name")
    nodes[0][0].wait("link.up", 5, member=nodes[1][0].id)
    for node, service in nodes:
        left = node.send("quit")
        node.ended(3)
        gone = seeker.wait("gone", since=left, service=service)
        t.figure("gone", gone["at"] - left, "s after it quit", at_most=1)
    t.pause(0.3)
    capture.stop()
    reported = [one.payload for one in capture.datagrams if one.target_port == _MDNS_PORT]
    t.figure("captured", len(reported), "datagrams of multicast DNS", at_least=4)
    everything = b"\n".join(reported)
    t.require(labels[0].encode() in everything, "the capture is blind")
    secrets = [t.channel, t.passphrase, *(node.name for node, _ in nodes)]
    secrets += [node.id for node, _ in nodes]
    found = [secret for secret in secrets if secret.encode() in everything]
    t.expect(not found, f"multicast DNS tells {found}")


@check(needs="namespaces", measures=True)
def a_service_of_zeroconf_leads_to_the_node_that_is_there(t):
    lan = _lan(t, 3)
    avahi = _avahi(t, lan.hosts[0])
    avahi.start()
    first = t.node("anna", "--dns-sd", "--no-lan", host=lan.hosts[0],
                   environment=avahi.environment)
    second = t.node("berta", "--no-lan", host=lan.hosts[1])
    first.ready()
    second.ready()
    t.pause(1.5)
    t.expect(not first.all("link.up"), "they linked without discovering each other")
    teller = _zeroconf(t, lan.hosts[2])
    reported = t.now()
    teller.register("whoever-it-is", lan.hosts[1].address, second.port)
    up = first.wait("link.up", 10, since=reported, member=second.id)
    t.figure("linked", up["at"] - reported, "s after the service was registered", at_most=4)
    t.meet(first, second, since=reported)
    teller.close()
    # A service that disappears takes a candidate address with it, but no link.
    t.video_continues(first, second)
    for node in (first, second):
        t.expect(b"whoever" not in node.raw, f"{node.name} shows a stranger's words")


@check(needs="namespaces", measures=True)
def a_missing_daemon_is_reported_and_used_once_it_runs(t):
    lan = _lan(t, 2)
    avahi = _avahi(t, lan.hosts[0])
    first = t.node("anna", "--dns-sd", host=lan.hosts[0], environment=avahi.environment)
    second = t.node("berta", host=lan.hosts[1])
    warning = first.wait("warning", 5, where=_is_ours)
    t.expect("avahi-daemon" in warning["hint"], f"the hint is {warning['hint']}")
    t.meet(first, second)
    # By then the node has retried.
    t.pause(5.5)
    t.expect(len(_warnings(first)) == 1, f"warned {len(_warnings(first))} times")
    seeker = _zeroconf(t, lan.hosts[1])
    _comes(t, avahi, seeker, first, "it came")
    t.expect(len(_warnings(first)) == 1, "warned although it runs")
    killed = t.now()
    avahi.kill()
    first.wait("warning", 5, since=killed, where=_is_ours)
    _comes(t, avahi, seeker, first, "it came back")
    t.video_continues(first, second)
    t.expect(not first.all("link.down"), "the link went down")


@check(needs="namespaces", measures=True)
def without_the_flag_no_bus_is_used_and_nothing_published(t):
    lan = t.lan(2)
    bus = SilentBus()
    t.later(bus.close)
    captures = [t.capture(host) for host in lan.hosts]
    first, second = [t.node(name, host=host, environment=bus.environment)
                     for name, host in zip(("anna", "berta"), lan.hosts)]
    t.meet(first, second)
    t.pause(3)
    for node in (first, second):
        node.send("quit")
        node.ended(3)
    t.expect(bus.callers == 0, f"D-Bus was called {bus.callers} times")
    for capture in captures:
        capture.stop()
        reported = [one for one in capture.datagrams
                if _MDNS_PORT in (one.source_port, one.target_port)]
        t.expect(not reported, f"such as {reported[:2]}")
    # The connection attempt is visible, and a bus that never answers does not delay leaving.
    asking = t.node("carl", "--dns-sd", host=lan.hosts[0], environment=bus.environment, **_QUIET)
    asking.ready()
    t.pause(1)
    t.expect(bus.callers > 0, "a node with the flag does not call D-Bus")
    left = asking.send("quit")
    asking.ended(5)
    t.figure("left a bus that does not answer", time.monotonic() - left, "s", at_most=1.5)


def _comes(t, avahi, seeker, node, what):
    started = t.now()
    avahi.start()
    found = seeker.wait("found", 15, since=started, port=node.port)
    # The node checks every 5 s, and publishing takes a second.
    t.figure("found", found["at"] - started, f"s after {what}", at_most=9)


def _is_ours(event):
    return "DNS-SD" in event["message"]


def _warnings(node):
    return [event for event in node.all("warning") if _is_ours(event)]


def _lan(t, count):
    reason = reason_against_avahi()
    if reason:
        t.skip(reason)
    if python_with_zeroconf() is None:
        t.skip("no python-zeroconf")
    return t.lan(count)


def _avahi(t, host):
    avahi = Avahi(host)
    t.later(avahi.close)
    return avahi


def _zeroconf(t, host):
    zeroconf = Zeroconf(host)
    t.later(zeroconf.close)
    return zeroconf

"""Outsiders learn nothing, get no answer and cause no harm."""

import random
import socket
import time

from capture import BROADCAST, MULTICAST, TO_US, Forger
from check import check
from netns import inside
from wire import DATA, judge_wire

# The protocol's discovery port.
DISCOVERY_PORT = 47_474


@check(needs="namespaces", gate=True)
def another_passphrase_is_never_seen_and_never_answered(t):
    lan = t.lan(3, faulty=True)
    first = t.node("anna", host=lan.hosts[0])
    second = t.node("berta", host=lan.hosts[1])
    t.meet(first, second)
    capture = t.capture(lan.hosts[2])
    addresses = [f"{node.host.address}:{node.port}" for node in (first, second)]
    peers = [part for address in addresses for part in ("--peer", address)]
    stranger = t.node("mallory", *peers, host=lan.hosts[2], passphrase="another one")
    stranger.ready()

    def asked():
        return [one for one in capture.datagrams if one.kind != TO_US
                and one.source == lan.hosts[2].address and one.is_to_one]

    t.until(lambda: len(asked()) >= 4, "the stranger asks four times")
    t.pause(6 if t.is_long else 1)
    capture.stop()
    answers = [one for one in capture.datagrams if one.kind == TO_US]
    t.figure("the stranger asked", len(asked()), "times")
    heard = [one for one in capture.datagrams if one.kind in (BROADCAST, MULTICAST)]
    t.figure("heard", len(heard), "announces", at_least=1)
    t.figure("answers", len(answers), at_most=0)
    t.expect(not answers, f"such as {answers[:2]}")
    for node in (first, second):
        strange = [event for event in node.events if event.get("member") == stranger.id]
        t.expect(not strange, f"{node.name} knows the stranger: {strange[:1]}")
        t.expect(len(node.roster()) == 1, f"{node.name}'s roster: {node.roster()}")
    t.expect(not stranger.roster(), f"the stranger's roster: {stranger.roster()}")


@check(needs="namespaces", measures=True)
def replays_from_another_address_get_no_answer(t):
    lan = t.lan(3, faulty=True)
    captures = [t.capture(host) for host in lan.hosts[:2]]
    first = t.node("anna", host=lan.hosts[0])
    first.ready()
    second = t.node("berta", host=lan.hosts[1])
    t.meet(first, second)
    t.pause(2)
    for capture in captures:
        capture.stop()
    seen = {one.payload for capture in captures for one in capture.datagrams if one.payload}
    kinds = sorted({payload[0] for payload in seen})
    listener = t.capture(lan.hosts[2])
    received = _received(lan.hosts[0]) + _received(lan.hosts[1])
    targets = list(_targets(first, second))
    with inside(lan.hosts[2].namespace):
        sockets = {family: socket.socket(family, socket.SOCK_DGRAM)
                   for family in (socket.AF_INET, socket.AF_INET6)}
    for payload in sorted(seen, key=lambda payload: (payload[0], payload)):
        for address in targets:
            family = socket.AF_INET6 if ":" in address[0] else socket.AF_INET
            _send(sockets[family], payload, address)
        time.sleep(0.0005)
    t.pause(2)
    listener.stop()
    for one in sockets.values():
        one.close()
    received = _received(lan.hosts[0]) + _received(lan.hosts[1]) - received
    t.figure("received", received, at_least=len(seen) * len(targets))
    answers = [one for one in listener.datagrams if one.kind == TO_US]
    t.figure("replayed", len(seen), f"datagrams of kinds {[f'{kind:02x}' for kind in kinds]}")
    t.expect({0x01, 0x10, 0x11, DATA} <= set(kinds), "not every kind was captured")
    t.figure("answers", len(answers), at_most=0)
    t.expect(not answers, f"such as {answers[:2]}")
    _expect_untouched(t, first, second)


@check(needs="namespaces", measures=True)
def junk_changes_nothing_in_a_running_call(t):
    count = 100_000 if t.is_long else 10_000
    lan = t.lan(3, faulty=True)
    captures = [t.capture(host) for host in lan.hosts[:2]]
    first = t.node("anna", host=lan.hosts[0])
    first.ready()
    second = t.node("berta", host=lan.hosts[1])
    t.meet(first, second)
    t.pause(1.5)
    for capture in captures:
        capture.stop()
    # As received by each host, so that a forged source address is plausible.
    received = [(node, one) for node, capture in zip((first, second), captures)
                for one in capture.datagrams if one.kind == TO_US and one.payload]
    t.require(len(received) > 50, f"only {len(received)} datagrams were captured")
    listener = t.capture(lan.hosts[2])
    before = [first.peer_statistics(second), second.peer_statistics(first)]
    arrived = _received(lan.hosts[0]) + _received(lan.hosts[1])
    started = time.monotonic()
    _attack(t, lan.hosts[2], received, count, first, second)
    taken = time.monotonic() - started
    t.pause(1)
    after = [first.peer_statistics(second), second.peer_statistics(first)]
    listener.stop()
    arrived = _received(lan.hosts[0]) + _received(lan.hosts[1]) - arrived
    t.figure("sent", 4 * count, f"datagrams in {taken:.0f} s")
    t.figure("received", arrived, at_least=4 * count)
    for one, other in zip(before, after):
        span = other["at"] - one["at"]
        rate = (other["in"]["frames"] - one["in"]["frames"]) / span
        t.figure("meanwhile", rate, "frames/s of 15", at_least=13.5)
        t.figure("memory grew", other["node"]["rssMB"] - one["node"]["rssMB"], "MB", at_most=20)
    answers = [one for one in listener.datagrams if one.kind == TO_US]
    t.figure("answers", len(answers), at_most=0)
    t.expect(not answers, f"such as {answers[:2]}")
    _expect_untouched(t, first, second)


def _attack(t, host, received, count, *nodes):
    """`count` each of replayed, altered, truncated and random datagrams: one half from the
    attacker's address, the other from the member's that sent the captured one."""
    chance = random.Random(20)
    forger = Forger(host)
    t.later(forger.close)
    with inside(host.namespace):
        own = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    t.later(own.close)
    # Paced, because datagrams that a full queue drops would test nothing.
    rate = 6000
    started = time.monotonic()
    for index in range(count):
        node, like = received[chance.randrange(len(received))]
        altered = bytearray(like.payload)
        altered[chance.randrange(len(altered))] ^= 1 << chance.randrange(8)
        # Random datagrams start with a valid kind; others are rejected at the first byte.
        noise = bytes([chance.choice((0x01, 0x02, 0x10, 0x11, 0x12, DATA, chance.randrange(256)))])
        noise += chance.randbytes(chance.randrange(1200))
        for payload in (like.payload, bytes(altered),
                        like.payload[:chance.randrange(len(like.payload))], noise):
            if index % 2:
                forger.send(node.host.mac, like, payload)
            else:
                _send(own, payload, (node.host.address, node.port))
        early = started + 4 * index / rate - time.monotonic()
        if early > 0:
            time.sleep(early)


def _send(sender, payload, address):
    try:
        sender.sendto(payload, address)
    except OSError:
        pass  # no socket on this address family


def _received(host):
    """Datagrams that sockets of this host have received, of both families."""
    with inside(host.namespace):
        with open("/proc/thread-self/net/snmp", encoding="ascii") as file:
            rows = [line.split() for line in file if line.startswith("Udp:")]
        with open("/proc/thread-self/net/snmp6", encoding="ascii") as file:
            six = [int(line.split()[1]) for line in file if line.startswith("Udp6InDatagrams")]
    return int(rows[1][rows[0].index("InDatagrams")]) + sum(six)


def _targets(*nodes):
    for node in nodes:
        for host in (node.host.address, node.host.address6):
            yield host, node.port
            yield host, DISCOVERY_PORT


def _expect_untouched(t, first, second):
    for node, other in ((first, second), (second, first)):
        t.expect(node.is_running, f"{node.name} has ended")
        t.expect(node.roster() == {(t.channel, other.id)}, f"{node.name}'s roster changed")
        for name in ("link.down", "member.left", "call.left", "call.ended", "error"):
            t.expect(not node.all(name), f"{node.name}: {name} happened")
        t.expect(len(node.all("link.up")) == 1, f"{node.name}: the link came up again")


@check(needs="namespaces")
def the_wire_shows_no_names_channels_keys_or_media(t):
    lan = t.lan(2, faulty=True)
    capture = t.capture(lan.hosts[0])
    first = t.node("anna-of-the-hill", host=lan.hosts[0])
    first.ready()
    second = t.node("berta-by-the-sea", host=lan.hosts[1])
    t.meet(first, second)
    t.pause(4)
    second.send("mute", media="audio")
    t.pause(1)
    for node in (second, first):
        node.send("quit")
        node.ended(3)
    judge_wire(t, capture, [first, second], [(320, 180), (160, 90)],
               (lan.hosts[0], lan.hosts[1].address))

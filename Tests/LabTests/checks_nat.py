"""Members behind routers meet through a rendezvous, which they need only to meet."""

import itertools
import os
import random
import signal
import socket
import struct
import time

from check import check
from netns import inside
from rendezvous import Rendezvous

PORT = 47_400

# What nat.py's own kinds allow: a hole needs one end whose port outside is the same for everyone,
# and at the other end a port that is known or a router that lets anyone in.
PUNCHABLE = [("full", "full"), ("full", "preserving"), ("full", "random"),
             ("preserving", "preserving")]
HOPELESS = [("preserving", "random"), ("random", "random")]

# One way, in ms: without any, the first datagrams of a punch never pass each other.
AWAY = 20

# The sizes of real datagrams: of a hello, of a cookie, of a registration.
_HELLO, _LIKELY = 64, (42, 64, 350)


@check(needs="namespaces", timed=True)
def pairs_that_can_punch_are_linked_in_three_seconds(t):
    internet = t.internet(delay=AWAY)
    public = internet.host("public")
    _rendezvous(t, public)
    orders = PUNCHABLE + [pair[::-1] for pair in PUNCHABLE if pair[0] != pair[1]]
    for kinds in orders if t.is_long else PUNCHABLE:
        homes = [internet.home(kind) for kind in kinds]
        nodes = _pair(t, homes, "-".join(kinds), _through(public))
        links = _report(t, "/".join(kinds), nodes)
        # Both members announce 192.168.1.2: only the address outside can be the right one.
        for link, home in zip(links, reversed(homes)):
            t.expect(link["address"].startswith(f"{home.outside}:"), f"linked to {link['address']}")
        _quit(nodes)


@check(needs="namespaces", timed=True)
def pairs_that_cannot_punch_are_relayed(t):
    internet = t.internet(delay=AWAY)
    public = internet.host("public")
    _rendezvous(t, public)
    between = internet.host("between")
    for kinds in HOPELESS:
        mark = "-".join(kinds)
        third = t.node(f"carl-{mark}", *_through(public), host=between, video="none", audio="none",
                       channels=[f"{t.channel}-{mark}"])
        third.ready()
        homes = [internet.home(kind) for kind in kinds]
        nodes = _pair(t, homes, mark, _through(public))
        _report(t, "/".join(kinds), nodes, via=third.id)
        for one, other in (nodes, nodes[::-1]):
            told = one.peer_statistics(other)["via"]
            t.expect(told == third.id, f"{one.name}'s statistics: via {told}")
            t.expect(not one.all("link.up", member=other.id, via=None), f"{one.name}: a hole")
        _quit([*nodes, third])


@check(needs="namespaces", timed=True)
def a_relay_that_dies_is_followed_by_another_and_a_way_of_its_own_is_taken(t):
    internet = t.internet(delay=AWAY)
    public = internet.host("public")
    _rendezvous(t, public)
    third, fourth = [
        t.node(name, *_through(public), host=internet.host(name), video="none", audio="none")
        for name in ("carl", "dora")]
    third.ready()
    fourth.ready()
    homes = [internet.home("preserving") for _ in range(2)]
    internet.cut(*homes)
    nodes = [t.node(name, *_through(public), host=home.hosts[0], video="test:320x180@15")
             for name, home in zip(("anna", "berta"), homes)]
    first, second = nodes
    up = [one.wait("link.up", 10, member=other.id) for one, other in (nodes, nodes[::-1])]
    relay = next((one for one in (third, fourth) if one.id == up[0]["via"]), None)
    t.require(relay is not None, f"no relay: {up}")
    t.pictures_go_on(*nodes)

    killed = relay.signal(signal.SIGKILL)
    t.figure("pictures by another relay", t.pictures_go_on(*nodes, since=killed, within=10),
             "s after the first one died", at_most=5)
    left = [event for one in nodes for event in one.all("member.left", killed)
            if event["member"] in (first.id, second.id)]
    t.expect(not left, "they lost each other")

    internet.mend(*homes)
    mended = t.now()
    end = mended + 60
    while time.monotonic() < end:
        told = [one.peer_statistics(other)["via"] for one, other in (nodes, nodes[::-1])]
        if told == [None, None]:
            break
        time.sleep(0.2)
    t.expect(told == [None, None], f"still by way of {told}")
    t.figure("a way of its own", time.monotonic() - mended, "s after it opened", at_most=45)
    t.pictures_go_on(*nodes)
    frozen = [one.peer_statistics(other)["in"]["freezes"]
              for one, other in (nodes, nodes[::-1])]
    t.figure("freezes", sum(frozen))


@check(needs="namespaces")
def a_rendezvous_that_worked_is_remembered(t):
    internet = t.internet()
    public = internet.host("public")
    _rendezvous(t, public)
    homes = [internet.home("preserving") for _ in range(2)]
    quiet = {"video": "none", "audio": "none", "call": False}
    first = t.node("anna", *_through(public), host=homes[0].hosts[0], **quiet)
    first.ready()
    # It is looked at every ten seconds which rendezvous have answered.
    t.pause(11)
    _quit([first])
    again = t.node("anna", "--no-lan", host=homes[0].hosts[0], **quiet)
    other = t.node("berta", *_through(public), host=homes[1].hosts[0], **quiet)
    again.wait("link.up", 10, member=other.id)


@check(needs="namespaces")
def a_member_may_be_the_rendezvous(t):
    internet = t.internet()
    public = internet.host("public")
    quiet = {"video": "none", "audio": "none", "call": False}
    host = t.node("carl", "--no-lan", "--offer-rendezvous", "--listen", f"0.0.0.0:{PORT}",
                  host=public, **quiet)
    host.ready()
    homes = [internet.home("preserving") for _ in range(2)]
    others = [t.node(name, *_through(public), host=home.hosts[0], **quiet)
              for name, home in zip(("anna", "berta"), homes)]
    everyone = [host, *others]
    for one in everyone:
        for other in everyone:
            if one is not other:
                one.wait("link.up", 10, member=other.id, via=None)


@check(needs="namespaces")
def a_rendezvous_that_dies_is_missed_by_newcomers_only(t):
    internet = t.internet()
    public = internet.host("public")
    rendezvous = _rendezvous(t, public)
    homes = [internet.home("preserving") for _ in range(3)]
    nodes = _pair(t, homes[:2], "pair", _through(public))
    t.meet(*nodes)
    killed = rendezvous.signal(signal.SIGKILL)
    t.pause(10)
    for name in ("member.left", "link.down"):
        told = [event for node in nodes for event in node.all(name, since=killed)]
        t.figure(name, len(told), "in 10 s", at_most=0)
    t.figure("pictures go on within", t.pictures_go_on(*nodes), "s")
    again = _rendezvous(t, public)
    third = _member(t, "cilla", homes[2], "pair", _through(public))
    # Through the one whom it finds first, if need be: those who are there come back to the
    # rendezvous every 20 s, or later while it was dead.
    links = [third.wait("link.up", 60, member=node.id)["at"] for node in nodes]
    t.figure("a newcomer is linked", max(links) - third.ready()["at"], "s", at_most=35)
    t.meet(*nodes, third)
    again.signal(signal.SIGTERM)
    t.figure("exit code of the rendezvous", again.ended(3), at_most=0, at_least=0)


@check(needs="namespaces", timed=True)
def a_dead_rendezvous_beside_a_live_one_costs_a_second_at_most(t):
    internet = t.internet()
    live, dead = internet.host("live"), internet.host("dead")
    _rendezvous(t, live)
    homes = [internet.home("preserving") for _ in range(2)]
    for home in homes:
        # Silence is harder than the ICMP error of a port where nobody listens.
        internet.cut(home, dead)
    times = []
    for mark, hosts in (("live", [live]), ("both", [dead, live])):
        nodes = _pair(t, homes, mark, _through(*hosts))
        times.append(_after_ready(nodes, _links(nodes)))
        _quit(nodes)
    t.figure("one live: linked after", times[0], "s", at_most=3)
    t.figure("one dead besides", times[1], "s", at_most=times[0] + 1)


@check(needs="namespaces", timed=True)
def a_flood_of_guesses_costs_a_rendezvous_nothing(t):
    count = 100_000 if t.is_long else 20_000
    internet = t.internet()
    public = internet.host("public")
    rendezvous = _rendezvous(t, public)
    attacker = internet.host("attacker")
    t.pause(1)
    memory, traffic = _resident(rendezvous), _traffic(public)
    _flood(t, attacker, public, count)
    t.pause(1)
    received, got, sent = (now - then for now, then in zip(_traffic(public), traffic))
    t.figure("received", received, f"datagrams of {count}", at_least=0.95 * count)
    t.figure("sent", sent / got, "of the bytes it got", at_most=1)
    t.figure("memory grew", _resident(rendezvous) - memory, "MB", at_most=8)
    homes = [internet.home("preserving") for _ in range(2)]
    _report(t, "afterwards", _pair(t, homes, "after", _through(public)))


def _rendezvous(t, host):
    name = f"rendezvous-{len(t.nodes)}"
    made = Rendezvous(t.muster, name, f"{host.address}:{PORT}", os.path.join(t.folder, name), host)
    t.nodes.append(made)
    return made


def _through(*hosts):
    return ["--no-lan", *(part for host in hosts
                          for part in ("--rendezvous", f"{host.address}:{PORT}"))]


def _member(t, name, home, mark, more):
    node = t.node(f"{name}-{mark}", *more, host=home.hosts[0], channels=[f"{t.channel}-{mark}"])
    node.ready()
    return node


def _pair(t, homes, mark, more):
    """Two members of a channel of their own, one after the other."""
    return [_member(t, name, home, mark, more) for name, home in zip(("anna", "berta"), homes)]


def _links(nodes, via=None):
    """How each of two has the other for the first time, by this way."""
    return [one.wait("link.up", 10, member=other.id, via=via)
            for one, other in (nodes, nodes[::-1])]


def _after_ready(nodes, links):
    return max(max(link["at"] for link in links) - nodes[1].ready()["at"], 0.0)


def _report(t, what, nodes, via=None):
    """Figures of the link and of the first pictures over it; returns the links."""
    links = _links(nodes, via)
    pictures = [one.first_frame(other, 10)["at"] - link["at"]
                for one, other, link in zip(nodes, nodes[::-1], links)]
    t.figure(f"{what}: linked after", _after_ready(nodes, links), "s", at_most=3)
    t.figure("pictures", max(*pictures, 0.0), "s later", at_most=1)
    return links


def _quit(nodes):
    for node in nodes:
        node.send("quit")
    for node in nodes:
        node.ended(5)


def _flood(t, attacker, target, count):
    """Guesses of every kind a rendezvous knows, from many ports, half of them with sources that
    are made up. One in four is as long as a hello, which alone may be answered."""
    chance = random.Random(48)
    own, forging = _sockets(t, attacker)
    # Paced: what a full queue drops tests nobody.
    rate = 6000
    started = time.monotonic()
    for index in range(count):
        payload = bytes([chance.randrange(0x30, 0x34)]) + chance.randbytes(_size(chance) - 1)
        try:
            if index % 2 and forging:
                forging.sendto(_forged(chance, target, payload), (target.address, 0))
            else:
                chance.choice(own).sendto(payload, (target.address, PORT))
        except OSError:
            pass  # a full queue: seen in what was received
        early = started + index / rate - time.monotonic()
        if early > 0:
            time.sleep(early)


def _size(chance):
    return chance.choice((_HELLO, chance.choice(_LIKELY), chance.randrange(1, 1200),
                          chance.randrange(1, 1200)))


def _sockets(t, attacker):
    """Sockets on many ports, open to the end so that no answer meets an ICMP error, and a raw one
    where that is permitted."""
    with inside(attacker.namespace):
        own = [socket.socket(socket.AF_INET, socket.SOCK_DGRAM) for _ in range(100)]
        try:
            forging = socket.socket(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_RAW)
        except PermissionError:
            forging = None
            t.figure("forged sources", "not permitted")
    for one in [*own, *([forging] if forging else [])]:
        t.later(one.close)
    for one in own:
        one.bind((attacker.address, 0))
    return own, forging


def _forged(chance, target, payload):
    """A datagram in its IPv4 header; the kernel sums the header, and UDP may go without a sum."""
    source = bytes([chance.randrange(11, 127), *chance.randbytes(3)])
    udp = struct.pack("!HHHH", chance.randrange(1, 65536), PORT, 8 + len(payload), 0) + payload
    header = struct.pack("!BBHHHBBH", 0x45, 0, 20 + len(udp), 0, 0, 64, socket.IPPROTO_UDP, 0)
    return header + source + socket.inet_aton(target.address) + udp


def _traffic(host):
    """Datagrams that sockets of this host received, bytes that came, bytes that went."""
    with inside(host.namespace):
        with open("/proc/thread-self/net/snmp", encoding="ascii") as file:
            names, values = itertools.islice(
                (line.split() for line in file if line.startswith("Udp:")), 2)
        with open("/proc/thread-self/net/dev", encoding="ascii") as file:
            counted = next(line.split(":")[1].split() for line in file if "eth0:" in line)
    return int(values[names.index("InDatagrams")]), int(counted[0]), int(counted[8])


def _resident(node):
    with open(f"/proc/{node.process.pid}/status", encoding="ascii") as status:
        return next(int(line.split()[1]) for line in status if line.startswith("VmRSS:")) / 1024

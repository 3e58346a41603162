"""A rendezvous under attack: it keeps serving members, discloses nothing, and stays bounded."""

import collections
import os
import random
import signal
import socket
import struct
import subprocess
import threading
import time

from capture import TO_US
from check import check
from meeting import (
    AWAY, PORT, QUIET, after_ready, end, links, member, pair, rendezvous, report, through)
from netns import inside
from node import clean_environment
from registrar import (
    REGISTRATION, Key, Registrar, announce_like, reason_against_signing, registration)

# Bytes of a hello; and of typical datagrams: cookie, hello, registration.
_HELLO, _LIKELY = 64, (42, 64, 350)
# A rendezvous's limits: records, records of one source, and sources with tracked rates.
_RECORDS, _OF_ONE_SOURCE, _SOURCES = 4096, 64, 1024
# The benchmarking range of RFC 2544, unused on the Internet; here routed to the attacker.
_ATTACKERS = "198.18.0.0/15"


@check()
def a_rendezvous_that_says_it_is_ready_ends_cleanly(t):
    for number in (signal.SIGINT, signal.SIGTERM):
        process = subprocess.Popen(
            [t.muster, "rendezvous", "--json", "--no-port-mapping", "--listen", "127.0.0.1:0"],
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, env=clean_environment(t.folder))
        t.later(process.kill)
        process.stdout.readline()
        process.send_signal(number)
        t.expect(process.wait(60) == 0, f"exit code {process.returncode}")


@check(needs="namespaces", measures=True)
def a_flood_of_guesses_costs_a_rendezvous_nothing(t):
    count = 100_000 if t.is_long else 20_000
    internet = t.internet(delay=AWAY)
    public = internet.host("public")
    serving = rendezvous(t, public)
    attacker = internet.host("attacker")
    homes = [internet.home("preserving") for _ in range(4)]
    t.pause(1)
    capture = t.capture(public)
    memory, received = _resident(serving), _received(public)
    flood = _Flood(t, attacker, public, count)
    t.pause(1)
    report(t, "meanwhile", pair(t, homes[:2], "during", through(public)))
    flood.wait()
    t.pause(1)
    capture.stop()
    t.figure("received", _received(public) - received, f"datagrams of {count}",
             at_least=0.95 * count)
    _judge_bytes(t, capture, {home.outside for home in homes})
    t.figure("memory grew", _resident(serving) - memory, "MB", at_most=8)
    report(t, "afterwards", pair(t, homes[2:], "after", through(public)))


@check(needs="namespaces", measures=True)
def a_table_full_of_strangers_records_keeps_no_member_out(t):
    if reason := reason_against_signing():
        t.skip(reason)
    internet = t.internet(delay=AWAY)
    public = internet.host("public")
    serving = rendezvous(t, public)
    homes = [internet.home("preserving") for _ in range(4)]
    secret = os.urandom(32)
    key_file = os.path.join(t.folder, "key")
    with open(key_file, "w", encoding="ascii") as file:
        file.write(secret.hex())
    keyed = {"passphrase": False}
    more = [*through(public), "--key-file", key_file]
    # Registered before the attack, and must still be found.
    first = member(t, "anna", homes[0].hosts[0], "target", more, **keyed)
    t.pause(2)
    memory = _resident(serving)
    attacker = _attacker(t, internet, public, ports=4)
    addresses = [f"198.18.0.{number}" for number in range(1, 101)]
    t.figure("proven sources", attacker.prove(addresses), "of 400", at_least=380)
    slots = _fill(attacker, addresses)
    t.pause(1)
    t.figure("records asked for", len(slots))
    answers = attacker.answers_to(slots)
    t.figure("taken", len(answers), at_least=_RECORDS)
    t.expect(not any(answers), f"its own tags give it {sum(answers)} records of others")
    _guess_tags(t, attacker, addresses, secret)
    t.figure("memory grew", _resident(serving) - memory, "MB", at_most=8)
    with _Repeating(lambda: _fill(attacker, addresses[:20])):
        second = member(t, "berta", homes[1].hosts[0], "target", more, **keyed)
        # The flood shares the cores of this machine with the rendezvous and the members.
        report(t, "meanwhile, one there before", [first, second], linked_within=3)
        late = pair(t, homes[2:], "late", through(public))
        report(t, "meanwhile, two newcomers", late, linked_within=3)
    t.figure("memory grew in all", _resident(serving) - memory, "MB", at_most=8)


@check(needs="namespaces", measures=True)
def an_attacker_with_thousands_of_networks_keeps_no_member_out(t):
    if reason := reason_against_signing():
        t.skip(reason)
    internet = t.internet(delay=AWAY)
    public = internet.host("public")
    serving = rendezvous(t, public)
    attacker = _attacker(t, internet, public)
    memory = _resident(serving)
    # More than a rendezvous's records, each a separate source, as available to anyone who
    # rents 48 bits of an IPv6 network.
    count = _RECORDS + 100
    addresses = [f"198.19.{number // 250}.{number % 250 + 1}" for number in range(count)]
    t.figure("proven sources", attacker.prove(addresses, 30), f"of {count}", at_least=_RECORDS)
    homes = [internet.home("preserving") for _ in range(2)]
    chance = random.Random(14)

    def register_all():
        """Registers each address, in a new order every time, 1,000 per second."""
        chance.shuffle(addresses)
        for number, address in enumerate(addresses):
            attacker.register(address)
            # Cookies expire: request the next one while other addresses are registered.
            attacker.ask(address)
            if number % 20 == 19:
                time.sleep(0.02)

    with _Repeating(register_all):
        # Sources without a tracked rate share one budget.
        t.pause(1.5 * _SOURCES / 1000)
        # A single pair might succeed by chance.
        for number in range(3):
            _meet_once(t, "with no rate left", homes, f"early{number}", public)
        if t.is_long:
            t.pause(60)
            _meet_once(t, "with no place left", homes, "late", public)
    t.figure("memory grew", _resident(serving) - memory, "MB", at_most=8)


def _meet_once(t, what, homes, mark, public):
    nodes = pair(t, homes, mark, through(public), **QUIET)
    t.figure(f"{what}: linked after", after_ready(nodes, links(nodes)), "s", at_most=3)
    end(nodes)


# Accounting

def _judge_bytes(t, capture, proven):
    """No amplification: an unproven address receives no more bytes than it sent."""
    came, went = collections.Counter(), collections.Counter()
    for _, kind, frame in capture.frames:
        # Fragments included, by the length in the IPv4 header.
        if frame[12:14] != b"\x08\x00" or frame[23] != socket.IPPROTO_UDP:
            continue
        length, = struct.unpack_from("!H", frame, 16)
        source, target = socket.inet_ntoa(frame[26:30]), socket.inet_ntoa(frame[30:34])
        if kind == TO_US:
            came[source] += length
        else:
            went[target] += length
    unproven = set(came) | set(went)
    unproven -= proven
    t.figure("unproven addresses", len(unproven), at_least=1000)
    t.figure("sent them", sum(went[one] for one in unproven)
             / sum(came[one] for one in unproven), "of the bytes from them", at_most=1)
    t.figure("more than came from it to", sum(went[one] > came[one] for one in unproven),
             "of them", at_most=0)


def _received(host):
    """The number of UDP datagrams that sockets of this host have received."""
    with inside(host.namespace):
        with open("/proc/thread-self/net/snmp", encoding="ascii") as file:
            names, values = [line.split() for line in file if line.startswith("Udp:")]
    return int(values[names.index("InDatagrams")])


def _resident(node):
    with open(f"/proc/{node.process.pid}/status", encoding="ascii") as status:
        return next(int(line.split()[1]) for line in status if line.startswith("VmRSS:")) / 1024


# An attacker that follows the protocol

def _attacker(t, internet, public, ports=1):
    attacker = Registrar(internet.host("attacker"), public, PORT, [_ATTACKERS], ports)
    t.later(attacker.close)
    return attacker


def _fill(attacker, addresses):
    """Registers the maximum of records for each address; returns their slots."""
    slots = set()
    for address in addresses:
        for number in range(_OF_ONE_SOURCE):
            slots.add(attacker.register(address, number % len(attacker.ports)))
            if number % 16 == 15:
                time.sleep(0.005)
    return slots


def _guess_tags(t, attacker, addresses, secret):
    """Requests under tags whose keys the attacker does not have get no answer."""
    _, period = attacker.cookies[addresses[0], 0]
    # Filling the table has used up the burst of 64 requests per source.
    sources = [f"198.18.1.{number}" for number in range(1, 31)]
    attacker.prove(sources)
    seen = Key.of_channel(secret, period)
    forged, right = set(), set()
    for source in sources:
        for _ in range(10):
            forged.add(attacker.register(source, tag=seen.tag))
            forged.add(attacker.register(source, tag=os.urandom(32)))
        time.sleep(0.005)
    # With the key the same request is answered, so it was well-formed.
    right.add(attacker.register(sources[0], key=seen))
    # With the cookie of another address, as an off-path attacker would need.
    stolen = attacker.cookies[sources[0], 0]
    attacker.send(registration(77, *stolen, seen, announce_like()), "198.18.2.1")
    t.pause(1)
    reported = attacker.answers_to(forged | {77})
    t.figure("answers to guessed tags", len(reported), f"of {len(forged)}", at_most=0)
    found = attacker.answers_to(right)
    t.figure("records reported with the key", sum(found), at_least=1)


class _Repeating:
    """Repeats an action on a thread during the block."""

    def __init__(self, action):
        self._action = action
        self._running = True
        self._thread = threading.Thread(target=self._run, daemon=True)

    def __enter__(self):
        self._thread.start()

    def __exit__(self, *_):
        self._running = False
        self._thread.join()

    def _run(self):
        while self._running:
            self._action()
            time.sleep(0.01)


# An attacker that guesses

class _Flood:
    """Guessed datagrams of every kind, from many ports, half of them with forged sources. One in
    four is as long as a hello, which alone may be answered; one in a hundred exceeds the largest
    valid datagram.
    """

    # Per second; datagrams that a full queue drops would test nothing.
    RATE = 6000

    def __init__(self, t, attacker, target, count):
        self._chance = random.Random(48)
        self._target = target
        self._count = count
        self._own, self._forging = _sockets(t, attacker)
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def wait(self):
        self._thread.join()

    def _run(self):
        started = time.monotonic()
        for index in range(self._count):
            is_forged = index % 2 and self._forging
            payload = _guess(self._chance, is_forged)
            try:
                if is_forged:
                    self._forging.sendto(
                        _forged(self._chance, self._target, payload), (self._target.address, 0))
                else:
                    self._chance.choice(self._own).sendto(payload, (self._target.address, PORT))
            except OSError:
                pass  # a full queue: seen in what was received
            early = started + index / self.RATE - time.monotonic()
            if early > 0:
                time.sleep(early)


def _guess(chance, is_forged):
    size = chance.choice((_HELLO, chance.choice(_LIKELY), chance.randrange(1, 1200),
                          chance.randrange(1, 1200)))
    if chance.randrange(50) == 0 and not is_forged:
        size = chance.randrange(1201, 9000)
    kind = chance.randrange(0x30, 0x34)
    if chance.randrange(4) == 0:
        # Well-formed except for cookie and signature.
        return (bytes([REGISTRATION]) + chance.randbytes(24) + (time.time_ns() // 10**9 // 3600)
                .to_bytes(8, "big") + chance.randbytes(40) + b"\x01\x00\xa2"
                + announce_like() + chance.randbytes(64))
    return bytes([kind]) + chance.randbytes(size - 1)


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

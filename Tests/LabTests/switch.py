"""A learning Ethernet switch over TAP devices, with the faults of a bad network.

The kernels that these checks run on may lack netem. Run as a process of its own:

    python3 switch.py SEED NAMESPACE:INTERFACE...

It prints `ready`, then applies one JSON object per line of standard input, answering `ok`, and ends
with its input: {"port": 0, "way": "up", "delay": 20, ...}. `up` is from the host into the switch,
`down` from the switch to the host. Keys: delay and jitter (ms), loss, duplicate and reorder
(percent), burstStart and burstEnd (percent of frames with which a burst of losses begins and ends),
rate (kbit/s of IP packets, without Ethernet) with queue (ms), cut (true or false), audioFirst
(true: frames marked as audio have a queue of their own and go before others, as on Wi-Fi).
{"port": 0, "reaches": [1, 2]} lets frames of a host pass to these ports only, null to all.
{"measure": true} begins to measure what passes from each port to each other; {"report": true} is
answered with a line of JSON.
"""

import fcntl
import heapq
import json
import os
import random
import select
import struct
import sys
import time

from netns import inside

_TUNSETIFF = 0x400454CA
_IFF_TAP, _IFF_NO_PI = 0x0002, 0x1000
# What Ethernet adds to an IP packet in a frame as it is read here.
_HEADER = 14
_LONGEST = 9216
# Frames under way; a test that queues more has forgotten to limit its rate.
_CAPACITY = 20_000


class Way:
    """One direction of one host's cable."""

    def __init__(self, seed):
        self.chance = random.Random(seed)
        self.delay = self.jitter = self.loss = self.duplicate = self.reorder = 0.0
        self.burstStart, self.burstEnd = 0.0, 100.0
        self.rate = 0.0
        self.queue = 100.0
        self.cut = False
        self.audioFirst = False
        self._in_burst = False
        # By whether it is the queue of audio that goes first.
        self._free = {False: 0.0, True: 0.0}
        self._latest = {False: 0.0, True: 0.0}

    def due(self, now, frame):
        """The time that a frame waits at the bottleneck, and the departure time of each copy; no
        copy when it is lost."""
        first = self.audioFirst and is_audio(frame)
        if self.cut or self._loses_in_burst() or self._happens(self.loss):
            return 0.0, []
        start, waits = now, 0.0
        if self.rate:
            waits = max(now, self._free[first]) - now
            if waits > self.queue / 1000:
                return 0.0, []
            takes = (len(frame) - _HEADER) * 8 / (self.rate * 1000)
            start = self._free[first] = now + waits + takes
            if first:
                self._free[False] = max(now, self._free[False]) + takes
        if self._happens(self.reorder):
            return waits, [start]
        late = self.delay + (self.chance.uniform(-self.jitter, self.jitter) if self.jitter else 0)
        # Jitter keeps the order, as queues do; `reorder` breaks it.
        self._latest[first] = max(self._latest[first], start + max(0.0, late) / 1000)
        return waits, [self._latest[first]] * (2 if self._happens(self.duplicate) else 1)

    def _loses_in_burst(self):
        if self.burstStart > 0:
            turns = self.burstEnd if self._in_burst else self.burstStart
            self._in_burst ^= self._happens(turns)
        return self._in_burst

    def _happens(self, percent):
        return percent > 0 and self.chance.random() * 100 < percent


class Measurement:
    """What has passed from each port to each other since the beginning."""

    def __init__(self):
        self._since = time.monotonic()
        self._bytes = {}
        self._waits = {}

    def passed(self, source, port, length, waits):
        pair = source, port
        self._bytes[pair] = self._bytes.get(pair, 0) + length - _HEADER
        self._waits.setdefault(pair, []).append(waits)

    def report(self):
        seconds = time.monotonic() - self._since
        return [
            {"from": source, "to": port, "kbps": total * 8 / 1000 / seconds,
             "queueMsMedian": self._part(source, port, 0.5),
             "queueMsP95": self._part(source, port, 0.95)}
            for (source, port), total in sorted(self._bytes.items())]

    def _part(self, source, port, fraction):
        waits = sorted(self._waits[source, port])
        return waits[min(int(len(waits) * fraction), len(waits) - 1)] * 1000


class Switch:
    def __init__(self, seed, ports):
        self.taps = [open_tap(*port.split(":")) for port in ports]
        self.ways = [
            {way: Way(f"{seed} {index} {way}") for way in ("up", "down")}
            for index in range(len(ports))
        ]
        self.homes = {}
        self.reaches = [None] * len(ports)
        self.pending = []
        self.order = 0
        self.measurement = None

    def run(self):
        poll = select.epoll()
        poll.register(0, select.EPOLLIN)
        for tap in self.taps:
            poll.register(tap, select.EPOLLIN)
        by_descriptor = {tap: index for index, tap in enumerate(self.taps)}
        print("ready", flush=True)
        while True:
            wait = -1 if not self.pending else max(0.0, self.pending[0][0] - time.monotonic())
            for descriptor, _ in poll.poll(wait):
                if descriptor != 0:
                    self.read(by_descriptor[descriptor])
                elif not self.obey():
                    return
            self.deliver(time.monotonic())

    def obey(self):
        text = os.read(0, 65536)
        if not text:
            return False
        for line in text.splitlines():
            order = json.loads(line)
            if "measure" in order:
                self.measurement = Measurement()
                print("ok", flush=True)
                continue
            if "report" in order:
                print(json.dumps(self.measurement.report()), flush=True)
                continue
            port = order.pop("port")
            if "reaches" in order:
                self.reaches[port] = order["reaches"]
                print("ok", flush=True)
                continue
            way = self.ways[port][order.pop("way")]
            for key, value in order.items():
                if not hasattr(way, key):
                    raise KeyError(key)
                setattr(way, key, value)
            print("ok", flush=True)
        return True

    def read(self, port):
        for _ in range(64):
            try:
                frame = os.read(self.taps[port], _LONGEST)
            except OSError:
                return
            if len(frame) < 14:
                return
            now = time.monotonic()
            waits, copies = self.ways[port]["up"].due(now, frame)
            for due in copies:
                self.enter(due, port, frame, waits)

    def enter(self, now, source, frame, waited):
        if not frame[6] & 1:
            self.homes[frame[6:12]] = source
        home = None if frame[0] & 1 else self.homes.get(frame[0:6])
        for port in range(len(self.taps)) if home is None else [home]:
            if port == source or port not in (self.reaches[source] or [port]):
                continue
            waits, copies = self.ways[port]["down"].due(now, frame)
            if copies and self.measurement:
                self.measurement.passed(source, port, len(frame), waited + waits)
            for due in copies:
                if len(self.pending) < _CAPACITY:
                    self.order += 1
                    heapq.heappush(self.pending, (due, self.order, port, frame))

    def deliver(self, now):
        while self.pending and self.pending[0][0] <= now:
            _, _, port, frame = heapq.heappop(self.pending)
            try:
                os.write(self.taps[port], frame)
            except OSError:
                pass  # the host's interface is down: a cable without anybody at its end


def is_audio(frame):
    """Whether an IP packet has the code point EF (RFC 3246)."""
    if frame[12:14] == b"\x08\x00":
        return frame[15] >> 2 == 46
    return frame[12:14] == b"\x86\xdd" and (frame[14] << 8 | frame[15]) >> 6 & 63 == 46


def open_tap(namespace, interface):
    with inside(namespace):
        tap = os.open("/dev/net/tun", os.O_RDWR | os.O_NONBLOCK | os.O_CLOEXEC)
        request = struct.pack("16sH22x", interface.encode(), _IFF_TAP | _IFF_NO_PI)
        fcntl.ioctl(tap, _TUNSETIFF, request)
    return tap


if __name__ == "__main__":
    Switch(sys.argv[1], sys.argv[2:]).run()

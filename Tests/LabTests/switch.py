"""A learning Ethernet switch over TAP devices, with the faults of a bad network.

The kernels that these checks run on may lack netem. Run as a process of its own:

    python3 switch.py SEED NAMESPACE:INTERFACE...

It prints `ready`, then applies one JSON object per line of standard input, answering `ok`, and ends
with its input: {"port": 0, "way": "up", "delay": 20, ...}. `up` is from the host into the switch,
`down` from the switch to the host. Keys: delay and jitter (ms), loss, duplicate and reorder
(percent), rate (kbit/s) with queue (ms), cut (true or false). {"port": 0, "reaches": [1, 2]} lets
frames of a host pass to these ports only, null to all.
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
# What Ethernet adds to a frame on the wire: preamble, check sequence, gap.
_OVERHEAD = 24
_LONGEST = 9216
# Frames under way; a test that queues more has forgotten to limit its rate.
_CAPACITY = 20_000


class Way:
    """One direction of one host's cable."""

    def __init__(self, seed):
        self.chance = random.Random(seed)
        self.delay = self.jitter = self.loss = self.duplicate = self.reorder = 0.0
        self.rate = 0.0
        self.queue = 100.0
        self.cut = False
        self._free = 0.0
        self._latest = 0.0

    def due(self, now, length):
        """The departure time of each copy of a frame; empty when it is lost."""
        if self.cut or self._happens(self.loss):
            return []
        start = now
        if self.rate:
            start = max(now, self._free)
            if start - now > self.queue / 1000:
                return []
            start = self._free = start + (length + _OVERHEAD) * 8 / (self.rate * 1000)
        if self._happens(self.reorder):
            return [start]
        late = self.delay + (self.chance.uniform(-self.jitter, self.jitter) if self.jitter else 0)
        # Jitter keeps the order, as queues do; `reorder` breaks it.
        self._latest = max(self._latest, start + max(0.0, late) / 1000)
        return [self._latest] * (2 if self._happens(self.duplicate) else 1)

    def _happens(self, percent):
        return percent > 0 and self.chance.random() * 100 < percent


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
            for due in self.ways[port]["up"].due(now, len(frame)):
                self.enter(due, port, frame)

    def enter(self, now, source, frame):
        if not frame[6] & 1:
            self.homes[frame[6:12]] = source
        home = None if frame[0] & 1 else self.homes.get(frame[0:6])
        for port in range(len(self.taps)) if home is None else [home]:
            if port == source or port not in (self.reaches[source] or [port]):
                continue
            for due in self.ways[port]["down"].due(now, len(frame)):
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


def open_tap(namespace, interface):
    with inside(namespace):
        tap = os.open("/dev/net/tun", os.O_RDWR | os.O_NONBLOCK | os.O_CLOEXEC)
        request = struct.pack("16sH22x", interface.encode(), _IFF_TAP | _IFF_NO_PI)
        fcntl.ioctl(tap, _TUNSETIFF, request)
    return tap


if __name__ == "__main__":
    Switch(sys.argv[1], sys.argv[2:]).run()

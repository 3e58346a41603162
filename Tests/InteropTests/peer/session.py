"""Sessions and data datagrams (section 7)."""

import struct

from . import feedback
from .crypto import seal, unseal

DATA = 0x20
LONGEST_DATAGRAM = 1200
OVERHEAD = 29
LIFETIME = 180.0
_WINDOW = 8128  # RFC 6479


class Session:
    """The result of a handshake: two keys, two indices, a counter and a replay window."""

    def __init__(self, keys, finished, own_index, is_initiator, now, capabilities):
        self.keys = keys
        self.own_index, self.peer_index = own_index, finished.peer_index
        self._send_key, self._receive_key = finished.send_key, finished.receive_key
        self.is_initiator, self.began_at = is_initiator, now
        self.has_opened = False
        self.has_feedback = bool(capabilities & feedback.CAPABILITY)
        self.arrivals = feedback.ArrivalLog()
        self._next_counter = 0
        self._highest = -1
        self._seen = 0  # bit n: counter `_highest` - n has been seen

    @property
    def next_counter(self):
        """That of the next datagram, and so the number of those that were sent."""
        return self._next_counter

    def is_over(self, now):
        return now - self.began_at >= LIFETIME

    def seal(self, payload):
        header = bytes([DATA]) + self.peer_index + struct.pack(">Q", self._next_counter)
        sealed = seal(self._send_key, self._next_counter, payload, header)
        self._next_counter += 1
        return header + sealed

    def open(self, datagram):
        """Decrypts a datagram; returns the payload and whether its counter is the highest so far,
        or None for a forgery or a replay.
        """
        counter = int.from_bytes(datagram[5:13], "big")
        payload = unseal(self._receive_key, counter, datagram[13:], datagram[:13])
        if payload is None:
            return None
        is_newest = counter > self._highest
        if not self._mark(counter):
            return None
        self.has_opened = True
        if self.has_feedback:
            self.arrivals.record(counter, payload)
        return payload, is_newest

    def _mark(self, counter):
        """False for a counter that was seen or is older than the window."""
        if counter > self._highest:
            shift = min(counter - self._highest, _WINDOW)
            self._seen = (self._seen << shift | 1) & (1 << _WINDOW) - 1
            self._highest = counter
            return True
        age = self._highest - counter
        if age >= _WINDOW or self._seen >> age & 1:
            return False
        self._seen |= 1 << age
        return True

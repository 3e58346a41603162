"""Congestion feedback: when the packets of a session have arrived (section 7)."""

import struct
import time

from .reader import Malformed, Reader

FEEDBACK, PADDING = 0x04, 0x00
CAPABILITY = 1
UNIT = 250e-6
_RECEIVED, _AGE, _TOO_OLD = 0x8000, 0x1FFF, 0x1FFE
_HEADER = struct.Struct(">B4sQI")
_MOST = 512
_INTERVAL, _SLOW_INTERVAL = 0.1, 1.0
_SHARE = 0.05
_HEADERS = 57       # bytes of UDP, IPv4 and the data datagram around a payload


def encode(session_index, base, report_time, ages):
    """`ages`: for each packet from `base` on its age in units of 250 us, or None if it has
    not arrived.
    """
    blocks = (0 if age is None else _RECEIVED | min(age, _TOO_OLD) for age in ages)
    return (_HEADER.pack(FEEDBACK, session_index, base, report_time % (1 << 32))
            + b"".join(struct.pack(">H", block) for block in blocks))


def decode(payload):
    """(session index, counters reported as arrived, counters reported as missing)"""
    reader = Reader(payload)
    if reader.number(1) != FEEDBACK:
        raise Malformed("no feedback")
    session_index, base = reader.take(4), reader.number(8)
    reader.number(4)
    arrived, missing = [], []
    for counter in range(base, base + _MOST):
        (arrived if reader.number(2) & _RECEIVED else missing).append(counter)
        if reader.is_at_end:
            return session_index, arrived, missing
    raise Malformed("more than 512 arrivals")


def asks(payload):
    """Whether a payload asks for feedback: RTP and padding do."""
    if not payload:
        return False
    is_rtp = 0x80 <= payload[0] <= 0xBF and len(payload) > 1 and not 192 <= payload[1] <= 223
    return is_rtp or (payload[0] == PADDING and len(payload) > 1)


class ArrivalLog:
    """The arrivals of a session's packets, and when to report them."""

    def __init__(self):
        self._arrivals = {}           # counter -> units of time
        self._base = self._end = None   # of the last report
        self._allowed = 500.0         # bytes of reports
        self._due_at = None
        self._last_at = float("-inf")

    def record(self, counter, payload):
        now = time.monotonic()
        if asks(payload):
            self._allowed = min(1000.0, self._allowed + _SHARE * (len(payload) + _HEADERS))
            self._due_at = self._due_at or max(now, self._last_at + _INTERVAL)
        elif not self._arrivals:
            return                    # reports begin with the first packet that asks for them
        self._arrivals[counter] = int(now / UNIT)
        if self._base is not None:
            self._base = min(self._base, counter)   # late: it was reported as missing
        for old in [one for one in self._arrivals if one <= counter - _MOST]:
            del self._arrivals[old]

    def due_report(self, session_index):
        """The report on what is new, and on what was new in the last one; None if none is due."""
        now = time.monotonic()
        if self._due_at is None or now < self._due_at:
            return None
        last = max(self._arrivals)
        base = max(last - _MOST + 1, min(self._arrivals), self._base or 0)
        report_time = int(now / UNIT)
        ages = [report_time - self._arrivals[one] if one in self._arrivals else None
                for one in range(base, last + 1)]
        payload = encode(session_index, base, report_time, ages)
        size = len(payload) + _HEADERS
        if size > self._allowed and now < self._last_at + _SLOW_INTERVAL:
            self._due_at = self._last_at + _SLOW_INTERVAL
            return None
        self._allowed = max(self._allowed - size, -1000.0)
        self._base, self._end = self._end or base, last + 1
        self._due_at, self._last_at = None, now
        return payload


class Reported:
    """What the peer's feedback has said about this node's datagrams."""

    def __init__(self):
        self.reports = self.arrived = self.missing = self.wrong = 0

    def take(self, sessions, payload):
        session_index, arrived, missing = decode(payload)
        session = next((one for one in sessions if one.peer_index == session_index), None)
        if session is None or max(arrived + missing) >= session.next_counter:
            self.wrong += 1
            return
        self.reports += 1
        self.arrived += len(arrived)
        self.missing += len(missing)

    @property
    def figures(self):
        """A datagram counts once for each report that covers it."""
        return {"reports": self.reports, "arrived": self.arrived, "missing": self.missing,
                "wrong": self.wrong}

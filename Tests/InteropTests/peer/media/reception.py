"""Reception statistics of one stream, for receiver reports (RFC 3550, A.3 and A.8)."""

import time

from .rtcp import ReportBlock
from .rtp import extended


class Reception:
    def __init__(self, ssrc, clock_rate):
        self.ssrc = ssrc
        self._clock_rate = clock_rate
        self._first = self.highest = None   # extended sequence numbers
        self.received = 0
        self._jitter = 0.0
        self._transit = None
        self._expected_before = self._received_before = 0
        self._sender_report = None          # (middle of its NTP time, when it came)
        self.last_at = time.monotonic()

    def extend(self, sequence):
        """The sequence number extended past 65,535."""
        if self.highest is None:
            return sequence + 0x10000  # so that packets from before the first are not negative
        return extended(sequence, self.highest)

    def count(self, sequence, timestamp, is_repeat=False):
        """Counts a packet with this extended sequence number."""
        self.last_at = time.monotonic()
        if self.highest is None:
            self._first = self.highest = sequence
        self._first, self.highest = min(self._first, sequence), max(self.highest, sequence)
        if is_repeat:
            return
        self.received += 1
        transit = int(self.last_at * self._clock_rate) - timestamp
        if self._transit is not None:
            change = abs((transit - self._transit + (1 << 31)) % (1 << 32) - (1 << 31))
            self._jitter += (change - self._jitter) / 16
        self._transit = transit

    def on_sender_report(self, report):
        self._sender_report = int(report.clock * 65536) & 0xFFFFFFFF, time.monotonic()

    @property
    def lost(self):
        expected = self.highest - self._first + 1
        return expected - self.received

    def block(self):
        expected = self.highest - self._first + 1
        due, came = expected - self._expected_before, self.received - self._received_before
        self._expected_before, self._received_before = expected, self.received
        fraction = min(255, max(0, due - came) * 256 // due) if due > 0 else 0
        last, since = 0, 0
        if self._sender_report:
            last = self._sender_report[0]
            since = int((time.monotonic() - self._sender_report[1]) * 65536)
        lost = max(-0x800000, min(0x7FFFFF, self.lost))
        return ReportBlock(self.ssrc, fraction, lost, self.highest, int(self._jitter), last, since)

"""Assembles frames from packets (section 13, "Receiving video")."""

import time
from dataclasses import dataclass

from ..reader import Malformed
from . import streams
from .reception import Reception
from .vp8 import Descriptor, is_keyframe

_MOST_MISSING = 256
_MOST_ATTEMPTS = 10
_MOST_BUFFERED = 1024
_FARTHEST_TL0 = 512       # packets, across a gap
_REORDERING = 0.005
_ASSUMED_ROUND_TRIP = 0.1


@dataclass
class Packet:
    descriptor: Descriptor
    part: bytes
    timestamp: int
    marker: bool


@dataclass
class Frame:
    """A whole frame, from packet `first` to `last`."""

    data: bytes
    descriptor: Descriptor
    timestamp: int
    first: int
    last: int

    @property
    def is_keyframe(self):
        return is_keyframe(self.data)


class MissingPackets:
    """Missing packets: requested after two later ones or 5 ms, then again."""

    def __init__(self):
        self._missing = {}   # sequence -> [when to ask, how often it was asked for]
        self.gave_up = False

    def expect(self, sequences, delay=_REORDERING):
        due = time.monotonic() + delay
        self._missing.update({one: [due, 0] for one in sequences})
        if len(self._missing) > _MOST_MISSING:
            self._missing.clear()
            self.gave_up = True

    def arrived(self, sequence):
        """Whether the packet had been requested."""
        return self._missing.pop(sequence, [0, 0])[1] > 0

    def forget_up_to(self, sequence):
        self._missing = {key: one for key, one in self._missing.items() if key > sequence}
        self.gave_up = False

    def due(self, highest, round_trip):
        now, result = time.monotonic(), []
        for sequence, (at, attempts) in list(self._missing.items()):
            is_passed_twice = attempts == 0 and highest >= sequence + 2
            if now < at and not is_passed_twice:
                continue
            if attempts >= _MOST_ATTEMPTS:
                del self._missing[sequence]
                self.gave_up = True
                continue
            self._missing[sequence] = [now + max(1.2 * round_trip, 0.02), attempts + 1]
            result.append(sequence)
        return result


class LayerReceiver:
    """One layer of a video stream. Never gives out a frame whose references are missing."""

    def __init__(self, ssrc, stream):
        self.stream = stream
        self.reception = Reception(ssrc, streams.VIDEO_CLOCK)
        self.missing = MissingPackets()
        self._packets = {}
        self._shown = None      # the last frame given out
        self._gap_at = None

    @property
    def ssrc(self):
        return self.reception.ssrc

    def add(self, packet):
        """Takes an RTP packet of this layer."""
        try:
            descriptor, part = Descriptor.decode(packet.payload)
        except Malformed:
            return
        before = self.reception.highest
        sequence = self.reception.extend(packet.sequence)
        is_repeat = self.missing.arrived(sequence)
        self.reception.count(sequence, packet.timestamp, is_repeat)
        if self._shown and sequence <= self._shown.last or sequence in self._packets:
            return
        self._packets[sequence] = Packet(descriptor, part, packet.timestamp, packet.marker)
        if len(self._packets) > _MOST_BUFFERED:
            del self._packets[min(self._packets)]
        if before is not None:
            self.missing.expect(range(before + 1, sequence))
        elif not descriptor.starts_frame:
            self.missing.expect(range(sequence - 3, sequence), delay=0)

    def frames(self, round_trip):
        """The frames that can be shown now, in order."""
        result = []
        while (frame := self._next(round_trip or _ASSUMED_ROUND_TRIP)) is not None:
            result.append(frame)
            self._shown, self._gap_at = frame, None
            self._packets = {key: one for key, one in self._packets.items() if key > frame.last}
            self.missing.forget_up_to(frame.last)
        return result

    def needs_keyframe(self, round_trip):
        """Whether only a keyframe can help."""
        now, patience = time.monotonic(), round_trip or _ASSUMED_ROUND_TRIP
        if self._has_begun_keyframe and now - self.reception.last_at < max(0.2, 3 * patience):
            return self.missing.gave_up
        is_stuck = self._gap_at is not None and now - self._gap_at > max(0.25, 3 * patience)
        return self._shown is None or self.missing.gave_up or is_stuck

    @property
    def _has_begun_keyframe(self):
        return any(one.descriptor.starts_frame and is_keyframe(one.part)
                   for one in self._packets.values())

    def _next(self, round_trip):
        if self._shown and (frame := self._whole_frame(self._shown.last + 1)):
            return frame
        later = sorted(key for key, one in self._packets.items() if one.descriptor.starts_frame)
        if not later:
            return None
        if self._shown:
            self._gap_at = self._gap_at or time.monotonic()
            patience = min(max(1.2 * round_trip, 0.02) + 0.01, 0.1)
            if time.monotonic() - self._gap_at < patience:
                return None
        whole = (self._whole_frame(key) for key in later)
        return next((one for one in whole if one and self._has_references(one)), None)

    def _whole_frame(self, first):
        start = self._packets.get(first)
        if start is None or not start.descriptor.starts_frame:
            return None
        parts, sequence = [], first
        while (packet := self._packets.get(sequence)) and packet.timestamp == start.timestamp:
            parts.append(packet.part)
            if packet.marker:
                data = b"".join(parts)
                return Frame(data, start.descriptor, start.timestamp, first, sequence)
            sequence += 1
        return None

    def _has_references(self, frame):
        """Whether a frame across a gap can be decoded."""
        if frame.is_keyframe:
            return True
        if self._shown is None or frame.descriptor.tl0_index is None:
            return False
        shown = self._shown.descriptor.tl0_index
        if frame.descriptor.temporal_layer == 0:
            is_next = frame.descriptor.tl0_index == (shown + 1) & 0xFF
            return is_next and frame.first - self._shown.last < _FARTHEST_TL0
        return frame.descriptor.uses_layer_0_only and frame.descriptor.tl0_index == shown

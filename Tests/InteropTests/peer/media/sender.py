"""Streams that are sent over one link (section 13, "Sending video")."""

import random
import time
from collections import OrderedDict

from ..budget import Budget
from ..sent_layer import Reason, SentLayer
from ..subscription import BEST, layer_for
from . import streams
from .rtcp import SenderReport
from .rtp import RTPPacket

_KEPT_PACKETS = 1024
_ASSUMED_ROUND_TRIP = 0.1


# Of the media clock: without it, timestamps reveal how long the machine has been running.
_OFFSET = random.uniform(0, 1 << 20)


def media_clock():
    """Seconds of a clock that does not jump and counts while the machine sleeps (section 17)."""
    return _OFFSET + time.clock_gettime(time.CLOCK_BOOTTIME)


class RTPSender:
    """Sequence numbers and counts of one stream; with repair, also its latest packets."""

    def __init__(self, ssrc, payload_type, send, is_repaired):
        self.ssrc, self._payload_type = ssrc, payload_type
        self._send = send
        self._sequence = random.getrandbits(15)
        # sequence -> [packet, when it was sent, when it was last repeated]
        self._history = OrderedDict() if is_repaired else None
        self._repairs = Budget(64, 320)
        self.packets = self.octets = self.repeats = 0

    def send(self, payload, timestamp, marker=False, level=None):
        self._sequence += 1
        self.packets += 1
        self.octets += len(payload)
        packet = RTPPacket(self._payload_type, marker, self._sequence, timestamp, self.ssrc,
                           payload, level).encode()
        if self._history is not None:
            self._history[self._sequence & 0xFFFF] = [packet, time.monotonic(), float("-inf")]
            while len(self._history) > _KEPT_PACKETS:
                self._history.popitem(last=False)
        self._send(packet)

    def repeat(self, sequences, round_trip):
        """Answers a NACK with the same RTP packets."""
        now, round_trip = time.monotonic(), round_trip or _ASSUMED_ROUND_TRIP
        for sequence in sequences:
            packet, sent_at, repeated_at = (self._history or {}).get(sequence, (None, 0, 0))
            is_young = now - sent_at <= max(1.0, 3 * round_trip)
            is_due = now - repeated_at >= max(0.005, 0.75 * round_trip)
            if packet is not None and is_young and is_due and self._repairs.take():
                self._history[sequence][2] = now
                self.repeats += 1
                self._send(packet)

    def report(self, timestamp):
        return SenderReport(self.ssrc, media_clock(), timestamp, self.packets, self.octets)


class VideoSender:
    """One video stream to one receiver: which layer it gets, and when that changes."""

    def __init__(self, stream, source, base, send, tell):
        self.stream = stream
        self._source, self._base, self._send, self._tell = source, base, send, tell
        self._senders = {}    # layer -> RTPSender
        self.layer = None     # the one being sent; None: none
        self._next = None     # the one to change to at its next keyframe
        self.requested = None    # nothing has been requested yet, and nothing is sent
        self._why = Reason.CALL_STARTED
        self.frames = 0

    def choose(self):
        """Follows the request."""
        wanted = layer_for(self.requested, self._source.announced)
        if wanted is None:
            if self.requested is not None:
                self._change(None, Reason(self.requested.reason))
            self._next = None
        elif wanted == self.layer:
            self._next = None
        elif wanted != self._next:
            self._next = wanted
            self._source.layers[wanted].request_keyframe()

    @property
    def needed(self):
        """The layers that have to be encoded for this receiver."""
        return {one for one in (self.layer, self._next) if one is not None}

    @property
    def sent(self):
        """What this receiver gets."""
        if self.layer is None:
            return SentLayer(self.stream, 0, 0, 0, self._why)
        layer = self._source.announced[self.layer]
        return SentLayer(self.stream, layer.width, layer.height, layer.rate, self._why)

    def _change(self, layer, why):
        """Sends another layer from here on, or none; the receiver is told."""
        if layer != self.layer:
            self.layer, self._why = layer, why
            self._tell(self.sent)

    def offer(self, layer, payloads, is_keyframe, timestamp):
        """Sends the frame if its layer is the one for this receiver."""
        if is_keyframe and layer == self._next:
            is_first = self.layer is None and self.requested == BEST
            self._change(layer, Reason.CALL_STARTED if is_first else Reason.RECEIVER_REQUEST)
            self._next = None
        if layer != self.layer:
            return
        sender = self._sender(layer)
        for index, payload in enumerate(payloads):
            sender.send(payload, timestamp, marker=index == len(payloads) - 1)
        self.frames += 1

    def _sender(self, layer):
        if layer not in self._senders:
            self._senders[layer] = RTPSender(
                streams.video_ssrc(self._base, self.stream, layer),
                streams.video_payload_type(self.stream, layer), self._send, is_repaired=True)
        return self._senders[layer]

    # Feedback

    def on_nack(self, ssrc, sequences, round_trip):
        for sender in self._senders.values():
            if sender.ssrc == ssrc:
                sender.repeat(sequences, round_trip)

    def on_picture_loss(self, ssrc):
        """A PLI is answered for the layer that is being sent."""
        sender = self._senders.get(self.layer)
        if sender is not None and sender.ssrc == ssrc:
            self._source.layers[self.layer].request_keyframe()

    def report(self):
        sender = self._senders.get(self.layer)
        return sender.report(int(media_clock() * streams.VIDEO_CLOCK)) if sender else None

    @property
    def figures(self):
        repeats = sum(sender.repeats for sender in self._senders.values())
        return {"frames": self.frames, "layer": self.layer, "packetsRepeated": repeats}

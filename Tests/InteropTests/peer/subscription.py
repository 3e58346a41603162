"""How much of a video stream a receiver requests (section 8, control message 3).

The one place that knows this message and how a sender follows it.
"""

import struct
from typing import NamedTuple

_PLAIN = struct.Struct(">BHH")
_WHOLE = struct.Struct(">BHHBB")
VALUE_LENGTHS = (_PLAIN.size, _WHOLE.size)
ANY_RATE = 255
_REQUESTED, _RANK, _CPU = 2, 9, 10


class Request(NamedTuple):
    """The most of a stream that its receiver requests: pixels, and frames a second."""

    width: int
    height: int
    rate: int = ANY_RATE
    reason: int = _REQUESTED

    @property
    def wants_video(self):
        return self.width > 0 and self.height > 0 and self.rate > 0


BEST = Request(65535, 65535)
NOTHING = Request(0, 0)


class Subscription(NamedTuple):
    """What the receiver requests of one video stream."""

    stream: int
    request: Request

    def encode(self):
        width, height, rate, reason = self.request
        if (rate, reason) == (ANY_RATE, _REQUESTED):
            return _PLAIN.pack(self.stream, width, height)
        return _WHOLE.pack(self.stream, width, height, rate, reason)

    @classmethod
    def decode(cls, value):
        if len(value) == _PLAIN.size:
            stream, width, height = _PLAIN.unpack(value)
            return cls(stream, Request(width, height))
        stream, width, height, rate, reason = _WHOLE.unpack(value)
        known = reason if reason in (_RANK, _CPU) else _REQUESTED
        return cls(stream, Request(width, height, rate, known))


def layer_for(request, layers):
    """The index of the layer to send, the smallest layer being 0; None to send none.

    The largest one whose shorter side is no longer than that of the requested size, else the
    smallest. These layers have no temporal layers that could be left out for a lower rate.
    """
    if not layers or request is None or not request.wants_video:
        return None
    wanted = min(request.width, request.height)
    fitting = [index for index, layer in enumerate(layers)
               if min(layer.width, layer.height) <= wanted]
    return fitting[-1] if fitting else 0

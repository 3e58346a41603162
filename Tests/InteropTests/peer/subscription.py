"""The resolution that a receiver requests (section 8, control message 3).

The one place that knows this message and how a sender follows it.
"""

import struct
from typing import NamedTuple

_VALUE = struct.Struct(">BHH")
VALUE_LENGTH = _VALUE.size


class Resolution(NamedTuple):
    """The largest frame of a stream that its receiver requests, in pixels."""

    width: int
    height: int


BEST = Resolution(65535, 65535)
NOTHING = Resolution(0, 0)


class Subscription(NamedTuple):
    """The resolution that the receiver requests of one video stream."""

    stream: int
    resolution: Resolution

    def encode(self):
        return _VALUE.pack(self.stream, *self.resolution)

    @classmethod
    def decode(cls, value):
        stream, width, height = _VALUE.unpack(value)
        return cls(stream, Resolution(width, height))


def layer_for(resolution, layers):
    """The index of the layer to send, the smallest layer being 0; None to send none.

    The largest one whose shorter side is no longer than that of the requested resolution, else the
    smallest.
    """
    if not layers or resolution == NOTHING:
        return None
    wanted = min(resolution)
    fitting = [index for index, layer in enumerate(layers)
               if min(layer.width, layer.height) <= wanted]
    return fitting[-1] if fitting else 0

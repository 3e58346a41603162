"""Requested resolution: what a receiver has use for (section 8, control message 3).

The one place that knows this message and how a sender follows it.
"""

import struct
from typing import NamedTuple

VALUE_LENGTH = 4


class Subscription(NamedTuple):
    """The largest frame that the receiver wants, in pixels."""

    width: int
    height: int

    def encode(self):
        return struct.pack(">HH", *self)

    @classmethod
    def decode(cls, value):
        return cls(*struct.unpack(">HH", value))


BEST = Subscription(65535, 65535)
NOTHING = Subscription(0, 0)


def layer_for(subscription, layers):
    """The index of the layer to send, the smallest layer being 0; None to send none.

    The largest one whose shorter side is no longer than that of the subscription, else the
    smallest.
    """
    if not layers or subscription == NOTHING:
        return None
    wanted = min(subscription)
    fitting = [index for index, layer in enumerate(layers)
               if min(layer.width, layer.height) <= wanted]
    return fitting[-1] if fitting else 0

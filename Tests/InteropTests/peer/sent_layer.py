"""What a sender says that it sends of a video stream (section 8, control message 15)."""

import struct
from enum import IntEnum
from typing import NamedTuple

_VALUE = struct.Struct(">BHHBB")
VALUE_LENGTH = _VALUE.size


class Reason(IntEnum):
    UNKNOWN = 0
    CALL_STARTED = 1
    RECEIVER_REQUEST = 2
    VIDEO_MUTED = 3
    VIDEO_UNMUTED = 4
    ROLE_CHANGED = 5
    SOURCE_CHANGED = 6
    LEFT_CALL = 7
    BANDWIDTH = 8
    RANK = 9
    CPU = 10
    UPLINK_SHARE = 11


class SentLayer(NamedTuple):
    """The layer of a stream that its receiver gets; without a size it gets no video."""

    stream: int
    width: int
    height: int
    rate: int
    why: Reason

    def encode(self):
        return _VALUE.pack(*self)

    @classmethod
    def decode(cls, value):
        *layer, why = _VALUE.unpack(value)
        is_known = why in Reason.__members__.values()
        return cls(*layer, Reason(why) if is_known else Reason.UNKNOWN)

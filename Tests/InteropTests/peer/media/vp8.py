"""VP8 in RTP: the payload descriptor of RFC 7741 and how frames are cut (section 13)."""

import struct
from dataclasses import dataclass

from ..reader import Malformed, Reader

_LARGEST_PART = 1094  # 1,100 bytes of RTP payload less the descriptor
_X, _N, _S = 0x80, 0x20, 0x10
_I, _L, _T, _K = 0x80, 0x40, 0x20, 0x10


@dataclass
class Descriptor:
    """Fields that are not there are None."""

    starts_frame: bool
    picture_id: int = None
    tl0_index: int = None
    temporal_layer: int = 0
    uses_layer_0_only: bool = False
    key_index: int = None
    is_unreferenced: bool = False

    def encode(self):
        """The 6 bytes that every payload begins with."""
        first = _X | (_N if self.is_unreferenced else 0) | (_S if self.starts_frame else 0)
        last = self.temporal_layer << 6 | self.uses_layer_0_only << 5 | self.key_index & 31
        return struct.pack(">BBHBB", first, _I | _L | _T | _K, 0x8000 | self.picture_id & 0x7FFF,
                           self.tl0_index & 0xFF, last)

    @classmethod
    def decode(cls, payload):
        """(descriptor, the part of the frame). Raises `Malformed`."""
        reader = Reader(payload)
        first = reader.number(1)
        result = cls(bool(first & _S) and first & 7 == 0, is_unreferenced=bool(first & _N))
        present = reader.number(1) if first & _X else 0
        if present & _I:
            picture_id = reader.number(1)
            if picture_id & 0x80:
                picture_id = (picture_id & 0x7F) << 8 | reader.number(1)
            result.picture_id = picture_id
        if present & _L:
            result.tl0_index = reader.number(1)
        if present & (_T | _K):
            last = reader.number(1)
            if present & _T:
                result.temporal_layer, result.uses_layer_0_only = last >> 6, bool(last & 0x20)
            if present & _K:
                result.key_index = last & 31
        part = reader.rest()
        if not part:
            raise Malformed("a descriptor and no frame")
        return result, part


def packetize(frame, descriptor):
    """The payloads of a frame: as few parts as fit, of one size but for the last."""
    count = -(-len(frame) // _LARGEST_PART)
    size = -(-len(frame) // count)
    payloads = []
    for index in range(count):
        descriptor.starts_frame = index == 0
        payloads.append(descriptor.encode() + frame[index * size:(index + 1) * size])
    return payloads


def is_keyframe(frame):
    """RFC 6386, 9.1: the lowest bit of a frame is 0."""
    return not frame[0] & 1


def dimensions(keyframe):
    """Width and height in pixels; 0 by 0 if the frame is too short to say."""
    if len(keyframe) < 10:
        return 0, 0
    width, height = struct.unpack_from("<HH", keyframe, 6)
    return width & 0x3FFF, height & 0x3FFF

"""RTP packets (RFC 3550) with the audio level of RFC 6464 (section 13)."""

import struct
from dataclasses import dataclass

_VERSION = 2
_ONE_BYTE_EXTENSIONS = 0xBEDE  # RFC 8285
_LEVEL_ID = 1
_STOP_ID = 15


@dataclass
class RTPPacket:
    """`level` is that of the audio in -dBov (0 is loudest), or None."""

    payload_type: int
    marker: bool
    sequence: int
    timestamp: int
    ssrc: int
    payload: bytes
    level: int = None

    def encode(self):
        first = _VERSION << 6 | (0x10 if self.level is not None else 0)
        second = self.payload_type | (0x80 if self.marker else 0)
        header = struct.pack(">BBHII", first, second, self.sequence & 0xFFFF,
                             self.timestamp & 0xFFFFFFFF, self.ssrc)
        if self.level is not None:
            header += struct.pack(">HHBBH", _ONE_BYTE_EXTENSIONS, 1, _LEVEL_ID << 4, self.level, 0)
        return header + self.payload

    @classmethod
    def decode(cls, data):
        """None if it is no RTP packet."""
        if len(data) < 12 or data[0] >> 6 != _VERSION:
            return None
        start, end = 12 + 4 * (data[0] & 15), len(data)
        level = None
        if data[0] & 0x10:
            if start + 4 > end:
                return None
            profile, words = struct.unpack_from(">HH", data, start)
            extensions = data[start + 4:start + 4 + 4 * words]
            start += 4 + 4 * words
            level = _level(extensions) if profile == _ONE_BYTE_EXTENSIONS else None
        if data[0] & 0x20:
            end -= data[-1]  # padding
        if start > end:
            return None
        sequence, timestamp, ssrc = struct.unpack_from(">HII", data, 2)
        return cls(data[1] & 127, bool(data[1] >> 7), sequence, timestamp, ssrc,
                   data[start:end], level)


def _level(extensions):
    offset = 0
    while offset < len(extensions):
        identifier, length = extensions[offset] >> 4, (extensions[offset] & 15) + 1
        if extensions[offset] == 0:
            offset += 1  # padding
            continue
        if identifier == _STOP_ID:
            break
        if identifier == _LEVEL_ID and offset + 1 < len(extensions):
            return extensions[offset + 1] & 127
        offset += 1 + length
    return None


def is_rtcp(payload):
    """RFC 5761: the second byte distinguishes RTP from RTCP."""
    return 192 <= payload[1] <= 223


def extended(sequence, highest):
    """The 16-bit sequence number, extended to the value closest to `highest`."""
    return highest + ((sequence - highest + 0x8000) % 0x10000 - 0x8000)


def timestamp_difference(later, earlier):
    return (later - earlier + (1 << 31)) % (1 << 32) - (1 << 31)

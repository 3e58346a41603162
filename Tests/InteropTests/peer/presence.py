"""What a member says of itself (section 9, kind 1), the streams it sends included."""

import struct
from dataclasses import dataclass
from enum import IntFlag

from .reader import Malformed

MOST_LAYERS = 3
_LONGEST_NAME = 64


class Flag(IntFlag):
    """Flag bits of a presence; bits that are not known are ignored."""

    AUDIO_MUTED = 1 << 1
    VIDEO_MUTED = 1 << 2
    SPEAKING = 1 << 3
    SHARING = 1 << 4
    LEAVES = 1 << 5
    TEST_PATTERN = 1 << 6
    HAS_AUDIO = 1 << 7
    RELAYS_NOTHING = 1 << 8
    RELAYS_MUCH = 1 << 9
    IN_CALL = 1 << 15


@dataclass(frozen=True)
class Layer:
    """One resolution of a video stream."""

    width: int
    height: int
    rate: int

    def encode(self):
        return struct.pack(">HHB", self.width, self.height, self.rate)

    @classmethod
    def decode(cls, reader):
        return cls(reader.number(2), reader.number(2), reader.number(1))


@dataclass(frozen=True)
class Presence:
    KIND = 1

    boot: bytes
    flags: int
    name: str
    call: bytes = None
    joined: int = 0
    layers: tuple = ()

    def encode(self):
        flags = self.flags | (Flag.IN_CALL if self.call else 0)
        name = self.name.encode()[:_LONGEST_NAME]
        body = self.boot + struct.pack(">HB", flags, len(name)) + name
        if self.call:
            body += self.call + struct.pack(">Q", self.joined)
        return body + _encode_streams(self.layers)

    @classmethod
    def decode(cls, reader):
        boot, flags, name = reader.take(8), reader.number(2), reader.text(_LONGEST_NAME)
        call, joined = None, 0
        if flags & Flag.IN_CALL:
            call, joined = reader.take(16), reader.number(8)
        return cls(boot, flags & ~Flag.IN_CALL, name, call, joined, _decode_streams(reader))

    @property
    def leaves(self):
        return bool(self.flags & Flag.LEAVES)


def _encode_streams(layers):
    """What is sent as video: the layers of the one stream, the smallest first."""
    return bytes([len(layers)]) + b"".join(layer.encode() for layer in layers)


def _decode_streams(reader):
    count = reader.number(1)
    if count > MOST_LAYERS:
        raise Malformed("too many layers")
    layers = tuple(Layer.decode(reader) for _ in range(count))
    # Layers with a zero in them count as no layers at all.
    return layers if all(one.width and one.height and one.rate for one in layers) else ()

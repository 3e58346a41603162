"""Presence: a member's own state, with the streams that it sends (section 9, kind 1)."""

import re
import struct
import unicodedata
from dataclasses import dataclass
from enum import IntFlag

from .media import streams
from .reader import Malformed

_LONGEST_NAME, _LONGEST_STREAM_NAME = 64, 16
_STREAM_NAME = re.compile(r"[a-z0-9-]+")
_BIDIRECTIONAL_CONTROLS = (
    "\u061c\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069")


class Flag(IntFlag):
    """Flag bits of a member; bits that are not known are ignored."""

    AUDIO_MUTED = 1 << 1
    VIDEO_MUTED = 1 << 2
    SPEAKING = 1 << 3
    SHARING = 1 << 4
    LEAVES = 1 << 5
    HAS_AUDIO = 1 << 7
    RELAYS_NOTHING = 1 << 8
    RELAYS_MUCH = 1 << 9
    HANDS_OVER = 1 << 10
    IN_CALL = 1 << 15


class StreamFlag(IntFlag):
    """Flag bits of one video stream; bits that are not known are ignored."""

    MUTED = 1 << 0
    TEST_PATTERN = 1 << 1


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
class Stream:
    """A video stream that a member offers; `layers` are the smallest first."""

    number: int
    name: str
    flags: int = 0
    layers: tuple = ()

    def encode(self):
        name = self.name.encode()
        head = struct.pack(">BB", self.number, len(name)) + name
        layers = b"".join(layer.encode() for layer in self.layers)
        return head + struct.pack(">BB", self.flags, len(self.layers)) + layers

    @classmethod
    def decode(cls, reader):
        number, name = reader.number(1), reader.text(_LONGEST_STREAM_NAME)
        if number not in streams.VIDEO_STREAMS or not _STREAM_NAME.fullmatch(name):
            raise Malformed("a stream that cannot be")
        flags, count = reader.number(1), reader.number(1)
        if count > streams.LAYERS:
            raise Malformed("too many layers")
        layers = tuple(Layer.decode(reader) for _ in range(count))
        # Layers with a zero in them count as no layers at all.
        is_sound = all(one.width and one.height and one.rate for one in layers)
        return cls(number, name, flags, layers if is_sound else ())


@dataclass(frozen=True)
class Presence:
    KIND = 1

    boot: bytes
    flags: int
    name: str
    call: bytes = None
    joined: int = 0
    streams: tuple = ()

    def encode(self):
        flags = self.flags | (Flag.IN_CALL if self.call else 0)
        name = self.name.encode()[:_LONGEST_NAME]
        body = self.boot + struct.pack(">HB", flags, len(name)) + name
        if self.call:
            body += self.call + struct.pack(">Q", self.joined)
        return body + _encode_streams(self.streams)

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

    def name_of(self, number):
        """The name of a stream, for people and recordings; packets carry its number."""
        announced = [one.name for one in self.streams if one.number == number]
        others = {one.name for one in self.streams if one.number != number}
        # Not a name that another stream has, too, nor one that is reserved for another.
        usable = {*announced} - others - {*streams.NAMES.values()}
        return streams.name(number, next(iter(usable), None))


def printable(name):
    """A name as it may be shown: controls and line separators can make it look like another."""
    return "".join("\N{REPLACEMENT CHARACTER}" if _is_control(one) else one for one in name)


def _is_control(character):
    return (unicodedata.category(character) in ("Cc", "Zl", "Zp")
            or character in _BIDIRECTIONAL_CONTROLS)


def _encode_streams(offered):
    return bytes([len(offered)]) + b"".join(stream.encode() for stream in offered)


def _decode_streams(reader):
    count = reader.number(1)
    if count > len(streams.VIDEO_STREAMS):
        raise Malformed("too many streams")
    offered = tuple(Stream.decode(reader) for _ in range(count))
    numbers = [one.number for one in offered]
    if numbers != sorted(set(numbers)):
        raise Malformed("streams are not in rising order")
    return offered

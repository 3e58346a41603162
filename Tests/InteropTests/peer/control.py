"""Control messages: type, length, value (section 8)."""

import struct
from enum import IntEnum

from . import sent_layer, subscription
from .address import decode_address
from .ranges import decode_ranges
from .reader import Malformed, Reader

CONTROL = 0x01
_CRITICAL = 0x80
_MOST_CANDIDATES = 8


class Type(IntEnum):
    ENTRY = 1
    RECEIVED = 2
    SUBSCRIBE = 3
    PING = 4
    PONG = 5
    DIGEST = 6
    RANGES = 7
    WANT = 8
    PROBE = 9
    PROBE_RESULT = 10
    EPOCH_KEY = 11
    REFUSED = 12
    SEEN = 13
    CANDIDATES = 14
    SENT_LAYER = 15


_LENGTHS = {
    Type.SUBSCRIBE: subscription.VALUE_LENGTHS, Type.PING: (8,), Type.PONG: (8,),
    Type.DIGEST: (36,), Type.PROBE: (40,), Type.PROBE_RESULT: (41,), Type.REFUSED: (1,),
    Type.SENT_LAYER: (sent_layer.VALUE_LENGTH,),
}


def encode(kind, value):
    return struct.pack(">BH", kind, len(value)) + value


def decode(payload):
    """The (type, value) of each message that is known; the value of ranges is decoded already.

    Raises `Malformed` where the whole payload is to be ignored.
    """
    reader = Reader(payload)
    reader.take(1)
    messages = []
    while not reader.is_at_end:
        kind, value = reader.number(1), reader.counted(2)
        if kind in Type.__members__.values():
            messages.append((Type(kind), _checked(kind, value)))
        elif kind & _CRITICAL:
            raise Malformed(f"critical message {kind} is not known")
    return messages


def _checked(kind, value):
    if len(value) not in _LENGTHS.get(kind, (len(value),)):
        raise Malformed(f"control message {kind} of {len(value)} bytes")
    if kind in (Type.RECEIVED, Type.WANT) and (len(value) % 8 or len(value) > 64 * 8):
        raise Malformed(f"control message {kind} of {len(value)} bytes")
    if kind == Type.SEEN and len(decode_addresses(value)) != 1:
        raise Malformed("not one address")
    if kind == Type.CANDIDATES and len(decode_addresses(value)) > _MOST_CANDIDATES:
        raise Malformed("too many candidates")
    return decode_ranges(value) if kind == Type.RANGES else value


def decode_addresses(value):
    reader = Reader(value)
    addresses = []
    while not reader.is_at_end:
        addresses.append(decode_address(reader))
    return addresses


def prefixes(value):
    """The 8-byte items of a list."""
    return [value[start:start + 8] for start in range(0, len(value), 8)]

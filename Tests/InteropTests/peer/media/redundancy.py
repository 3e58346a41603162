"""Copies of earlier audio packets (RFC 2198) in the payload of a later one (section 13)."""

from ..reader import Malformed, Reader
from .streams import AUDIO_PAYLOAD_TYPE

CAPABILITY = 2
_MORE = 0x80
_MOST_COPIES = 3


def encode(copies, payload):
    """`copies`: (timestamp offset, payload) of earlier packets."""
    heads = b"".join(
        (((_MORE | AUDIO_PAYLOAD_TYPE) << 24) | offset << 10 | len(copy)).to_bytes(4, "big")
        for offset, copy in copies)
    return heads + bytes([AUDIO_PAYLOAD_TYPE]) + b"".join(copy for _, copy in copies) + payload


def decode(payload):
    """([(timestamp offset, payload of the earlier packet)], payload of this packet)"""
    reader, heads = Reader(payload), []
    while (first := reader.number(1)) & _MORE:
        heads.append((first, reader.number(3)))
    if any(kind & ~_MORE != AUDIO_PAYLOAD_TYPE for kind in (first, *(kind for kind, _ in heads))):
        raise Malformed("a payload type other than Opus")
    if len(heads) > _MOST_COPIES:
        raise Malformed(f"{len(heads)} copies, at most {_MOST_COPIES}")
    copies = [(head >> 10, reader.take(head & 0x3FF)) for _, head in heads]
    return copies, reader.rest()

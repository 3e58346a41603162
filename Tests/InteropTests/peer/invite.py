"""Invites: all that a newcomer needs, in one URL (section 12)."""

import base64
import struct
import zlib
from dataclasses import dataclass
from urllib.parse import quote

from .crypto import Identity
from .entries import Entry
from .reader import Malformed, Reader
from .rights import Genesis

_VERSION = 1
_CREATED = 1


@dataclass
class Invite:
    """`genesis`, `one_time_key` and `grant` are those of a created channel, else None."""

    name: str
    secret: bytes
    epoch: int = 0
    genesis: Genesis = None
    one_time_key: Identity = None
    grant: Entry = None
    peers: tuple = ()
    rendezvous: tuple = ()

    @classmethod
    def parse(cls, url):
        encoded = url.partition("#")[2]
        raw = base64.urlsafe_b64decode(encoded + "=" * (-len(encoded) % 4))
        if zlib.crc32(raw[:-4]) != int.from_bytes(raw[-4:], "big"):
            raise Malformed("the invite is damaged")
        reader = Reader(raw[:-4])
        if reader.number(1) != _VERSION:
            raise Malformed("an invite of another version")
        is_created = reader.number(1) & _CREATED
        epoch, secret = reader.number(4), reader.take(32)
        genesis = one_time_key = grant = None
        if is_created:
            genesis = Genesis(reader.counted(2))
            one_time_key = Identity(reader.take(32))
            grant = Entry.decode(reader.counted(2))
        name = reader.text(64)
        peers, rendezvous = _read_texts(reader), _read_texts(reader)
        return cls(name, secret, epoch, genesis, one_time_key, grant, peers, rendezvous)

    def url(self):
        """Of an open channel."""
        name = self.name.encode()
        raw = struct.pack(">BBI", _VERSION, 0, self.epoch) + self.secret
        raw += bytes([len(name)]) + name + _write_texts(self.peers) + _write_texts(self.rendezvous)
        raw += struct.pack(">I", zlib.crc32(raw))
        encoded = base64.urlsafe_b64encode(raw).decode().rstrip("=")
        return f"muster://{quote(self.name, safe='')}/#{encoded}"


def _read_texts(reader):
    return tuple(reader.text(255) for _ in range(reader.number(1)))


def _write_texts(texts):
    encoded = [text.encode() for text in texts]
    return bytes([len(encoded)]) + b"".join(bytes([len(one)]) + one for one in encoded)

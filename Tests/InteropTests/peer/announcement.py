"""Announcements, challenges and their formats (section 5)."""

import os
import struct
from dataclasses import dataclass, field

from .address import decode_address, encode_address
from .crypto import verify, xseal, xunseal
from .reader import Malformed, Reader

ANNOUNCEMENT, CHALLENGE = 0x01, 0x02
_SHORTEST, _LONGEST, _MOST_ADDRESSES = 155, 1200, 8
_CHALLENGE_LENGTH = 105
_HAS_ECHO = 1


@dataclass
class Announcement:
    """"I am here": believed only for an address from which its author sent an echo back."""

    author: bytes
    boot: bytes
    counter: int
    echo: bytes = None
    addresses: list = field(default_factory=list)
    extensions: dict = field(default_factory=dict)   # type -> value; the first of each type
    plaintext: bytes = None
    signature: bytes = None

    def encode(self):
        """The plaintext, without the signature."""
        flags = _HAS_ECHO if self.echo else 0
        head = self.author + self.boot + struct.pack(">QB", self.counter, flags)
        tail = bytes([len(self.addresses)]) + b"".join(map(encode_address, self.addresses))
        extensions = b"".join(struct.pack(">BH", kind, len(value)) + value
                              for kind, value in self.extensions.items())
        return head + (self.echo or b"") + tail + extensions

    def seal(self, identity, keys, nonce=None):
        """The datagram."""
        plaintext = self.encode()
        signature = identity.sign(_signed(keys, plaintext))
        nonce = nonce or os.urandom(24)
        kind = bytes([ANNOUNCEMENT])
        return kind + nonce + xseal(keys.announcement_key, nonce, plaintext + signature, kind)

    @classmethod
    def open(cls, keys, datagram):
        """None unless it opens with these keys and is well formed; its signature is not checked."""
        if not _SHORTEST <= len(datagram) <= _LONGEST:
            return None
        opened = xunseal(keys.announcement_key, datagram[1:25], datagram[25:], datagram[:1])
        if opened is None:
            return None
        try:
            return cls._decode(opened[:-64], opened[-64:])
        except Malformed:
            return None

    @classmethod
    def _decode(cls, plaintext, signature):
        reader = Reader(plaintext)
        author, boot, counter = reader.take(32), reader.take(8), reader.number(8)
        echo = reader.take(16) if reader.number(1) & _HAS_ECHO else None
        count = reader.number(1)
        if count > _MOST_ADDRESSES:
            raise Malformed("too many addresses")
        addresses = [decode_address(reader) for _ in range(count)]
        extensions = {}
        while not reader.is_at_end:
            kind, value = reader.number(1), reader.counted(2)
            extensions.setdefault(kind, value)
        return cls(author, boot, counter, echo, addresses, extensions, plaintext, signature)

    def is_signed(self, keys):
        return verify(self.author, self.signature, _signed(keys, self.plaintext))


def _signed(keys, plaintext):
    return b"muster/1 announce" + keys.id + plaintext


@dataclass
class Challenge:
    """Asks the author of an announcement to send `echo` back. It is not signed."""

    target: bytes
    boot: bytes
    counter: int
    echo: bytes

    def encode(self):
        return self.target + self.boot + struct.pack(">Q", self.counter) + self.echo

    def seal(self, keys, nonce=None):
        nonce = nonce or os.urandom(24)
        kind = bytes([CHALLENGE])
        return kind + nonce + xseal(keys.announcement_key, nonce, self.encode(), kind)

    @classmethod
    def open(cls, keys, datagram):
        if len(datagram) != _CHALLENGE_LENGTH:
            return None
        opened = xunseal(keys.announcement_key, datagram[1:25], datagram[25:], datagram[:1])
        if opened is None:
            return None
        reader = Reader(opened)
        return cls(reader.take(32), reader.take(8), reader.number(8), reader.take(16))


def open_with_any(kind, channel, datagram):
    """Tries all keys of a channel; returns the opened announcement and its keys, or (None, None).
    """
    for keys in channel.keys:
        opened = kind.open(keys, datagram)
        if opened is not None:
            return opened, keys
    return None, None

"""The client of a rendezvous (section 14)."""

import os
import struct

from .address import decode_address, encode_address
from .announcement import Announcement, open_with_any
from .events import emit, short
from .reader import Malformed, Reader

HELLO, COOKIE, REGISTRATION, RECORDS = 0x30, 0x31, 0x32, 0x33
HELLO_LENGTH = 64
_FIRST_WAIT, _LONGEST_WAIT = 0.25, 5.0
_ROUND_WAITS = (1, 3, 5)      # seconds; the last one from then on
_MOST_MISSED = 3
_WANTED_FLAG = 1
_FIRST_ROUNDS, _EVERY = 3, 12


def hello(token):
    return (bytes([HELLO]) + token).ljust(HELLO_LENGTH, b"\0")


def registration(slot, cookie, period, tag, is_wanting, announcement):
    """`tag` is the key pair of the period; an empty announcement takes the record away."""
    message = (bytes([REGISTRATION]) + slot + cookie + struct.pack(">Q", period) + tag.id + slot
               + bytes([_WANTED_FLAG if is_wanting else 0])
               + struct.pack(">H", len(announcement)) + announcement)
    return message + tag.sign(b"muster/1 rendezvous" + message)


def records(slot, known):
    """The answer of a rendezvous; `known` are pairs of an address and an announcement."""
    return bytes([RECORDS]) + slot + bytes([len(known)]) + b"".join(
        encode_address(source) + struct.pack(">H", len(announcement)) + announcement
        for source, announcement in known)


class Rendezvous:
    """Registers at one rendezvous, and probes the addresses that it reports."""

    def __init__(self, node, address):
        self._node, self.address = node, address
        self._token, self._slot = os.urandom(8), os.urandom(8)
        self._cookie = None
        self._period = 0
        self._missed = self._rounds = 0
        self._reported = set()     # members that the rendezvous reported
        self.seen_at = None        # this node's address as the rendezvous sees it

    def start(self):
        self._say_hello(_FIRST_WAIT)
        self._round(0)

    def leave(self):
        if self._cookie:
            self._register(b"")

    def _say_hello(self, wait):
        if self._cookie is None:
            self._node.send(self.address, hello(self._token))
            self._node.loop.after(wait, lambda: self._say_hello(min(_LONGEST_WAIT, 2 * wait)))

    def _round(self, number):
        if self._cookie and self._missed >= _MOST_MISSED:
            self._cookie, self._missed = None, 0
            self._say_hello(_FIRST_WAIT)
        if self._cookie:
            self._register(self._node.discovery.announcement())
        wait = _ROUND_WAITS[min(number, len(_ROUND_WAITS) - 1)]
        self._node.loop.after(wait, lambda: self._round(number + 1))

    def _register(self, announcement):
        self._missed += 1
        self._rounds += 1
        is_wanting = (self._rounds <= _FIRST_ROUNDS or self._rounds % _EVERY == 0
                      or any(not self._is_linked(one) for one in self._reported))
        tag = self._node.channel.current.rendezvous_tag(self._period)
        self._node.send(self.address, registration(
            self._slot, self._cookie, self._period, tag, is_wanting, announcement))

    def _is_linked(self, member):
        link = self._node.links.get(member)
        return link is not None and link.is_up and not link.is_relayed

    def receive(self, datagram):
        reader = Reader(datagram)
        try:
            if reader.number(1) == COOKIE:
                self._on_cookie(reader)
            else:
                self._on_records(reader)
        except Malformed:
            pass

    def _on_cookie(self, reader):
        if reader.take(8) != self._token:
            return
        is_first = self._cookie is None
        self._cookie, self._period = reader.take(16), reader.number(8)
        reader.number(2)   # seconds since the period began
        self.seen_at = decode_address(reader)
        if is_first:
            emit("rendezvous", address=self.address, seenAt=self.seen_at)
            self._register(self._node.discovery.announcement())

    def _on_records(self, reader):
        if reader.take(8) != self._slot:
            return
        self._missed = 0
        for _ in range(reader.number(1)):
            source, announcement = decode_address(reader), reader.counted(2)
            opened, keys = open_with_any(Announcement, self._node.channel, announcement)
            if opened and opened.author != self._node.id and opened.is_signed(keys):
                self._on_record(opened, source)

    def _on_record(self, opened, source):
        if opened.author not in self._reported:
            emit("reported", member=short(opened.author), address=source)
        self._reported.add(opened.author)
        if not self._is_linked(opened.author):
            for address in (source, *opened.addresses):
                self._node.prober.probe(address)


def cookie_reply(token, cookie, period, seconds, address):
    """The datagram with which a rendezvous answers a hello."""
    return (bytes([COOKIE]) + token + cookie + struct.pack(">QH", period, seconds)
            + encode_address(address))

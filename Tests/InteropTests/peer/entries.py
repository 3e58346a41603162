"""Signed entries and their bodies (section 9); `presence.py` has the one body that is larger."""

import struct
from dataclasses import dataclass, field

from .crypto import blake2b, verify
from .presence import Presence
from .reader import Malformed, Reader

SHORTEST, LONGEST = 113, 1080
HIGHEST_LAMPORT = 1 << 62
HIGHEST_ROLE = 4


@dataclass(frozen=True)
class NeighbourReport:
    """The neighbours that its author has links to, and those of them that it suspects."""

    KIND = 2

    boot: bytes
    neighbours: tuple
    suspected: tuple = ()

    def encode(self):
        return self.boot + _list(sorted(self.neighbours)) + _list(sorted(self.suspected))

    @classmethod
    def decode(cls, reader):
        return cls(reader.take(8), tuple(reader.list_of(8, 64)), tuple(reader.list_of(8, 32)))


@dataclass(frozen=True)
class Claim:
    """Starts a call (term 1) or takes one over (a later term); section 10."""

    KIND = 3

    call: bytes
    term: int
    started_at: int
    order: int
    has_compared: bool     # whether who started the call had compared documents with a neighbour

    def encode(self):
        return self.call + struct.pack(
            ">IQQB", self.term, self.started_at, self.order, self.has_compared)

    @classmethod
    def decode(cls, reader):
        call, term = reader.take(16), reader.number(4)
        if term == 0:
            raise Malformed("term 0")
        started_at, order = reader.number(8), reader.number(8)
        return cls(call, term, started_at, order,
                   not reader.is_at_end and reader.number(1) != 0)


@dataclass(frozen=True)
class End:
    """Covers its author's claim of that term, and all of lower terms."""

    KIND = 4

    call: bytes
    term: int

    def encode(self):
        return self.call + struct.pack(">I", self.term)

    @classmethod
    def decode(cls, reader):
        return cls(reader.take(16), reader.number(4))


@dataclass(frozen=True)
class Joining:
    """Says that its author has been in the call together with another."""

    KIND = 9
    MET, LASTING = 1, 2

    call: bytes
    stage: int

    def encode(self):
        return self.call + bytes([self.stage])

    @classmethod
    def decode(cls, reader):
        call, stage = reader.take(16), reader.number(1)
        if stage not in (cls.MET, cls.LASTING):
            raise Malformed("stage of a joining")
        return cls(call, stage)


@dataclass(frozen=True)
class Moderation:
    """Mutes a member of a lower role in a call, or removes it from the call."""

    KIND = 10
    MUTE_AUDIO, MUTE_VIDEO, MUTE_SHARE, REMOVE = 1, 2, 4, 8

    call: bytes
    member: bytes
    actions: int

    def encode(self):
        return self.call + self.member + bytes([self.actions])

    @classmethod
    def decode(cls, reader):
        return cls(reader.take(16), reader.take(32), reader.number(1))


@dataclass(frozen=True)
class Message:
    """A text (section 11); `content` is sealed if there is a receiver."""

    KIND = 5

    sent_at: int
    predecessors: tuple
    receiver: bytes
    content: bytes

    def encode(self):
        receiver = b"\1" + self.receiver if self.receiver else b"\0"
        head = struct.pack(">Q", self.sent_at) + _list(self.predecessors) + receiver
        return head + struct.pack(">H", len(self.content)) + self.content

    @classmethod
    def decode(cls, reader):
        sent_at, predecessors = reader.number(8), tuple(reader.list_of(8, 4))
        flag = reader.number(1)
        if flag > 1:
            raise Malformed("receiver flag")
        receiver = reader.take(32) if flag else None
        return cls(sent_at, predecessors, receiver, reader.counted(2, 808 if flag else 768))


@dataclass(frozen=True)
class Grant:
    """Gives a role (section 12); with `terms` to the members that redeem it.

    `invite` is the one-time key of the invite by which the subject came.
    """

    KIND = 6
    BEARER, BY_INVITE = 1, 2

    subject: bytes
    role: int
    expires_at: int
    epoch: int = 0
    terms: tuple = None     # the number of uses, 0 for any, and when the roles end
    invite: bytes = None

    @property
    def bearer(self):
        return self.terms is not None

    def encode(self):
        head = self.subject + struct.pack(">BQI", self.role, self.expires_at, self.epoch)
        if self.terms is not None:
            return head + bytes((self.BEARER,)) + struct.pack(">IQ", *self.terms)
        if self.invite is not None:
            return head + bytes((self.BY_INVITE,)) + self.invite
        return head + bytes(1)

    @classmethod
    def decode(cls, reader):
        subject, role = reader.take(32), reader.number(1)
        if role > HIGHEST_ROLE:
            raise Malformed("unknown role")
        expires_at, epoch, flags = reader.number(8), reader.number(4), reader.number(1)
        if flags & cls.BEARER:
            terms = reader.number(4), reader.number(8)
            return cls(subject, role, expires_at, epoch, terms=terms)
        invite = reader.take(32) if flags & cls.BY_INVITE else None
        return cls(subject, role, expires_at, epoch, invite=invite)


@dataclass(frozen=True)
class Redemption:
    """Redeems a bearer grant; the signature is by the grant's subject, a one-time key.

    A redemption is well-formed whatever it redeems.
    """

    KIND = 7

    redeemed: bytes
    signature: bytes

    @property
    def grant(self):
        """The entry with the bearer grant; None if it is none."""
        try:
            entry = Entry.decode(self.redeemed)
        except Malformed:
            return None
        return entry if entry.kind == Grant.KIND and entry.body.bearer else None

    def encode(self):
        return struct.pack(">H", len(self.redeemed)) + self.redeemed + self.signature

    @classmethod
    def decode(cls, reader):
        return cls(reader.counted(2, 256), reader.take(64))


@dataclass(frozen=True)
class Epoch:
    """Changes the channel's key and removes members; the owner's only."""

    KIND = 8

    number: int
    key_id: bytes
    previous: bytes
    removed: tuple
    kept: tuple

    def encode(self):
        head = struct.pack(">I", self.number) + self.key_id + self.previous
        return head + _list(self.removed) + _list(self.kept)

    @classmethod
    def decode(cls, reader):
        number, key_id, previous = reader.number(4), reader.take(32), reader.take(32)
        if number == 0:
            raise Malformed("epoch 0")
        removed, kept = reader.list_of(32, 4), reader.list_of(8, 96)
        return cls(number, key_id, previous, tuple(removed), tuple(kept))


_BODIES = {body.KIND: body for body in (
    Presence, NeighbourReport, Claim, End, Message, Grant, Redemption, Epoch, Joining, Moderation)}


@dataclass(frozen=True, eq=False)
class Entry:
    """One signed statement of a member. `body` is None for kinds that are not known."""

    raw: bytes
    author: bytes
    sequence: bytes
    lamport: int
    kind: int
    body: object
    id: bytes = field(default=b"")

    @property
    def order(self):
        return self.lamport, self.author, self.sequence, self.id

    @classmethod
    def decode(cls, raw):
        """Raises `Malformed`; does not check the signature."""
        if not SHORTEST <= len(raw) <= LONGEST:
            raise Malformed("size of an entry")
        reader = Reader(raw[:-64])
        author, sequence = reader.take(32), reader.take(8)
        lamport, kind = reader.number(8), reader.number(1)
        if lamport > HIGHEST_LAMPORT:
            raise Malformed("Lamport counter")
        body = _BODIES[kind].decode(reader) if kind in _BODIES else None
        return cls(raw, author, sequence, lamport, kind, body, blake2b(32, raw))

    @classmethod
    def sign(cls, identity, channel_id, sequence, lamport, body):
        unsigned = identity.id + struct.pack(">QQB", sequence, lamport, body.KIND) + body.encode()
        return cls.decode(unsigned + identity.sign(_signed(channel_id, unsigned)))

    def is_signed(self, channel_id):
        return verify(self.author, self.raw[-64:], _signed(channel_id, self.raw[:-64]))


def _signed(channel_id, unsigned):
    return b"muster/1 entry" + channel_id + unsigned


def _list(items):
    return bytes([len(items)]) + b"".join(items)

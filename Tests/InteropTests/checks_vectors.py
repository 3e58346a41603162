"""The worked examples of the document, and the files that hold them for programs."""

import struct

import vectors
from check import check
from examples import ENTRY_HEADER, NAME, Given
from peer import control
from peer.announcement import Announcement
from peer.calls import channels_call
from peer.crypto import Identity, xseal
from peer.document import Document
from peer.entries import Entry, Grant
from peer.invite import Invite
from peer.media import long_audio, redundancy, rtcp, streams
from peer.media.rtp import RTPPacket
from peer.reader import Malformed
from peer.rights import CreatedRights, OpenRights, Role

_EXAMPLES = 88
_CASES = 203


def _all_reproduced(t, expected):
    reproduced, wrong = vectors.compare(expected)
    for one in wrong:
        t.expect(False, one)
    t.figure("examples", len(reproduced), at_least=_EXAMPLES)


@check(gate=True)
def every_hex_block_of_the_document_is_reproduced(t):
    _all_reproduced(t, vectors.blocks())


@check(gate=True)
def every_vector_for_programs_is_reproduced(t):
    _all_reproduced(t, vectors.files())


def _is_taken(given, raw):
    try:
        return Entry.decode(raw).is_signed(given.keys.id)
    except Malformed:
        return False


class _Entries:
    """A document and the rights in it, as a case gives them."""

    def __init__(self, inputs):
        self._entries = [Entry.decode(bytes.fromhex(one)) for one in inputs["entries"]]
        self._roles = {bytes.fromhex(one): Role[role.upper()]
                       for one, role in inputs["roles"].items()}
        self._invites = {bytes.fromhex(one): bytes.fromhex(key)
                         for one, key in inputs["invites"].items()}

    def invite(self, _document, member):
        return self._invites.get(member)

    def entries(self, body):
        return [one for one in self._entries if one.kind == body.KIND]

    def role(self, _document, member):
        return self._roles.get(member, Role.PRESENTER)

    def moderates(self, document, author, member):
        role = self.role(document, author)
        return role >= Role.PRESENTER and role > self.role(document, member)


def _call(inputs):
    """The channel's call in the form of a case."""
    given = _Entries(inputs)
    present = [(bytes.fromhex(member), bytes.fromhex(call), joined)
               for member, call, joined in inputs["present"]]
    call, inside = channels_call(given, given, present, bytes.fromhex(inputs["viewer"]),
                                 bool(inputs["ends-with-initiator"]))
    return call and {
        "call": call.id.hex(), "initiator": call.initiator.hex(), "term": call.term,
        "order": call.order, "started": call.started_at, "standing": call.standing,
        "participants": [member.hex() for member in inside],
    }


def _settled(entries, rights):
    """The document that follows from entries, in whatever order they arrive."""
    document, before = Document(rights, bytes(32)), None
    while before != document.digest():
        before = document.digest()
        for one in entries:
            document.add(one)
        document.retry_refused()
    return document


def _roles(given, inputs):
    """The roles, the epoch and the entries that are held, in the form of a case."""
    rights = CreatedRights(given.genesis)
    entries = [Entry.decode(bytes.fromhex(one)) for one in inputs["entries"]]
    document = _settled(entries, rights)
    people = {one.author for one in entries}
    people |= {one.body.subject for one in entries if one.kind == Grant.KIND}
    roles = {one.hex(): rights.role(document, one, now=inputs["time"])
             for one in people | {given.anna.id}}
    return {
        "roles": {one: Role(role).name.lower() for one, role in sorted(roles.items()) if role},
        "epoch": len(rights.epochs(document)),
        "held": [number for number, one in enumerate(entries) if document.keeps(one)],
    }


def _kept(given, inputs):
    """How much of each series a document keeps, in the form of a case."""
    rights = [Entry.decode(bytes.fromhex(one)) for one in inputs["rights"]]
    channel_id = given.genesis.channel_id if rights else given.keys.id
    series = [[_alike(seed, kind, body, lamport, channel_id)
               for lamport in range(first, first + count)]
              for seed, kind, body, first, count in inputs["series"]]
    document = _settled(rights + [one for own in series for one in own],
                        CreatedRights(given.genesis) if rights else OpenRights())
    return {"kept": [sum(map(document.keeps, own)) for own in series],
            "digest": document.digest().hex()}


def _alike(seed, kind, body, lamport, channel_id):
    """One entry of a series; its Lamport counter is its sequence number, too."""
    author = Identity(bytes.fromhex(seed))
    unsigned = author.id + struct.pack(">QQB", lamport, lamport, kind) + bytes.fromhex(body)
    return Entry.decode(unsigned + author.sign(b"muster/1 entry" + channel_id + unsigned))


@check(gate=True)
def every_case_of_behaviour_has_its_result(t):
    given = Given(vectors.blocks())
    results = [(one, _is_taken(given, bytes.fromhex(one["inputs"]["entry"])))
               for one in vectors.cases("well-formed")]
    results += [(one, _call(one["inputs"])) for one in vectors.cases("calls")]
    results += [(one, _roles(given, one["inputs"])) for one in vectors.cases("roles")]
    results += [(one, _kept(given, one["inputs"])) for one in vectors.cases("retention")]
    for one, result in results:
        t.expect(result == one["expected"],
                 f"{one['name']}: expected {one['expected']}, saw {result}")
    t.figure("cases", len(results), at_least=_CASES)


@check(gate=True)
def built_messages_are_parsed_again(t):
    """Every block that has a decoder goes through it and comes out as it went in."""
    blocks = vectors.blocks()
    for name, value in blocks.items():
        if name.startswith("control-"):
            t.expect(control.decode(value), f"{name}: expected messages, saw none")
        elif name in ("rtp-audio", "rtp-audio-copy", "rtp-audio-long", "rtp-video",
                      "rtp-screen"):
            packet = RTPPacket.decode(value)
            t.expect(packet.encode() == value, f"{name}: expected the same, saw {packet}")
            if packet.payload_type == streams.REDUNDANT_AUDIO_PAYLOAD_TYPE:
                parts = redundancy.decode(packet.payload)
                t.expect(redundancy.encode(*parts) == packet.payload,
                         f"{name}: expected the same, saw {parts}")
            if name == "rtp-audio-long":
                frames = long_audio.frames(packet.payload)
                t.expect(long_audio.join(frames) == packet.payload,
                         f"{name}: expected the same, saw {frames}")
        elif name.startswith("rtcp-"):
            messages = rtcp.decode_all(value)
            again = b"".join(one.encode() for one in messages)
            t.expect(again == value, f"{name}: expected the same, saw {messages}")
        elif name.startswith("entry-") and not name.endswith(("-signature", "-id")):
            body = Entry.decode(value + bytes(64)).body
            t.expect(body.encode() == value[ENTRY_HEADER:],
                     f"{name}: expected the same body, saw {body}")
    for name in ("invite", "invite-created"):
        invite = Invite.parse(blocks[name].decode())
        t.expect(invite.name == NAME, f"{name}: expected {NAME}, saw {invite.name}")
        t.expect(invite.url().encode() == blocks[name], f"{name}: expected the same URL")


def _sealed(given, plaintext):
    """An announcement datagram of any plaintext, well-formed or not."""
    signed = plaintext + given.anna.sign(b"muster/1 announce" + given.keys.id + plaintext)
    return b"\1" + bytes(24) + xseal(given.keys.announcement_key, bytes(24), signed, b"\1")


@check(gate=True)
def extensions_of_announcements_are_skipped_and_never_cut_short(t):
    given = Given(vectors.blocks())
    plain = Announcement(given.anna.id, bytes(8), 1).encode()
    first, second, other = (bytes.fromhex(one) for one in ("f0000101", "f0000102", "f10000"))
    opened = Announcement.open(given.keys, _sealed(given, plain + first + second + other))
    t.require(opened and opened.is_signed(given.keys), "expected to open it with extensions")
    t.expect(opened.extensions == {240: b"\1", 241: b""},
             f"expected the first of each type, saw {opened.extensions}")
    for cut in (other[:1], other[:2], first[:3]):
        t.expect(Announcement.open(given.keys, _sealed(given, plain + cut)) is None,
                 f"expected silence where an extension is cut short to {cut.hex()}")

"""The hex blocks of docs/PROTOCOL.md, and what the Python peer makes of the same inputs.

`python3 Tests/InteropTests/vectors.py` prints each block and whether it is reproduced.
"""

import os
import re
import struct
import sys

from peer import channel, control, handshake, rendezvous, session
from peer.address import Address, encode_address
from peer.announcement import Announcement, Challenge
from peer.channel import ChannelKeys
from peer.control import Type
from peer.crypto import Identity, link_key
from peer.entries import (
    Claim, Entry, Epoch, Grant, Message, NeighbourReport, Redemption)
from peer.handshake import Initiation, ReceivedInitiation
from peer.invite import Invite
from peer.media import rtcp, streams
from peer.media.rtp import RTPPacket
from peer.media.vp8 import Descriptor
from peer.paths import CHALLENGE, CLOSE, PATH, RESPONSE
from peer.presence import Flag, Layer, Presence
from peer.ranges import Range, digest, whole
from peer.relay import FORWARD, RELAYED
from peer.rights import Genesis, redemption_message
from peer.subscription import Subscription

DOCUMENT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../docs/PROTOCOL.md")

NAME, PASSPHRASE = "lab", "correct horse battery staple"
BOOT, BERTS_BOOT = bytes(range(1, 9)), bytes(range(0x11, 0x19))
INDEX, BERTS_INDEX = bytes.fromhex("a1a2a3a4"), bytes.fromhex("b1b2b3b4")
CALL = bytes(range(0xE0, 0xF0))
STARTED_AT = 0x1941F297C00      # 2025-01-01T00:00:00Z in ms
OUTSIDE = Address("192.0.2.7", 40000)
SEQUENCES = 0xC0C1C2C3 << 32    # the upper half of the entries' sequence
ENTRY_HEADER = 49               # bytes before the body

# Blocks that are given, not computed.
INPUTS = {
    "seed-anna", "seed-bert", "announce-nonce", "challenge-nonce", "ephemeral-anna",
    "ephemeral-bert", "cookie", "cookie-nonce",
}


def blocks():
    """Name and bytes of each block of the document; what follows a # is a comment."""
    with open(DOCUMENT, encoding="utf-8") as file:
        text = file.read()
    found = re.findall(r"```hex ([a-z0-9-]+)\n(.*?)```", text, re.DOTALL)
    return {name: bytes.fromhex("".join(line.partition("#")[0] for line in body.splitlines()))
            for name, body in found}


class Computed:
    """Computes every block; `given` are the blocks of the document, of which it uses INPUTS."""

    def __init__(self, given):
        self._given = {name: given[name] for name in INPUTS}
        # An example that is signed for another channel than `lab` needs what the document says.
        self._genesis = Genesis(given["genesis"])
        self.anna = Identity(given["seed-anna"])
        self.bert = Identity(given["seed-bert"])
        self.keys = ChannelKeys(channel.secret_from_name(NAME))

    def all(self):
        result = {}
        for part in (self._identities, self._channel, self._discovery, self._handshake,
                     self._data, self._entries, self._control, self._rights, self._media,
                     self._rendezvous):
            result.update(part())
        return result

    def _identities(self):
        return {
            "id-anna": self.anna.id, "x25519-anna": self.anna.link_key,
            "id-bert": self.bert.id, "x25519-bert": link_key(self.bert.id),
        }

    def _channel(self):
        return {
            "name-key": self.keys.secret, "channel-id": self.keys.id,
            "announce-key": self.keys.announcement_key, "noise-psk": self.keys.noise_psk,
            "passphrase-salt": channel.passphrase_salt(NAME),
            "passphrase-key": channel.secret_from_passphrase(NAME, PASSPHRASE),
        }

    def _discovery(self):
        addresses = [OUTSIDE, Address("2001:db8::7", 40000)]
        echo = bytes(range(0x80, 0x90))
        first = Announcement(self.anna.id, BOOT, 7, addresses=addresses)
        answer = Announcement(self.anna.id, BOOT, 8, echo)
        challenge = Challenge(self.anna.id, BOOT, 7, echo)
        sealed = first.seal(self.anna, self.keys, self._given["announce-nonce"])
        return {
            "announce": first.encode(), "announce-datagram": sealed,
            "announce-signature": Announcement.open(self.keys, sealed).signature,
            "challenge": challenge.encode(),
            "challenge-datagram": challenge.seal(self.keys, self._given["challenge-nonce"]),
            "answer": answer.encode(),
            "answer-signature": Announcement.open(
                self.keys, answer.seal(self.anna, self.keys)).signature,
        }

    def _initiation(self, cookie=None):
        payload = handshake.initiation_payload(self.anna.id, BOOT, 1, BERTS_BOOT)
        return Initiation(self.anna, self.keys, self.bert.id, INDEX, payload,
                          self._given["ephemeral-anna"], cookie)

    def _handshake(self):
        begun = self._initiation()
        received = ReceivedInitiation(self.bert, self.keys, begun.message)
        payload = handshake.response_payload(BERTS_BOOT)
        response, berts = received.respond(BERTS_INDEX, payload, self._given["ephemeral-bert"])
        annas = begun.read_response(response)
        cookie = self._given["cookie"]
        reply = handshake.cookie_reply(
            self.bert, self.keys, begun.message, cookie, self._given["cookie-nonce"])
        return {
            "prologue": handshake.prologue(self.keys), "initiation-payload": received.payload,
            "initiation-mac-key": self.keys.initiation_mac_key(self.bert.link_key),
            "initiation": begun.message, "response-payload": annas.payload,
            "response-mac-key": self.keys.response_mac_key(self.bert.link_key),
            "response": response, "session-key-anna": annas.send_key,
            "session-key-bert": berts.send_key,
            "cookie-key": self.keys.cookie_key(self.bert.link_key), "cookie-reply": reply,
            "initiation-mac2": self._initiation(begun.read_cookie(reply)).message[-16:],
        }

    def _data(self):
        begun = self._initiation()
        received = ReceivedInitiation(self.bert, self.keys, begun.message)
        response, _ = received.respond(
            BERTS_INDEX, handshake.response_payload(BERTS_BOOT), self._given["ephemeral-bert"])
        link = session.Session(self.keys, begun.read_response(response), INDEX, True, 0)
        token = bytes(range(0x21, 0x29))
        return {
            "data-keepalive": link.seal(b"\0"), "data-control": link.seal(self._subscription()),
            "path-challenge": bytes([PATH, CHALLENGE]) + token,
            "path-response": bytes([PATH, RESPONSE]) + token, "path-close": bytes([PATH, CLOSE]),
            "relay-forward": bytes([RELAYED, FORWARD]) + self.bert.id[:8]
            + bytes([session.DATA]) + BERTS_INDEX + bytes(8),
        }

    @staticmethod
    def _control_payload(*messages):
        encoded = [control.encode(kind, value) for kind, value in messages]
        return bytes([control.CONTROL]) + b"".join(encoded)

    def _subscription(self):
        return self._control_payload((Type.SUBSCRIBE, Subscription(640, 360).encode()),
                                     (Type.PING, bytes(range(0x31, 0x39))))

    def _entry(self, number, lamport, body, channel_id=None):
        return Entry.sign(self.anna, channel_id or self.keys.id, SEQUENCES | number, lamport, body)

    def _presence(self):
        layers = (Layer(320, 180, 30), Layer(640, 360, 30))
        flags = Flag.AUDIO_MUTED | Flag.HAS_AUDIO
        return self._entry(1, 0x29, Presence(BOOT, flags, "Anna", CALL, 42, layers))

    def _claim(self):
        return self._entry(2, 0x2A, Claim(CALL, 1, STARTED_AT, 0))

    def _entries(self):
        presence, claim = self._presence(), self._claim()
        report = self._entry(3, 0x2B, NeighbourReport(BOOT, (self.bert.id[:8],)))
        message = self._entry(4, 0x2C, Message(STARTED_AT, (claim.id[:8],), None, b"Hello"))
        return {
            "entry-presence": presence.raw[:-64], "entry-presence-signature": presence.raw[-64:],
            "entry-presence-id": presence.id, "entry-claim": claim.raw[:-64],
            "entry-hearing": report.raw[:-64], "entry-message": message.raw[:-64],
        }

    def _control(self):
        ids = [self._presence().id, self._claim().id]
        prefixes = bytes(range(1, 9)) + bytes(range(0x11, 0x19))
        listed = whole(ids)
        assert listed == [Range(0, bytes(8), listed=tuple(one[:8] for one in ids))]
        return {
            "control-wish-ping": self._subscription(),
            "control-seen": self._control_payload((Type.SEEN, encode_address(OUTSIDE))),
            "control-received": self._control_payload((Type.RECEIVED, prefixes)),
            "control-digest": self._control_payload((Type.DIGEST, digest(ids))),
            "control-ranges": self._control_payload((Type.RANGES, listed[0].encode())),
        }

    def _rights(self):
        genesis = self._genesis
        head = genesis.owner + genesis.nonce + struct.pack(
            ">QB", genesis.created_at, genesis.settings) + b"\x03lab"
        expires_at = 1_767_225_600   # 2026-01-01T00:00:00Z
        grant = self._entry(5, 0x2D, Grant(self.bert.id, 3, expires_at, 0, 1), genesis.channel_id)
        redeemed = self.bert.sign(redemption_message(genesis.channel_id, self.anna.id))
        redemption = self._entry(7, 0x2F, Redemption(grant, redeemed), genesis.channel_id)
        epoch = self._entry(6, 0x2E, Epoch(1, self.keys.id, bytes(32), (self.bert.id,), ()))
        invite = Invite(NAME, self.keys.secret, peers=("192.0.2.7:40000",)).url()
        return {
            "genesis": head + self.anna.sign(b"muster/1 genesis" + head),
            "genesis-channel-id": genesis.channel_id, "entry-grant": grant.raw[:-64],
            "entry-redemption": redemption.raw[:-64], "entry-epoch": epoch.raw[:-64],
            "invite": invite.encode(),
        }

    def _media(self):
        base, berts_base, captured = 0x5A5B5C00, 0x6A6B6C00, 100.5
        video_ssrc = streams.video_ssrc(base, streams.CAMERA, 1)
        audio = RTPPacket(streams.AUDIO_PAYLOAD_TYPE, False, 1000, int(captured * 48_000),
                          streams.audio_ssrc(base), bytes.fromhex("78fffe"), 30)
        descriptor = Descriptor(True, 4660, 86, key_index=9).encode()
        video = RTPPacket(streams.video_payload_type(streams.CAMERA, 1), True, 2000,
                          int(captured * 90_000), video_ssrc, descriptor + bytes.fromhex("d00200"))
        report = rtcp.SenderReport(base, captured, int(captured * 48_000), 50, 4000)
        block = rtcp.ReportBlock(video_ssrc, 12, 3, 2100, 90, 0x648000, 0x8000)
        return {
            "rtp-audio": audio.encode(), "rtp-video": video.encode(),
            "rtcp-sender-report": report.encode(),
            "rtcp-receiver-report": rtcp.ReceiverReport(berts_base, [block]).encode(),
            "rtcp-nack": rtcp.Nack(berts_base, video_ssrc, [2001, 2002, 2004]).encode(),
            "rtcp-picture-loss": rtcp.PictureLoss(berts_base, video_ssrc).encode(),
        }

    def _rendezvous(self):
        token, cookie = bytes(range(0xA0, 0xA8)), bytes(range(0xB0, 0xC0))
        return {
            "rendezvous-tag": self.keys.rendezvous_tag(472_222).id,
            "rendezvous-hello": rendezvous.hello(token),
            "rendezvous-cookie": rendezvous.cookie_reply(token, cookie, 472_222, 512, OUTSIDE),
            "dht-tag": self.keys.dht_tag(19_675),
        }


def compare():
    """(names that are reproduced, what is wrong with the others)"""
    given = blocks()
    computed = Computed(given).all()
    good, wrong = [], []
    for name, value in given.items():
        if name in INPUTS:
            continue
        if name not in computed:
            wrong.append(f"{name}: expected to be computed here, saw nothing that does")
        elif computed[name] != value:
            wrong.append(f"{name}: expected {value.hex()}, saw {computed[name].hex()}")
        else:
            good.append(name)
    wrong += [f"{name}: expected in the document, saw no such block"
              for name in computed.keys() - given.keys()]
    return good, wrong


if __name__ == "__main__":
    reproduced, differing = compare()
    for line in [f"ok    {name}" for name in reproduced] + [f"FAIL  {one}" for one in differing]:
        print(line)
    sys.exit(1 if differing else 0)

"""Computes the examples of control messages, entries, rights, texts and media."""

import struct

from examples import BOOT, CALL, NAME, OUTSIDE, OUTSIDE_6, SEQUENCES, STARTED_AT
from peer import control
from peer.address import encode_address
from peer.control import Type
from peer.crypto import blake2b, xseal
from peer.document import equivocation_id
from peer.entries import (
    Claim, End, Entry, Epoch, Grant, Joining, Message, Moderation, NeighbourReport, Redemption)
from peer.invite import Invite
from peer.media import long_audio, redundancy, rtcp, streams
from peer.media.rtp import RTPPacket
from peer.media.vp8 import Descriptor, packetize
from peer.presence import Flag, Layer, Presence, Stream, StreamFlag
from peer.ranges import digest, whole
from peer.rights import redemption_message
from peer.sent_layer import Reason, SentLayer
from peer.subscription import ANY_RATE, Request, Subscription
from peer.texts import direct_key

_PEERS = ("192.0.2.7:40000",)
_UNKNOWN_OPTIONAL = 112
_ANNAS_BASE, _BERTS_BASE = 0x5A5B5C00, 0x6A6B6C00
_CAPTURED = 100.5   # seconds of the sender's clock


def _payload(*messages):
    encoded = [control.encode(kind, value) for kind, value in messages]
    return bytes([control.CONTROL]) + b"".join(encoded)


def subscription_and_ping():
    subscription = Subscription(streams.CAMERA, Request(640, 360))
    return _payload((Type.SUBSCRIBE, subscription.encode()),
                    (Type.PING, bytes(range(0x31, 0x39))))


# Entries

def _entry(given, number, lamport, body, channel_id=None):
    return Entry.sign(given.anna, channel_id or given.keys.id, SEQUENCES | number, lamport, body)


def _presence(given):
    layers = (Layer(320, 180, 30), Layer(640, 360, 30))
    camera = Stream(streams.CAMERA, "camera", layers=layers)
    flags = Flag.AUDIO_MUTED | Flag.HAS_AUDIO
    return _entry(given, 1, 0x29, Presence(BOOT, flags, "Anna", CALL, 42, (camera,)))


def _presence_with_streams(given):
    offered = (
        *_presence(given).body.streams,
        Stream(streams.SCREEN, "screen", layers=(Layer(1920, 1080, 15),)),
        Stream(2, "whiteboard", StreamFlag.MUTED | StreamFlag.TEST_PATTERN),
    )
    flags = Flag.AUDIO_MUTED | Flag.SHARING | Flag.HAS_AUDIO | Flag.RELAYS_NOTHING
    return _entry(given, 8, 0x30, Presence(BOOT, flags, "Anna", CALL, 42, offered))


def _presence_with_hand_over(given):
    flags = Flag.AUDIO_MUTED | Flag.HAS_AUDIO | Flag.HANDS_OVER
    return _entry(given, 12, 0x34, Presence(BOOT, flags, "Anna"))


def _claim(given):
    return _entry(given, 2, 0x2A, Claim(CALL, 1, STARTED_AT, 0, True))


def entries(given):
    presence, claim = _presence(given), _claim(given)
    report = _entry(given, 3, 0x2B, NeighbourReport(BOOT, (given.bert.id[:8],)))
    message = _entry(given, 4, 0x2C, Message(STARTED_AT, (claim.id[:8],), None, b"Hello"))
    return {
        "entry-presence": presence.raw[:-64], "entry-presence-signature": presence.raw[-64:],
        "entry-presence-id": presence.id, "entry-claim": claim.raw[:-64],
        "entry-presence-streams": _presence_with_streams(given).raw[:-64],
        "entry-presence-hands-over": _presence_with_hand_over(given).raw[:-64],
        "entry-end": _entry(given, 9, 0x31, End(CALL, 1)).raw[:-64],
        "entry-joining": _entry(given, 10, 0x32, Joining(CALL, Joining.MET)).raw[:-64],
        "entry-moderation": _entry(given, 11, 0x33, Moderation(
            CALL, given.bert.id, Moderation.MUTE_AUDIO | Moderation.REMOVE)).raw[:-64],
        "entry-neighbour-report": report.raw[:-64], "entry-message": message.raw[:-64],
        "equivocation-id": equivocation_id(given.anna.id),
    }


# Control messages

def messages(given):
    prefixes = bytes(range(1, 9)) + bytes(range(0x11, 0x19))
    target_and_token = given.bert.id + struct.pack(">Q", 7)
    candidates = encode_address(OUTSIDE) + encode_address(OUTSIDE_6)
    return {
        "control-subscribe-ping": subscription_and_ping(),
        "control-subscribe-rate": _payload(
            (Type.SUBSCRIBE, Subscription(streams.CAMERA, Request(320, 180, 15)).encode()),
            (Type.SUBSCRIBE, Subscription(
                streams.SCREEN, Request(0, 0, ANY_RATE, Reason.RANK)).encode())),
        "control-subscribe-cpu": _payload(
            (Type.SUBSCRIBE, Subscription(
                streams.CAMERA, Request(320, 180, 15, Reason.CPU)).encode())),
        "control-sent-layers": _payload(
            (Type.SENT_LAYER, SentLayer(streams.CAMERA, 640, 360, 15, Reason.BANDWIDTH).encode()),
            (Type.SENT_LAYER, SentLayer(
                streams.SCREEN, 0, 0, 0, Reason.RECEIVER_REQUEST).encode())),
        "control-seen": _payload((Type.SEEN, encode_address(OUTSIDE))),
        "control-received": _payload((Type.RECEIVED, prefixes)),
        "control-mixed": _payload(
            (Type.PONG, bytes(range(0x31, 0x39))), (Type.WANT, _claim(given).id[:8]),
            (Type.PROBE, target_and_token), (Type.PROBE_RESULT, target_and_token + b"\1"),
            (Type.REFUSED, b"\4"), (Type.CANDIDATES, candidates),
            (_UNKNOWN_OPTIONAL, bytes.fromhex("cafe"))),
    }


def comparisons(given):
    few = [_presence(given).id, _claim(given).id]
    many = [_entry(given, 0x100 + number, 100 + number, Message(0, (), None, bytes([number]))).id
            for number in range(48)]
    result = {}
    for suffix, ids in (("", few), ("-48", many)):
        ranges = b"".join(one.encode() for one in whole(ids))
        result["control-digest" + suffix] = _payload((Type.DIGEST, digest(ids)))
        result["control-ranges" + suffix] = _payload((Type.RANGES, ranges))
    return result


# Texts and rights

def texts(given):
    key = direct_key(given.anna, given.bert.id, given.keys.id)
    nonce = given["direct-nonce"]
    return {"direct-key": key,
            "direct-content": nonce + xseal(key, nonce, b"Hello, Bert", given.anna.id)}


def rights(given):
    genesis = given.genesis
    head = genesis.owner + genesis.nonce + struct.pack(
        ">QB", genesis.created_at, genesis.settings) + b"\x03lab"
    expires_at = 1_767_225_600   # 2026-01-01T00:00:00Z
    grant = _entry(given, 5, 0x2D, Grant(given.bert.id, 3, expires_at, 0, (3, 1_798_761_600)),
                   genesis.channel_id)
    redeemed = given.bert.sign(redemption_message(genesis.channel_id, given.anna.id))
    redemption = _entry(given, 7, 0x2F, Redemption(grant.raw, redeemed), genesis.channel_id)
    epoch = _entry(given, 6, 0x2E, Epoch(1, given.keys.id, bytes(32), (given.bert.id,), ()))
    invite = Invite(NAME, given.keys.secret, peers=_PEERS)
    created = Invite(NAME, given.keys.secret, genesis=genesis, one_time_key=given.bert,
                     grant=grant, peers=_PEERS)
    return {
        "genesis": head + given.anna.sign(b"muster/1 genesis" + head),
        "genesis-channel-id": genesis.channel_id, "entry-grant": grant.raw[:-64],
        "entry-redemption": redemption.raw[:-64], "entry-epoch": epoch.raw[:-64],
        "invite": invite.url().encode(), "invite-created": created.url().encode(),
    }


# Media

def _video(stream, layer, sequence, payload, is_last=True):
    return RTPPacket(streams.video_payload_type(stream, layer), is_last, sequence,
                     int(_CAPTURED * streams.VIDEO_CLOCK),
                     streams.video_ssrc(_ANNAS_BASE, stream, layer), payload).encode()


def rtp(given):
    audio = RTPPacket(streams.AUDIO_PAYLOAD_TYPE, False, 1000,
                      int(_CAPTURED * streams.AUDIO_CLOCK), streams.audio_ssrc(_ANNAS_BASE),
                      bytes.fromhex("78fffe"), 30)
    copies = redundancy.encode([(1920, bytes.fromhex("780102"))], bytes.fromhex("78fffe"))
    audio_with_copy = RTPPacket(
        streams.REDUNDANT_AUDIO_PAYLOAD_TYPE, False, 1000, int(_CAPTURED * streams.AUDIO_CLOCK),
        streams.audio_ssrc(_ANNAS_BASE), copies, 30)
    three = long_audio.join([bytes.fromhex(one) for one in ("480102", "480304", "480506")])
    audio_long = RTPPacket(streams.AUDIO_PAYLOAD_TYPE, False, 1000,
                           int(_CAPTURED * streams.AUDIO_CLOCK), streams.audio_ssrc(_ANNAS_BASE),
                           three, 30)
    camera = Descriptor(True, 4660, 86, key_index=9).encode()
    screen = Descriptor(True, 7, 2, key_index=1).encode()
    frame = bytes(7 * number % 256 for number in range(2500))
    payloads = packetize(frame, Descriptor(True, 100, 20, key_index=3))
    packets = [_video(streams.CAMERA, 0, 500 + number, payload, number == len(payloads) - 1)
               for number, payload in enumerate(payloads)]
    return {
        "rtp-audio": audio.encode(),
        "rtp-audio-copy": audio_with_copy.encode(),
        "rtp-audio-long": audio_long.encode(),
        "rtp-video": _video(streams.CAMERA, 1, 2000, camera + bytes.fromhex("d00200")),
        "rtp-screen": _video(streams.SCREEN, 0, 3000, screen + bytes.fromhex("d00200")),
        "rtp-frame-headers": b"".join(one[:18] for one in packets),
        "rtp-frame-hash": blake2b(32, b"".join(packets)),
    }


def reports(given):
    layer_1 = streams.video_ssrc(_ANNAS_BASE, streams.CAMERA, 1)
    report = rtcp.SenderReport(
        _ANNAS_BASE, _CAPTURED, int(_CAPTURED * streams.AUDIO_CLOCK), 50, 4000)
    block = rtcp.ReportBlock(layer_1, 12, 3, 2100, 90, 0x648000, 0x8000)
    return {
        "rtcp-sender-report": report.encode(),
        "rtcp-receiver-report": rtcp.ReceiverReport(_BERTS_BASE, [block]).encode(),
        "rtcp-nack": rtcp.Nack(_BERTS_BASE, layer_1, [2001, 2002, 2004]).encode(),
        "rtcp-pli": rtcp.PictureLoss(_BERTS_BASE, layer_1).encode(),
    }


PARTS = (messages, entries, comparisons, texts, rights, rtp, reports)

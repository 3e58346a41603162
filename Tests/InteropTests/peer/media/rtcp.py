"""RTCP: sender and receiver reports, NACK and PLI (RFC 3550, RFC 4585; section 13)."""

import struct
from dataclasses import dataclass

_SENDER_REPORT, _RECEIVER_REPORT, _TRANSPORT_FEEDBACK, _PAYLOAD_FEEDBACK = 200, 201, 205, 206
_NACK_FORMAT = _PLI_FORMAT = 1
_MOST_IN_NACK = 256


@dataclass
class SenderReport:
    """`clock` is the sender's media clock in seconds, in place of wall time."""

    ssrc: int
    clock: float
    timestamp: int
    packets: int
    octets: int

    def encode(self):
        ntp = int(self.clock * (1 << 32)) % (1 << 64)
        return _header(0, _SENDER_REPORT, 6) + struct.pack(
            ">IQIII", self.ssrc, ntp, self.timestamp & 0xFFFFFFFF, self.packets & 0xFFFFFFFF,
            self.octets & 0xFFFFFFFF)

    @classmethod
    def decode(cls, body):
        ssrc, ntp, timestamp, packets, octets = struct.unpack_from(">IQIII", body)
        return cls(ssrc, ntp / (1 << 32), timestamp, packets, octets)


@dataclass
class ReportBlock:
    """A report block: reception of one stream (RFC 3550, 6.4.1)."""

    ssrc: int
    fraction_lost: int
    lost: int
    highest_sequence: int
    jitter: int
    last_report: int
    since_last_report: int

    def encode(self):
        return struct.pack(
            ">IIIIII", self.ssrc, self.fraction_lost << 24 | self.lost & 0xFFFFFF,
            self.highest_sequence & 0xFFFFFFFF, self.jitter, self.last_report,
            self.since_last_report)

    @classmethod
    def decode(cls, data):
        ssrc, lost, *others = struct.unpack(">IIIIII", data)
        total = lost & 0xFFFFFF
        return cls(ssrc, lost >> 24, total - (total >> 23 << 24), *others)


@dataclass
class ReceiverReport:
    ssrc: int
    blocks: list

    def encode(self):
        header = _header(len(self.blocks), _RECEIVER_REPORT, 1 + 6 * len(self.blocks))
        blocks = b"".join(block.encode() for block in self.blocks)
        return header + struct.pack(">I", self.ssrc) + blocks

    @classmethod
    def decode(cls, body, count):
        if len(body) < 4 + 24 * count:
            raise struct.error("too few blocks")
        blocks = [ReportBlock.decode(body[4 + 24 * i:28 + 24 * i]) for i in range(count)]
        return cls(int.from_bytes(body[:4], "big"), blocks)


@dataclass
class Nack:
    """Asks for packets of the stream `media` again."""

    sender: int
    media: int
    sequences: list

    def encode(self):
        items, left = b"", sorted(set(self.sequences))[:_MOST_IN_NACK]
        while left:
            first = left.pop(0)
            following = [one for one in left if one - first <= 16]
            left = left[len(following):]
            mask = sum(1 << one - first - 1 for one in following)
            items += struct.pack(">HH", first & 0xFFFF, mask)
        header = _header(_NACK_FORMAT, _TRANSPORT_FEEDBACK, 2 + len(items) // 4)
        return header + struct.pack(">II", self.sender, self.media) + items

    @classmethod
    def decode(cls, body):
        sender, media = struct.unpack_from(">II", body)
        sequences = []
        for first, mask in struct.iter_unpack(">HH", body[8:]):
            sequences.append(first)
            sequences += [(first + 1 + bit) & 0xFFFF for bit in range(16) if mask >> bit & 1]
        return cls(sender, media, sequences)


@dataclass
class PictureLoss:
    """PLI: asks for a keyframe of the stream `media`."""

    sender: int
    media: int

    def encode(self):
        return _header(_PLI_FORMAT, _PAYLOAD_FEEDBACK, 2) + struct.pack(
            ">II", self.sender, self.media)

    @classmethod
    def decode(cls, body):
        return cls(*struct.unpack_from(">II", body))


def _header(count, kind, words):
    return struct.pack(">BBH", 0x80 | count, kind, words)


def decode_all(payload):
    """The messages of a payload; unknown types are skipped, and a bad one ends the list."""
    messages, offset = [], 0
    while offset + 4 <= len(payload) and payload[offset] >> 6 == 2:
        count, kind = payload[offset] & 31, payload[offset + 1]
        end = offset + 4 + 4 * int.from_bytes(payload[offset + 2:offset + 4], "big")
        if end > len(payload):
            break
        try:
            message = _decode(kind, count, payload[offset + 4:end])
        except struct.error:
            break
        if message is not None:
            messages.append(message)
        offset = end
    return messages


def _decode(kind, count, body):
    if kind == _SENDER_REPORT:
        return SenderReport.decode(body)
    if kind == _RECEIVER_REPORT:
        return ReceiverReport.decode(body, count)
    if kind == _TRANSPORT_FEEDBACK and count == _NACK_FORMAT:
        return Nack.decode(body)
    if kind == _PAYLOAD_FEEDBACK and count == _PLI_FORMAT:
        return PictureLoss.decode(body)
    return None

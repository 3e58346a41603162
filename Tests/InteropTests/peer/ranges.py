"""Comparing two documents: digests, ranges, fingerprints (section 9, "Comparison by ranges")."""

import struct
from dataclasses import dataclass

from .reader import Malformed, Reader

LISTED = 32          # a range with at most so many items is listed when asked for
LISTED_CHILD = 4     # a child of a fingerprinted range with at most so many is listed at once
DEEPEST = 60
MOST_RANGES = 40
_MODULUS = 1 << 256


@dataclass(frozen=True)
class Range:
    """All items whose ids begin with the first `depth` bits of `prefix`.

    Either their `fingerprint`, or the first 8 bytes of each of their ids as `listed`.
    """

    depth: int
    prefix: bytes
    fingerprint: bytes = None
    listed: tuple = None

    def encode(self):
        head = bytes([self.depth]) + self.prefix
        if self.listed is None:
            return head + b"\0" + self.fingerprint
        return head + bytes([1, len(self.listed)]) + b"".join(self.listed)

    def has(self, item_id):
        return not self.depth or _bits(item_id, self.depth) == _bits(self.prefix, self.depth)

    def overlaps(self, other):
        depth = min(self.depth, other.depth)
        return depth == 0 or _bits(self.prefix, depth) == _bits(other.prefix, depth)


def _bits(item_id, depth):
    return int.from_bytes(item_id[:8], "big") >> (64 - depth)


def decode_ranges(value):
    reader = Reader(value)
    ranges = []
    while not reader.is_at_end:
        depth, prefix, content = reader.number(1), reader.take(8), reader.number(1)
        if depth > DEEPEST or content > 1:
            raise Malformed("a range that cannot be")
        if content == 0:
            ranges.append(Range(depth, prefix, fingerprint=reader.take(16)))
        else:
            ranges.append(Range(depth, prefix, listed=tuple(reader.list_of(8, LISTED))))
    if len(ranges) > MOST_RANGES:
        raise Malformed("too many ranges")
    return ranges


def _prefixes(ids):
    """The ids in ascending order, as in lists."""
    return tuple(sorted(one[:8] for one in ids))


def id_sum(ids):
    return sum(int.from_bytes(one, "big") for one in ids) % _MODULUS


def digest(ids):
    return struct.pack(">I", len(ids)) + id_sum(ids).to_bytes(32, "big")


def fingerprint(ids):
    return id_sum(ids).to_bytes(32, "big")[16:]


def whole(ids):
    """The ranges that answer a digest that differs."""
    if len(ids) <= LISTED:
        return [Range(0, bytes(8), listed=_prefixes(ids))]
    return _children(ids, Range(0, bytes(8)))


def _children(ids, parent):
    children = []
    for digit in range(16):
        prefix = int.from_bytes(parent.prefix, "big") | digit << (60 - parent.depth)
        child = Range(parent.depth + 4, prefix.to_bytes(8, "big"))
        children.append(_described(ids, child, LISTED_CHILD))
    return children


def _described(ids, area, most_listed):
    inside = [one for one in ids if area.has(one)]
    if len(inside) <= most_listed:
        return Range(area.depth, area.prefix, listed=_prefixes(inside))
    return Range(area.depth, area.prefix, fingerprint=fingerprint(inside))


def compare(ids, ranges):
    """The answer to a peer's ranges: (ranges to send, ids to send, 8-byte prefixes to request)."""
    answers, to_send, to_want, looked_at = [], [], [], []
    known = {one[:8] for one in ids}
    for area in ranges:
        if area.depth % 4 or any(area.overlaps(earlier) for earlier in looked_at):
            continue  # of ranges that overlap the first counts
        looked_at.append(area)
        inside = [one for one in ids if area.has(one)]
        if area.listed is not None:
            to_send += [one for one in inside if one[:8] not in area.listed]
            to_want += [one for one in area.listed if one not in known]
        elif fingerprint(inside) != area.fingerprint:
            answers += _answer(inside, area)
    return answers, to_send, to_want


def _answer(inside, area):
    if len(inside) <= LISTED or area.depth == DEEPEST:
        return [Range(area.depth, area.prefix, listed=_prefixes(inside)[:LISTED])]
    return _children(inside, area)

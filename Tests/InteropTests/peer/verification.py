"""Verification codes: two people compare them by voice (section 12)."""

import struct

from .crypto import blake2b

_ROUNDS = 65_536
_GROUPS, _GROUP_MODULUS = 5, 100_000


def verification_code(one, other, channel_id):
    """25 digits in groups of five, the same for both members."""
    both = b"".join(sorted((one, other))) + channel_id
    digest = blake2b(64, b"muster/1 verification" + both)
    for _ in range(_ROUNDS):
        digest = blake2b(64, digest + both)
    words = struct.unpack_from(f">{_GROUPS}Q", digest)
    return " ".join(f"{word % _GROUP_MODULUS:05}" for word in words)

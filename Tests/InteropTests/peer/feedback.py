"""Congestion feedback: when the packets of a session have arrived (section 7)."""

import struct

FEEDBACK = 0x04
LIMIT = 512                  # packets in one report
UNITS_PER_SECOND = 4000      # times are in units of 250 us
_RECEIVED, _AGE, _TOO_OLD = 0x8000, 0x1FFF, 0x1FFE
_HEADER = struct.Struct(">B4sQI")


def encode(session_index, base, report_time, ages):
    """`ages`: for each packet from `base` on its age in units, or None if it has not arrived."""
    blocks = (0 if age is None else _RECEIVED | min(age, _TOO_OLD) for age in ages)
    return (_HEADER.pack(FEEDBACK, session_index, base, report_time % (1 << 32))
            + b"".join(struct.pack(">H", block) for block in blocks))


def decode(payload):
    """(session index, base, report time, ages), or None for a malformed report; packets too old
    for their age count as `_TOO_OLD` units.
    """
    blocks, half = divmod(len(payload) - _HEADER.size, 2)
    if half or not 1 <= blocks <= LIMIT or payload[0] != FEEDBACK:
        return None
    _, session_index, base, report_time = _HEADER.unpack_from(payload)
    if base + blocks > 1 << 64:
        return None
    ages = [block & _AGE if block & _RECEIVED else None
            for block, in struct.iter_unpack(">H", payload[_HEADER.size:])]
    return session_index, base, report_time, ages

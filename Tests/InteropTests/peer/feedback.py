"""Congestion feedback: when the packets of a session have arrived (section 7)."""

import struct

FEEDBACK = 0x04
_RECEIVED, _TOO_OLD = 0x8000, 0x1FFE
_HEADER = struct.Struct(">B4sQI")


def encode(session_index, base, report_time, ages):
    """`ages`: for each packet from `base` on its age in units of 250 us, or None if it has
    not arrived.
    """
    blocks = (0 if age is None else _RECEIVED | min(age, _TOO_OLD) for age in ages)
    return (_HEADER.pack(FEEDBACK, session_index, base, report_time % (1 << 32))
            + b"".join(struct.pack(">H", block) for block in blocks))

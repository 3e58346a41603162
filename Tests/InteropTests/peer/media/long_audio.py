"""Long packets: Opus packets of three frames of one size each (RFC 6716, section 3.2.5)."""

from ..reader import Malformed, Reader

CAPABILITY = 4
_SEVERAL, _PADDED, _SIZES_DIFFER = 3, 0x40, 0x80
_MOST_FRAMES = 3


def join(packets):
    """The long packet of packets of one frame each, which have the same mode and size."""
    heads, sizes = {one[0] for one in packets}, {len(one) for one in packets}
    assert len(heads) == len(sizes) == 1
    return (bytes([heads.pop() | _SEVERAL, len(packets)])
            + b"".join(one[1:] for one in packets))


def frames(packet):
    """The packets of one frame each that an Opus packet consists of."""
    reader = Reader(packet)
    head = reader.number(1)
    if head & 3 != _SEVERAL:
        return [packet]
    flags = reader.number(1)
    count = flags & 0x3F
    if not 1 <= count <= _MOST_FRAMES:
        raise Malformed(f"{count} frames, at most {_MOST_FRAMES}")
    padding = 0
    while flags & _PADDED:
        more = reader.number(1)
        padding += min(more, 254)
        if more < 255:
            break
    sizes = [_size(reader) for _ in range(count - 1)] if flags & _SIZES_DIFFER else None
    rest = reader.rest()
    rest = rest[:len(rest) - padding] if padding <= len(rest) else None
    if rest is None or sizes is None and len(rest) % count or sum(sizes or ()) > len(rest):
        raise Malformed("frames that do not fill the packet")
    sizes = (sizes + [len(rest) - sum(sizes)] if sizes is not None
             else [len(rest) // count] * count)
    result, start = [], 0
    for size in sizes:
        result.append(bytes([head & ~_SEVERAL]) + rest[start:start + size])
        start += size
    return result


def _size(reader):
    first = reader.number(1)
    return first if first < 252 else first + 4 * reader.number(1)

"""Media files that are sent and recorded: VP8 in IVF, Opus in Ogg (RFC 3533, RFC 7845)."""

import struct

_IVF_HEADER = struct.Struct("<4sHH4sHHIIII")
_IVF_FRAME = struct.Struct("<IQ")
_OGG_PAGE = struct.Struct("<4sBBQIIIB")
_OGG_FIRST = 2   # flag of the first page
_SAMPLES = 960  # of a packet: 20 ms at 48 kHz


class IVFFile:
    """Reads all frames of a VP8 file."""

    def __init__(self, path):
        with open(path, "rb") as file:
            data = file.read()
        header = _IVF_HEADER.unpack_from(data)
        mark, _, length, codec, self.width, self.height, rate, scale, *_ = header
        if mark != b"DKIF" or codec != b"VP80":
            raise ValueError(f"{path} is no IVF file of VP8")
        self.rate = round(rate / scale)
        self.frames = []
        offset = length
        while offset + _IVF_FRAME.size <= len(data):
            size, _ = _IVF_FRAME.unpack_from(data, offset)
            offset += _IVF_FRAME.size
            self.frames.append(data[offset:offset + size])
            offset += size


class IVFWriter:
    """Frames with timestamps of 90 kHz."""

    def __init__(self, path, width, height):
        self._file = open(path, "wb")
        self._file.write(_IVF_HEADER.pack(b"DKIF", 0, 32, b"VP80", width, height, 90_000, 1, 0, 0))

    def write(self, timestamp, frame):
        self._file.write(_IVF_FRAME.pack(len(frame), timestamp) + frame)
        self._file.flush()

    def close(self):
        self._file.close()


def read_opus(path):
    """The Opus packets of an Ogg file, without its two headers."""
    with open(path, "rb") as file:
        data = file.read()
    packets, packet, offset = [], b"", 0
    while offset < len(data):
        count = data[offset + _OGG_PAGE.size - 1]
        start = offset + _OGG_PAGE.size
        offset = start + count
        for size in data[start:start + count]:
            packet += data[offset:offset + size]
            offset += size
            if size < 255:  # the last segment of a packet
                packets.append(packet)
                packet = b""
    return packets[2:]


class OpusWriter:
    """One page for each packet."""

    def __init__(self, path):
        self._file = open(path, "wb")
        self._pages = 0
        self._position = 0
        self._page(struct.pack("<8sBBHIhB", b"OpusHead", 1, 1, 0, 48_000, 0, 0), _OGG_FIRST)
        self._page(struct.pack("<8sI6sI", b"OpusTags", 6, b"muster", 0))

    def write(self, packet):
        self._position += _SAMPLES
        self._page(packet)

    def close(self):
        self._file.close()

    def _page(self, packet, flags=0):
        sizes = bytes([255] * (len(packet) // 255) + [len(packet) % 255])
        page = bytearray(_OGG_PAGE.pack(
            b"OggS", 0, flags, self._position, 1, self._pages, 0, len(sizes)))
        page += sizes + packet
        struct.pack_into("<I", page, 22, _checksum(page))
        self._file.write(page)
        self._pages += 1


def _checksum_table():
    table = []
    for value in range(256):
        remainder = value << 24
        for _ in range(8):
            remainder = (remainder << 1 ^ (0x04C11DB7 if remainder >> 31 else 0)) & 0xFFFFFFFF
        table.append(remainder)
    return table


_TABLE = _checksum_table()


def _checksum(page):
    """Ogg's CRC-32: of polynomial 04c11db7, neither reflected nor inverted."""
    remainder = 0
    for byte in page:
        remainder = (remainder << 8 & 0xFFFFFFFF) ^ _TABLE[remainder >> 24 ^ byte]
    return remainder

"""Addresses on the wire, and which of them may be answered (section 1)."""

import ipaddress
import struct
from typing import NamedTuple

from .reader import Malformed


class Address(NamedTuple):
    """A host, as text with its zone if it has one, and a UDP port."""

    host: str
    port: int

    @property
    def ip(self):
        return ipaddress.ip_address(self.host.split("%")[0])

    def __str__(self):
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


class Via(NamedTuple):
    """A relayed route (section 7): the node ids of the relaying neighbour and of the member."""

    neighbour: bytes
    member: bytes

    def __str__(self):
        return f"through {self.neighbour[:8].hex()}"


def parse_address(text):
    """HOST:PORT or [HOST]:PORT, as people write it."""
    host, _, port = text.rpartition(":")
    return Address(host.strip("[]"), int(port))


def encode_address(address):
    """Family 1, host 4 or 16, port 2."""
    return bytes([address.ip.version]) + address.ip.packed + struct.pack(">H", address.port)


def decode_address(reader):
    size = {4: 4, 6: 16}.get(reader.number(1))
    if size is None:
        raise Malformed("unknown address family")
    host = str(ipaddress.ip_address(reader.take(size)))
    return Address(host, reader.number(2))


def is_unicast(address):
    """Whether a datagram may be sent there as to one host."""
    ip = address.ip
    if ip.version == 6 and ip.ipv4_mapped is not None:
        ip = ip.ipv4_mapped
    if ip.version == 6:
        outside = ip.packed[0] == 0xFF or int(ip) == 0
    else:
        outside = ip.packed[0] == 0 or ip.packed[0] >= 224
    return address.port != 0 and not outside

"""Captures an interface's traffic, parses it, and sends datagrams with any source address."""

import ipaddress
import socket
import struct
import threading
import time

from netns import inside

_ETH_P_ALL = 3
_SO_RCVBUFFORCE = 33
# packet(7): the direction of a captured frame, as seen by the host.
TO_US, BROADCAST, MULTICAST, TO_OTHERS, OUTGOING = range(5)


class Datagram:
    """One UDP datagram of a captured frame."""

    __slots__ = ("at", "kind", "source", "source_port", "target", "target_port", "dscp",
                 "payload")

    @property
    def is_to_one(self):
        address = ipaddress.ip_address(self.target)
        return not address.is_multicast and not self.target.endswith(".255")

    def __repr__(self):
        return (f"{self.source}:{self.source_port} to {self.target}:{self.target_port},"
                f" {len(self.payload)} bytes, first {self.payload[:1].hex()}")


class Capture:
    """Captures every frame of an interface from now until `stop`."""

    def __init__(self, namespace, interface="eth0"):
        with inside(namespace):
            self._socket = socket.socket(
                socket.AF_PACKET, socket.SOCK_RAW, socket.htons(_ETH_P_ALL))
        self._socket.setsockopt(socket.SOL_SOCKET, _SO_RCVBUFFORCE, 32 << 20)
        self._socket.bind((interface, _ETH_P_ALL))
        self._socket.settimeout(0.1)
        self._frames = []
        self._running = True
        self._thread = threading.Thread(target=self._read, daemon=True)
        self._thread.start()

    def stop(self):
        if self._running:
            self._running = False
            self._thread.join()
            self._socket.close()

    @property
    def frames(self):
        """The raw frames, as (when, kind, bytes)."""
        return list(self._frames)

    @property
    def datagrams(self):
        return [found for frame in self.frames if (found := parse(*frame))]

    def _read(self):
        while self._running:
            try:
                frame, address = self._socket.recvfrom(65536)
            except TimeoutError:
                continue
            except OSError:
                return
            self._frames.append((time.monotonic(), address[2], frame))


def parse(at, kind, frame):
    """The UDP datagram in an Ethernet frame; None for anything else."""
    protocol = frame[12:14]
    result = Datagram()
    if protocol == b"\x08\x00" and frame[23] == socket.IPPROTO_UDP:
        start = 14 + (frame[14] & 15) * 4
        result.dscp = frame[15] >> 2
        result.source = socket.inet_ntop(socket.AF_INET, frame[26:30])
        result.target = socket.inet_ntop(socket.AF_INET, frame[30:34])
    elif protocol == b"\x86\xdd" and frame[20] == socket.IPPROTO_UDP:
        start = 54
        result.dscp = (frame[14] << 8 | frame[15]) >> 6 & 63
        result.source = socket.inet_ntop(socket.AF_INET6, frame[22:38])
        result.target = socket.inet_ntop(socket.AF_INET6, frame[38:54])
    else:
        return None
    result.source_port, result.target_port, length = struct.unpack_from("!HHH", frame, start)
    result.payload = frame[start + 8:start + length]
    result.at, result.kind = at, kind
    return result


class Forger:
    """Sends UDP datagrams from one host under any address."""

    def __init__(self, host):
        self._mac = bytes.fromhex(host.mac.replace(":", ""))
        with inside(host.namespace):
            self._socket = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, 0)
        self._socket.bind(("eth0", 0))

    def send(self, mac, like, payload):
        """Sends `payload` to the host with this MAC, addressed like a captured datagram."""
        ports = struct.pack("!HHH", like.source_port, like.target_port, 8 + len(payload))
        source, target = packed(like.source), packed(like.target)
        # RFC 768, RFC 8200 section 8.1: the sum covers pseudo header, header and data.
        pseudo = source + target + struct.pack("!II", 8 + len(payload), socket.IPPROTO_UDP)
        check = checksum(pseudo + ports + b"\0\0" + payload) or 0xFFFF
        udp = ports + struct.pack("!H", check) + payload
        if len(source) == 4:
            header = struct.pack(
                "!BBHHHBBH", 0x45, 0, 20 + len(udp), 0, 0x4000, 64, socket.IPPROTO_UDP, 0)
            header += source + target
            header = header[:10] + struct.pack("!H", checksum(header)) + header[12:]
            protocol = b"\x08\x00"
        else:
            header = struct.pack("!IHBB", 6 << 28, len(udp), socket.IPPROTO_UDP, 64)
            header += source + target
            protocol = b"\x86\xdd"
        frame = bytes.fromhex(mac.replace(":", "")) + self._mac + protocol + header + udp
        try:
            self._socket.send(frame)
        except OSError:
            pass  # a full queue: the datagram is lost, as on any network

    def close(self):
        self._socket.close()


def packed(address):
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    return socket.inet_pton(family, address)


def checksum(data):
    """RFC 1071: the complement of the ones' complement sum, which is the remainder by 65,535."""
    if len(data) % 2:
        data += b"\0"
    total = int.from_bytes(data, "big") % 65535
    return 65535 - total if total else 0

"""Announcements on the local network: multicast, and the discovery port (sections 1, 4 and 5)."""

import random
import socket
import struct

_PORT = 47474
_GROUP4, _GROUP6 = "239.192.77.83", "ff02::4d53"
_WAITS = (0.25, 0.5, 1, 2, 5)  # seconds; the last one from then on
_VARIATION = 0.2


class LocalNetwork:
    """Receives on the discovery port, and announces out of every interface from the node's own."""

    def __init__(self, node):
        self._node = node
        for family, join in ((socket.AF_INET, _join4), (socket.AF_INET6, _join6)):
            file = _discovery_socket(family)
            for index, _ in socket.if_nameindex():
                try:
                    join(file, index)
                except OSError:
                    pass  # an interface without multicast, or without addresses
            node.loop.when_readable(file, lambda file=file: node.transport.read(file))

    def start(self, round_number=0):
        datagram = self._node.discovery.announcement()
        for index, _ in socket.if_nameindex():
            self._send4(index, datagram)
            self._send6(index, datagram)
        wait = _WAITS[min(round_number, len(_WAITS) - 1)]
        wait *= random.uniform(1 - _VARIATION, 1 + _VARIATION)
        self._node.loop.after(wait, lambda: self.start(round_number + 1))

    def _send4(self, index, datagram):
        file = self._node.transport.socket(4)
        if file is None:
            return
        try:
            file.setsockopt(socket.IPPROTO_IP, socket.IP_MULTICAST_IF,
                            struct.pack("=4s4si", bytes(4), bytes(4), index))
            file.sendto(datagram, (_GROUP4, _PORT))
        except OSError:
            pass

    def _send6(self, index, datagram):
        file = self._node.transport.socket(6)
        if file is None:
            return
        try:
            file.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_MULTICAST_IF, index)
            file.sendto(datagram, (_GROUP6, _PORT, 0, index))
        except OSError:
            pass


def _discovery_socket(family):
    """All nodes of a host share the discovery port. Nothing is ever sent from it."""
    file = socket.socket(family, socket.SOCK_DGRAM)
    file.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    if family == socket.AF_INET6:
        file.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
    file.bind(("", _PORT))
    file.setblocking(False)
    return file


def _join4(file, index):
    group = struct.pack("=4s4si", socket.inet_aton(_GROUP4), bytes(4), index)
    file.setsockopt(socket.IPPROTO_IP, socket.IP_ADD_MEMBERSHIP, group)


def _join6(file, index):
    group = socket.inet_pton(socket.AF_INET6, _GROUP6) + struct.pack("=i", index)
    file.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_JOIN_GROUP, group)

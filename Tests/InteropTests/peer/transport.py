"""One UDP port for IPv4 and IPv6 (section 4)."""

import socket

from .address import Address
from .session import LONGEST_DATAGRAM

_IP_MTU_DISCOVER, _IP_PMTUDISC_DO = 10, 2      # ip(7): don't fragment
_IPV6_MTU_DISCOVER = 23
_RECEIVE_BUFFER = 1 << 20
_AT_ONCE = 64  # datagrams read before timers have their turn


class Transport:
    def __init__(self, loop, listen, receive):
        """`listen`: addresses, at most one of each family; `receive(datagram, address)`."""
        self._receive = receive
        self._sockets = {}
        port = 0
        for address in listen:
            file = _bound(address, port)
            port = file.getsockname()[1]
            self._sockets[address.ip.version] = file
            loop.when_readable(file, lambda file=file: self.read(file))

    @property
    def addresses(self):
        return [Address(*file.getsockname()[:2]) for file in self._sockets.values()]

    @property
    def port(self):
        return self.addresses[0].port

    def socket(self, family):
        """The socket of IP version 4 or 6, or None."""
        return self._sockets.get(family)

    def send(self, address, datagram):
        file = self._sockets.get(address.ip.version)
        if file is None or len(datagram) > LONGEST_DATAGRAM:
            return
        host, _, zone = address.host.partition("%")
        target = (host, address.port, 0, int(zone or 0)) if ":" in host else (host, address.port)
        try:
            file.sendto(datagram, target)
        except OSError:
            pass  # as good as lost

    def read(self, file):
        for _ in range(_AT_ONCE):
            try:
                datagram, source = file.recvfrom(2048)
            except BlockingIOError:
                return
            except OSError:
                continue  # an ICMP error of something sent before
            self._receive(datagram, _address(source))


def _address(source):
    host, port, *scope = source
    zone = f"%{scope[1]}" if scope and scope[1] else ""
    return Address(host.partition("%")[0] + zone, port)


def _bound(address, port):
    """A socket on this address; on `port` if the address leaves it open."""
    is_6 = address.ip.version == 6
    file = socket.socket(socket.AF_INET6 if is_6 else socket.AF_INET, socket.SOCK_DGRAM)
    if is_6:
        file.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
        file.setsockopt(socket.IPPROTO_IPV6, _IPV6_MTU_DISCOVER, _IP_PMTUDISC_DO)
    else:
        file.setsockopt(socket.IPPROTO_IP, _IP_MTU_DISCOVER, _IP_PMTUDISC_DO)
    file.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, _RECEIVE_BUFFER)
    file.bind((address.host, address.port or port))
    file.setblocking(False)
    return file

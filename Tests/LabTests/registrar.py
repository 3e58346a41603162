"""A rendezvous client for attacks, with any number of source addresses.

The protocol is in section 14 of docs/PROTOCOL.md.
"""

import ctypes
import ctypes.util
import hashlib
import os
import select
import socket
import struct
import threading
import time

from netns import inside, ip

HELLO, COOKIE, REGISTRATION, RECORDS = 0x30, 0x31, 0x32, 0x33
WANTS_RECORDS = 1
_LABEL = b"muster/1 rendezvous"
_IP_PKTINFO = 8  # linux/in.h; in_pktinfo: the interface, the local address, the header's address

try:
    _sodium = ctypes.CDLL(ctypes.util.find_library("sodium") or "libsodium.so.23")
    _sodium.sodium_init()
except OSError:
    _sodium = None


def reason_against_signing():
    """The reason why nothing can be signed here; None if it can."""
    return None if _sodium else "no libsodium"


class Key:
    """An Ed25519 key pair; the public half is a tag."""

    def __init__(self, seed=None):
        public, self._secret = ctypes.create_string_buffer(32), ctypes.create_string_buffer(64)
        _sodium.crypto_sign_seed_keypair(public, self._secret, seed or os.urandom(32))
        self.tag = public.raw

    def sign(self, message):
        signature = ctypes.create_string_buffer(64)
        _sodium.crypto_sign_detached(
            signature, None, message, ctypes.c_ulonglong(len(message)), self._secret)
        return signature.raw

    @classmethod
    def of_channel(cls, secret, period):
        """The tag key of a channel in this period."""
        message = b"muster/1 rendezvous tag" + period.to_bytes(8, "big")
        return cls(hashlib.blake2b(message, key=secret, digest_size=32).digest())


def registration(slot, cookie, period, key, announce, tag=None, flags=WANTS_RECORDS):
    """A registration under the key's own tag, or, forged, under another."""
    slot = slot.to_bytes(8, "big")
    body = (bytes([REGISTRATION]) + slot + cookie + period.to_bytes(8, "big") + (tag or key.tag)
            + slot + bytes([flags]) + len(announce).to_bytes(2, "big") + announce)
    return body + key.sign(_LABEL + body)


def announce_like():
    """Random bytes that only the channel key distinguishes from a sealed announcement."""
    return b"\x01" + os.urandom(161)


class Registrar:
    """A host with many addresses that sends requests to a rendezvous on another host."""

    def __init__(self, host, target, port, networks=(), ports=1):
        """`networks` are routed to the host, which uses all their addresses beside its own."""
        self.target = (target.address, port)
        for network in networks:
            ip("route", "add", "local", network, "dev", "lo", namespace=host.namespace)
            ip("route", "add", network, "via", host.address, namespace=target.namespace)
        self._sockets = []
        for _ in range(ports):
            with inside(host.namespace):
                one = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
            one.setsockopt(socket.IPPROTO_IP, _IP_PKTINFO, 1)
            one.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4 << 20)
            one.bind(("", 0))
            self._sockets.append(one)
        self._lock = threading.Lock()
        self.cookies = {}
        self.answers = []
        self._running = True
        self._thread = threading.Thread(target=self._read, daemon=True)
        self._thread.start()

    def close(self):
        if self._running:
            self._running = False
            self._thread.join()
            for one in self._sockets:
                one.close()

    @property
    def ports(self):
        return range(len(self._sockets))

    def send(self, payload, address, port=0):
        """Sends from one of its addresses, by the index of the port."""
        info = struct.pack("=I4s4s", 0, socket.inet_aton(address), bytes(4))
        try:
            self._sockets[port].sendmsg(
                [payload], [(socket.IPPROTO_IP, _IP_PKTINFO, info)], 0, self.target)
        except OSError:
            pass  # a full queue: the datagram is lost, as on any network

    def ask(self, address, port=0):
        """Requests a cookie, which replaces the previous one when it arrives."""
        self.send(bytes([HELLO]) + os.urandom(8) + bytes(55), address, port)

    def prove(self, addresses, within=10.0):
        """Gets a cookie for each port of each address; returns how many it has."""
        wanted = [(address, port) for address in addresses for port in self.ports]
        end = time.monotonic() + within
        while time.monotonic() < end:
            left = [source for source in wanted if source not in self.cookies]
            if not left:
                break
            for number, source in enumerate(left):
                self.ask(*source)
                if number % 50 == 49:
                    time.sleep(0.01)
            time.sleep(0.2)
        return sum(source in self.cookies for source in wanted)

    def register(self, address, port=0, key=None, tag=None, slot=None):
        """Registers a record, under a tag of its own unless one is given; returns its slot."""
        cookie, period = self.cookies[address, port]
        slot = int.from_bytes(os.urandom(8), "big") if slot is None else slot
        self.send(registration(slot, cookie, period, key or Key(), announce_like(), tag),
                  address, port)
        return slot

    def answers_to(self, slots):
        """The number of records in each answer to one of these slots."""
        with self._lock:
            return [count for slot, count in self.answers if slot in slots]

    def _read(self):
        while self._running:
            ready, _, _ = select.select(self._sockets, [], [], 0.1)
            for one in ready:
                self._take(self._sockets.index(one), one)

    def _take(self, port, one):
        payload, ancillary, _, _ = one.recvmsg(2048, 64)
        address = next(socket.inet_ntoa(data[8:12]) for level, kind, data in ancillary
                       if (level, kind) == (socket.IPPROTO_IP, _IP_PKTINFO))
        with self._lock:
            if payload[0] == COOKIE:
                self.cookies[address, port] = (payload[9:25], int.from_bytes(payload[25:33], "big"))
            elif payload[0] == RECORDS:
                self.answers.append((int.from_bytes(payload[1:9], "big"), payload[9]))

"""The three handshake messages, built and read (section 6). `handshakes.py` decides when."""

import os
import struct
from dataclasses import dataclass

from .crypto import blake2b, diffie_hellman, link_key, x25519_public, xseal, xunseal
from .noise import SymmetricState
from .reader import Malformed, Reader

INITIATION, RESPONSE, COOKIE_REPLY = 0x10, 0x11, 0x12
INITIATION_LENGTH, RESPONSE_LENGTH, COOKIE_REPLY_LENGTH = 193, 101, 61
_NO_MAC2 = bytes(16)


def prologue(keys):
    return b"muster/1" + keys.id


def initiation_payload(initiator, boot, counter, responder_boot, capabilities=0):
    return (initiator + boot + struct.pack(">Q", counter) + responder_boot
            + struct.pack(">I", capabilities))


def response_payload(boot, capabilities=0):
    return boot + struct.pack(">I", capabilities)


class Initiation:
    """One initiation, with what is needed to read its response. Every retry is a new one."""

    def __init__(self, identity, keys, peer, index, payload, ephemeral=None, cookie=None):
        self.keys, self.peer, self.index = keys, peer, index
        self._identity = identity
        self._ephemeral = ephemeral or os.urandom(32)
        self.peer_key = link_key(peer)
        if self.peer_key is None:
            raise Malformed("a node id that is no key")
        self.took_cookie = False
        self.message = self._build(payload, cookie)

    def _build(self, payload, cookie):
        noise = SymmetricState(prologue(self.keys), self.peer_key)
        public = x25519_public(self._ephemeral)
        noise.mix_ephemeral(public)
        noise.mix_key(diffie_hellman(self._ephemeral, self.peer_key))
        sealed_key = noise.encrypt(self._identity.link_key)
        noise.mix_key(diffie_hellman(self._identity.link_secret, self.peer_key))
        sealed_payload = noise.encrypt(payload)
        self._noise = noise
        message = bytes([INITIATION]) + self.index + public + sealed_key + sealed_payload
        self.mac1 = blake2b(16, message, self.keys.initiation_mac_key(self.peer_key))
        message += self.mac1
        return message + (blake2b(16, message, cookie) if cookie else _NO_MAC2)

    def read_response(self, message):
        """`Finished`, or None if it is not an answer to this initiation."""
        if len(message) != RESPONSE_LENGTH or message[85:] != _NO_MAC2:
            return None
        mac_key = self.keys.response_mac_key(self.peer_key)
        if message[5:9] != self.index or blake2b(16, message[:69], mac_key) != message[69:85]:
            return None
        noise = self._noise.copy()
        try:
            ephemeral = message[9:41]
            noise.mix_ephemeral(ephemeral)
            noise.mix_key(diffie_hellman(self._ephemeral, ephemeral))
            noise.mix_key(diffie_hellman(self._identity.link_secret, ephemeral))
            noise.mix_key_and_hash(self.keys.noise_psk)
            payload = noise.decrypt(message[41:69])
        except Malformed:
            return None
        send_key, receive_key = noise.split()
        return Finished(send_key, receive_key, message[1:5], payload)

    def read_cookie(self, message):
        """Decrypts a cookie reply to this initiation; returns the cookie, or None if it does not
        open.
        """
        key = self.keys.cookie_key(self.peer_key)
        return xunseal(key, message[5:29], message[29:], self.mac1)


@dataclass
class Finished:
    """The result of a handshake for one side."""

    send_key: bytes
    receive_key: bytes
    peer_index: bytes
    payload: bytes


class ReceivedInitiation:
    """An initiation as its responder sees it. Raises `Malformed` if it does not decrypt."""

    def __init__(self, identity, keys, message):
        self._identity, self.keys = identity, keys
        self.peer_index = message[1:5]
        self._ephemeral = message[5:37]
        noise = SymmetricState(prologue(keys), identity.link_key)
        noise.mix_ephemeral(self._ephemeral)
        noise.mix_key(diffie_hellman(identity.link_secret, self._ephemeral))
        self.peer_key = noise.decrypt(message[37:85])
        noise.mix_key(diffie_hellman(identity.link_secret, self.peer_key))
        self.payload = noise.decrypt(message[85:161])
        self._noise = noise
        reader = Reader(self.payload)
        self.peer, self.peer_boot = reader.take(32), reader.take(8)
        self.counter, self.own_boot = reader.number(8), reader.take(8)
        self.capabilities = reader.number(4)

    def respond(self, index, payload, ephemeral=None):
        """(the response, `Finished`)"""
        ephemeral = ephemeral or os.urandom(32)
        noise, public = self._noise.copy(), x25519_public(ephemeral)
        noise.mix_ephemeral(public)
        noise.mix_key(diffie_hellman(ephemeral, self._ephemeral))
        noise.mix_key(diffie_hellman(ephemeral, self.peer_key))
        noise.mix_key_and_hash(self.keys.noise_psk)
        message = bytes([RESPONSE]) + index + self.peer_index + public + noise.encrypt(payload)
        message += blake2b(16, message, self.keys.response_mac_key(self._identity.link_key))
        receive_key, send_key = noise.split()
        return message + _NO_MAC2, Finished(send_key, receive_key, self.peer_index, b"")


def mac1_of(message):
    return message[161:177]


def has_mac1(identity, keys, message):
    """Whether the sender of an initiation knows this secret and the responder's key."""
    key = keys.initiation_mac_key(identity.link_key)
    return blake2b(16, message[:161], key) == mac1_of(message)


def has_cookie(message):
    return message[177:] != _NO_MAC2


def has_mac2(message, cookie):
    return blake2b(16, message[:177], cookie) == message[177:]


def cookie_reply(identity, keys, message, cookie, nonce=None):
    """Asks the sender of an initiation to retry with this cookie."""
    nonce = nonce or os.urandom(24)
    sealed = xseal(keys.cookie_key(identity.link_key), nonce, cookie, mac1_of(message))
    return bytes([COOKIE_REPLY]) + message[1:5] + nonce + sealed

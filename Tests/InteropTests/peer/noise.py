"""Noise_IKpsk2_25519_ChaChaPoly_BLAKE2b, revision 34 (section 6).

    <- s
    -> e, es, s, ss
    <- e, ee, se, psk
"""

import copy
import hashlib
import hmac

from .crypto import seal, unseal
from .reader import Malformed

PROTOCOL_NAME = b"Noise_IKpsk2_25519_ChaChaPoly_BLAKE2b"


def _hmac(key, message):
    return hmac.new(key, message, hashlib.blake2b).digest()


class SymmetricState:
    """Chaining key, handshake hash and cipher key of one handshake; section 5.2 of Noise."""

    def __init__(self, prologue, responder_key):
        self._hash = PROTOCOL_NAME.ljust(64, b"\0")
        self._chaining_key = self._hash
        self._key = None
        self._counter = 0
        self.mix_hash(prologue)
        self.mix_hash(responder_key)

    def copy(self):
        return copy.copy(self)

    def mix_hash(self, data):
        self._hash = hashlib.blake2b(self._hash + data).digest()

    def mix_ephemeral(self, public_key):
        """As in every psk pattern, the key goes into the hash and into the chaining key."""
        self.mix_hash(public_key)
        self.mix_key(public_key)

    def mix_key(self, material):
        if material is None:
            raise Malformed("a Diffie-Hellman result of zero")
        self._chaining_key, key = self._hkdf(material, 2)
        self._set_key(key)

    def mix_key_and_hash(self, psk):
        self._chaining_key, hashed, key = self._hkdf(psk, 3)
        self.mix_hash(hashed)
        self._set_key(key)

    def _set_key(self, key):
        self._key = key[:32]
        self._counter = 0

    def _hkdf(self, material, count):
        secret = _hmac(self._chaining_key, material)
        outputs = [_hmac(secret, b"\1")]
        while len(outputs) < count:
            outputs.append(_hmac(secret, outputs[-1] + bytes([len(outputs) + 1])))
        return outputs

    def encrypt(self, plaintext):
        ciphertext = seal(self._key, self._counter, plaintext, self._hash)
        self._counter += 1
        self.mix_hash(ciphertext)
        return ciphertext

    def decrypt(self, ciphertext):
        plaintext = unseal(self._key, self._counter, ciphertext, self._hash)
        if plaintext is None:
            raise Malformed("does not decrypt")
        self._counter += 1
        self.mix_hash(ciphertext)
        return plaintext

    def split(self):
        """The keys for what the initiator sends and for what the responder sends."""
        first, second = self._hkdf(b"", 2)
        return first[:32], second[:32]

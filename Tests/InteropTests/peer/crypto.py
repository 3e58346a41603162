"""Hashes, ciphers and keys (sections 1 and 2). All but BLAKE2b is libsodium's, through PyNaCl."""

import hashlib
import struct

import nacl.bindings as sodium
from nacl.exceptions import CryptoError


def blake2b(size, message, key=b""):
    """BLAKE2b with `size` bytes of output."""
    return hashlib.blake2b(message, digest_size=size, key=key).digest()


def seal(key, counter, plaintext, associated):
    """ChaCha20-Poly1305 with Noise's nonce: four zero bytes and the counter, little-endian."""
    nonce = bytes(4) + struct.pack("<Q", counter)
    return sodium.crypto_aead_chacha20poly1305_ietf_encrypt(plaintext, associated, nonce, key)


def unseal(key, counter, ciphertext, associated):
    """The plaintext, or None if it does not open."""
    nonce = bytes(4) + struct.pack("<Q", counter)
    try:
        return sodium.crypto_aead_chacha20poly1305_ietf_decrypt(ciphertext, associated, nonce, key)
    except CryptoError:
        return None


def xseal(key, nonce, plaintext, associated):
    """XChaCha20-Poly1305 with a nonce of 24 bytes."""
    return sodium.crypto_aead_xchacha20poly1305_ietf_encrypt(plaintext, associated, nonce, key)


def xunseal(key, nonce, ciphertext, associated):
    """The plaintext, or None if it does not open."""
    try:
        return sodium.crypto_aead_xchacha20poly1305_ietf_decrypt(ciphertext, associated, nonce, key)
    except CryptoError:
        return None


def argon2id(passphrase, salt):
    """Argon2id 1.3: 3 passes, 64 MiB, 1 lane, 32 bytes (section 3)."""
    return sodium.crypto_pwhash_alg(
        32, passphrase, salt, 3, 64 << 20, sodium.crypto_pwhash_ALG_ARGON2ID13)


def verify(public_key, signature, message):
    """Whether an Ed25519 signature is good; libsodium refuses keys of small order."""
    try:
        sodium.crypto_sign_open(signature + message, public_key)
    except CryptoError:
        return False
    return True


def link_key(node_id):
    """The X25519 public key of an Ed25519 one (section 2); None if it does not convert."""
    try:
        return sodium.crypto_sign_ed25519_pk_to_curve25519(node_id)
    except CryptoError:
        return None


def diffie_hellman(secret, public):
    """The shared X25519 secret; None if it is zero."""
    try:
        return sodium.crypto_scalarmult(secret, public)
    except CryptoError:
        return None


def x25519_public(secret):
    return sodium.crypto_scalarmult_base(secret)


class Identity:
    """An Ed25519 key pair and the X25519 pair that follows from it (section 2)."""

    def __init__(self, seed):
        self.id, self._secret = sodium.crypto_sign_seed_keypair(seed)
        self.link_secret = sodium.crypto_sign_ed25519_sk_to_curve25519(self._secret)
        self.link_key = link_key(self.id)

    def sign(self, message):
        return sodium.crypto_sign(message, self._secret)[:64]

"""Keys derived from a channel's secret (section 3), and tags at a rendezvous (section 14)."""

import struct

from .crypto import Identity, argon2id, blake2b


def secret_from_name(name):
    return blake2b(32, b"muster/1 name" + name.encode())


def passphrase_salt(name):
    return blake2b(16, b"muster/1 salt" + name.encode())


def secret_from_passphrase(name, passphrase):
    return argon2id(passphrase.encode(), passphrase_salt(name))


class ChannelKeys:
    """The keys of one secret: of an open channel, or of one epoch of a created one."""

    def __init__(self, secret, epoch=0):
        self.secret, self.epoch = secret, epoch
        self.id = self._derive(b"muster/1 channel id")
        self.announcement_key = self._derive(b"muster/1 announce key")
        self.noise_psk = self._derive(b"muster/1 noise psk")

    def _derive(self, label, size=32):
        return blake2b(size, label, key=self.secret)

    def initiation_mac_key(self, responder_key):
        return self._derive(b"muster/1 mac1 initiation" + responder_key)

    def response_mac_key(self, responder_key):
        return self._derive(b"muster/1 mac1 response" + responder_key)

    def cookie_key(self, responder_key):
        return self._derive(b"muster/1 cookie reply" + responder_key)

    def rendezvous_tag(self, period):
        """The key pair under whose public key records of this period are kept."""
        return Identity(self._derive(b"muster/1 rendezvous tag" + struct.pack(">Q", period)))

    def dht_tag(self, day):
        return self._derive(b"muster/1 dht tag" + struct.pack(">Q", day), size=20)


class Channel:
    """A channel with its id, for which entries are signed, and its keys, the one in force first."""

    KEPT_KEYS = 5  # the one in force and the four before it (section 12)

    def __init__(self, name, secret, genesis=None, epoch=0):
        self.name = name
        self.genesis = genesis
        self.keys = [ChannelKeys(secret, epoch)]
        self.id = genesis.channel_id if genesis else self.keys[0].id

    @property
    def current(self):
        return self.keys[0]

    def add_key(self, keys):
        """Takes the key of a later epoch, which is in force then, or of an earlier one."""
        self.keys = sorted([keys, *self.keys], key=lambda one: one.epoch, reverse=True)
        del self.keys[self.KEPT_KEYS:]

"""The people and values that the worked examples of the document share."""

from peer import channel
from peer.address import Address
from peer.channel import ChannelKeys
from peer.crypto import Identity
from peer.rights import Genesis

NAME, PASSPHRASE = "lab", "correct horse battery staple"
BOOT, BERTS_BOOT = bytes(range(1, 9)), bytes(range(0x11, 0x19))
INDEX, BERTS_INDEX = bytes.fromhex("a1a2a3a4"), bytes.fromhex("b1b2b3b4")
CALL = bytes(range(0xE0, 0xF0))
STARTED_AT = 0x1941F297C00      # 2025-01-01T00:00:00Z in ms
OUTSIDE, OUTSIDE_6 = Address("192.0.2.7", 40000), Address("2001:db8::7", 40000)
PERIOD = 472_222                # of a rendezvous
SEQUENCES = 0xC0C1C2C3 << 32    # the upper half of the entries' sequence
ENTRY_HEADER = 49               # bytes before the body

# Blocks that are given, not computed.
INPUTS = {
    "seed-anna", "seed-bert", "announcement-nonce", "challenge-nonce", "ephemeral-anna",
    "ephemeral-bert", "cookie", "cookie-nonce", "direct-nonce",
}


class Given:
    """What the document gives; everything else is computed."""

    def __init__(self, blocks):
        self._blocks = {name: blocks[name] for name in INPUTS}
        self.anna = Identity(blocks["seed-anna"])
        self.bert = Identity(blocks["seed-bert"])
        self.keys = ChannelKeys(channel.secret_from_name(NAME))
        # Some examples are signed for the created channel, not for `lab`.
        self.genesis = Genesis(blocks["genesis"])

    def __getitem__(self, name):
        return self._blocks[name]

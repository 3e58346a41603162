"""For tests: a member with bad intentions, who signs what it likes under many keys."""

import os
import random
import time
from collections import deque

from .crypto import Identity
from .entries import HIGHEST_LAMPORT, Claim, End, Entry, Message, Redemption
from .events import emit
from .rights import redemption_message

_INTERVAL = 0.02
# What fits into a link's entries in flight, beside this node's own.
_MOST_IN_FLIGHT = 48


class Attacker:
    def __init__(self, node):
        self._node = node
        self._keys = [node.identity]
        self._waiting = deque()
        self._counter = HIGHEST_LAMPORT
        self._is_idle = True
        node.loop.every(_INTERVAL, self._release)

    def redeem(self, count):
        """Lets new keys redeem this node's invite."""
        node = self._node
        invite = node.settings.invite
        for _ in range(count):
            identity = Identity(os.urandom(32))
            message = redemption_message(node.channel.id, identity.id)
            body = Redemption(invite.grant.raw, invite.one_time_key.sign(message))
            self._keys.append(identity)
            self._sign(identity, body, node.document.lamport + 1)

    def flood(self, kind, count):
        """Signs entries of a kind with the highest counters, in turn by each of its keys."""
        call = self._node.call.current or os.urandom(16)
        for number in range(count):
            body = {
                "claims": lambda: Claim(os.urandom(16), 1, 0, 0, True),
                "ends": lambda: End(call, 1 + random.getrandbits(16)),
                "messages": lambda: Message(int(time.time() * 1000), (), None, b"noise"),
            }[kind]()
            self._counter -= 1
            self._sign(self._keys[number % len(self._keys)], body, self._counter)

    def _sign(self, identity, body, lamport):
        sequence = random.getrandbits(63)
        self._waiting.append(
            Entry.sign(identity, self._node.channel.id, sequence, lamport, body))
        self._is_idle = False

    def _release(self):
        links = self._node.links.all_up()
        busiest = max((len(link.gossip.in_flight) for link in links), default=_MOST_IN_FLIGHT)
        for _ in range(min(len(self._waiting), _MOST_IN_FLIGHT - busiest)):
            entry = self._waiting.popleft()
            for link in links:
                self._node.gossip.send_again(link, entry)
        if not self._waiting and busiest == 0 and not self._is_idle:
            self._is_idle = True
            emit("flooded")

"""Texts to everyone and to one member (section 11)."""

import os
import time

from .crypto import blake2b, diffie_hellman, link_key, xseal, xunseal
from .document import predecessors
from .entries import Message
from .events import emit, short


def direct_key(identity, other, channel_id):
    """The key of texts between two members: either of them can open what is sealed with it."""
    smaller, larger = sorted((identity.id, other))
    shared = diffie_hellman(identity.link_secret, link_key(other))
    return blake2b(32, b"muster/1 direct" + channel_id + smaller + larger, key=shared)


class Texts:
    def __init__(self, node):
        self._node = node
        self._shown = set()

    def say(self, text, receiver=None):
        content = text.encode()
        if receiver is not None:
            nonce, key = os.urandom(24), self._key(receiver)
            content = nonce + xseal(key, nonce, content, self._node.id)
        before = predecessors(self._node.document)
        self._node.gossip.publish(Message(int(time.time() * 1000), before, receiver, content))

    def equivocate(self):
        """For tests: two texts under one sequence."""
        self.say("one")
        self._node.gossip.equivocate(Message(int(time.time() * 1000), (), None, b"another"))

    def _key(self, other):
        return direct_key(self._node.identity, other, self._node.channel.id)

    def show(self, entry):
        """A message is shown as it comes: this peer does not wait for predecessors."""
        body = entry.body
        if entry.id in self._shown or body.receiver not in (None, self._node.id):
            return
        self._shown.add(entry.id)
        content = body.content
        if body.receiver is not None:
            content = xunseal(self._key(entry.author), content[:24], content[24:], entry.author)
        try:
            text = None if content is None else content.decode()
        except UnicodeDecodeError:
            text = None
        if text is not None:
            emit("message", **{"from": short(entry.author)}, text=text,
                 to=body.receiver and short(body.receiver), predecessors=len(body.predecessors))

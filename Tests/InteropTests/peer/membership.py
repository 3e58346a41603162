"""Membership of a created channel: redeeming an invite, changes of the key (section 12)."""

from .channel import ChannelKeys
from .control import Type
from .entries import Entry, Epoch, Grant, Redemption
from .events import emit, short
from .reader import Malformed
from .rights import redemption_message

_HANDING_ON_INTERVAL = 1.0
_REASONS = {1: "removed", 2: "old invite", 3: "expired", 4: "no role", 5: "quarantined",
            6: "used up"}


class Membership:
    def __init__(self, node, invite):
        self._node, self._invite = node, invite
        self._role = None

    def start(self):
        """Publishes the redemption, which others keep as this node's claim to its role."""
        if self._node.channel.genesis is not None:
            self._node.loop.every(_HANDING_ON_INTERVAL, self._hand_on)
        if self._invite is None or self._invite.grant is None:
            return
        message = redemption_message(self._node.channel.id, self._node.id)
        signature = self._invite.one_time_key.sign(message)
        self._node.gossip.publish(Redemption(self._invite.grant.raw, signature))

    def refresh(self):
        role = self._node.rights.role(self._node.document, self._node.id)
        if role != self._role:
            self._role = role
            emit("role", role=int(role))

    def on_epoch_key(self, link, value):
        """Accepts a secret if it has the id that its entry names, and the entry is in the chain."""
        node = self._node
        try:
            entry = Entry.decode(value[32:])
        except Malformed:
            return
        if node.channel.genesis is None or entry.kind != Epoch.KIND:
            return
        keys = ChannelKeys(value[:32], entry.body.number)
        is_known = any(one.id == keys.id for one in node.channel.keys)
        if is_known or entry.body.key_id != keys.id or not entry.is_signed(node.channel.id):
            return
        node.document.add(entry)
        chain = node.rights.epochs(node.document)
        if entry.id not in [one.id for one in chain]:
            return
        node.channel.add_key(keys)
        if node.channel.current is keys:
            emit("epoch", number=entry.body.number, key=short(keys.id), member=short(link.peer))
            self._use(keys)

    def _use(self, keys):
        """After a key change each link gets a handshake under the new key."""
        node = self._node
        node.publish_presence()
        for other in node.links.all():
            node.handshakes.begin(other.peer, other.boot, other.route, keys)
        node.refresh()

    def _hand_on(self):
        """Sends members whose links are under a former key the newer ones."""
        keys = self._node.channel.keys
        for link in self._node.links.all_up():
            if link.current.keys is keys[0] or link.current.keys not in keys:
                continue
            if self._node.rights.role(self._node.document, link.peer):
                self._hand_on_to(link, keys[:keys.index(link.current.keys)])

    def _hand_on_to(self, link, newer):
        document = self._node.document
        for body in (Grant, Epoch):
            for entry in document.entries(body):
                self._node.gossip.send_again(link, entry)
        epochs = {one.body.key_id: one for one in self._node.rights.epochs(document)}
        for keys in reversed(newer):
            if keys.id in epochs:
                self._node.links.control(
                    link, Type.EPOCH_KEY, keys.secret + epochs[keys.id].raw)

    def on_refused(self, link, value):
        emit("refused", member=short(link.peer), reason=_REASONS.get(value[0], str(value[0])))

"""Links: the encrypted associations with other nodes (section 7)."""

import os
import random
import time
from collections import OrderedDict

from . import control, feedback
from .address import Via
from .budget import Budget
from .events import emit, short
from .gossip import GossipState
from .paths import CLOSE, PATH, PathState
from .reader import Malformed
from .relay import RELAYED, LONGEST_RELAYED
from .session import LIFETIME, LONGEST_DATAGRAM, OVERHEAD
from .watch import WatchState

KEEPALIVE = b""
_KEEPALIVE_INTERVAL, _VARIATION = 15.0, 0.2
_REKEY_AFTER = {True: 120.0, False: 150.0}   # by whether this node was the initiator
_SILENCE_LIMIT = 45.0
_UNUSED_LIMIT = 30.0
_MOST_ANSWERED = 3
_MOST_CLOSED = 64


class Link:
    def __init__(self, peer, boot, route):
        self.peer, self.boot, self.route = peer, boot, route
        self.current = self.previous = None
        self.answered = []           # sessions that their initiator has not used yet
        self.is_up = False
        self.began_at = self.heard_at = self.sent_at = time.monotonic()
        self.keepalive_after = _KEEPALIVE_INTERVAL
        self.confirm_wait = 0.25     # until the initiator repeats its first keepalive
        self.round_trip = None
        self.outbox = []             # control messages for the next datagram
        self.media = None
        self.candidates = Budget(4, 0.5)   # limits candidates of the peer
        self.reported = feedback.Reported()
        self.path, self.gossip, self.watch = PathState(), GossipState(), WatchState()

    @property
    def is_relayed(self):
        return isinstance(self.route, Via)

    @property
    def sessions(self):
        return [one for one in (self.current, self.previous, *self.answered) if one]


class Links:
    def __init__(self, node):
        self._node = node
        self._links = {}
        self._by_index = {}          # own index -> (session, link)
        self._closed = OrderedDict()   # the latest peers that closed their link themselves

    # Finding

    def get(self, peer):
        return self._links.get(peer)

    def all(self):
        return list(self._links.values())

    def all_up(self):
        return [link for link in self._links.values() if link.is_up]

    def is_up(self, peer):
        return peer in self._links and self._links[peer].is_up

    def was_closed_by(self, peer):
        return peer in self._closed

    def new_index(self):
        while True:
            index = os.urandom(4)
            if any(index) and index not in self._by_index:
                return index

    # Sessions

    def link_for(self, peer, boot, route):
        """The link to this run of a peer; another run ends the link and begins a new one."""
        link = self._links.get(peer)
        if link and link.boot != boot:
            self.close(link, "replaced")
            link = None
        if link is None:
            link = self._links[peer] = Link(peer, boot, route)
            self._closed.pop(peer, None)
        return link

    def keep_answered(self, link, session):
        self._by_index[session.own_index] = session, link
        link.answered.append(session)
        while len(link.answered) > _MOST_ANSWERED:
            self._by_index.pop(link.answered.pop(0).own_index, None)

    def use(self, link, session, route):
        """Makes a session the current one, and confirms it by a keepalive."""
        if link.previous:
            self._by_index.pop(link.previous.own_index, None)
        self._by_index[session.own_index] = session, link
        link.previous, link.current = link.current, session
        link.route, link.heard_at, link.confirm_wait = route, time.monotonic(), 0.25
        self.send(link, KEEPALIVE)

    def bring_up(self, link):
        if link.is_up:
            return
        link.is_up = True
        via = short(link.route.neighbour) if link.is_relayed else None
        emit("link.up", member=short(link.peer), via=via,
             address=None if link.is_relayed else link.route)
        self._node.on_link_up(link)

    def take_down(self, link, reason):
        """Counts a link as down; its session is kept, and anything under it brings it up again."""
        if link.is_up:
            link.is_up = False
            emit("link.down", member=short(link.peer), reason=reason)
            self._node.on_link_down(link)

    def close(self, link, reason):
        if reason == "left":
            self._closed[link.peer] = True
            while len(self._closed) > _MOST_CLOSED:
                self._closed.popitem(last=False)
        self.take_down(link, reason)
        for session in link.sessions:
            self._by_index.pop(session.own_index, None)
        link.current = link.previous = None
        link.answered = []
        if self._links.get(link.peer) is link:
            del self._links[link.peer]

    def leave(self):
        """Closes all links, those through neighbours first."""
        for link in sorted(self.all(), key=lambda one: not one.is_relayed):
            self.part(link)

    def part(self, link):
        """Closes a link, and lets the peer know."""
        self.send(link, bytes([PATH, CLOSE]))
        self.close(link, "local")

    # Sending

    def send(self, link, payload, route=None):
        """Seals a payload and sends it, by the link's route or by another one."""
        now = time.monotonic()
        if link.current is None or link.current.is_over(now):
            return
        if route is None:
            link.sent_at = now
            link.keepalive_after = _KEEPALIVE_INTERVAL * random.uniform(
                1 - _VARIATION, 1 + _VARIATION)
        self._node.send(route or link.route, link.current.seal(payload))

    def control(self, link, kind, value):
        """Queues a control message for the next datagram."""
        link.outbox.append(control.encode(kind, value))

    def flush(self):
        """Sends the control messages of this step of the loop, as many in a datagram as fit."""
        for link in self.all():
            self._node.gossip.acknowledge(link)
            room = (LONGEST_RELAYED if link.is_relayed else LONGEST_DATAGRAM) - OVERHEAD
            while link.outbox and link.current:
                payload = bytes([control.CONTROL])
                while link.outbox and len(payload) + len(link.outbox[0]) <= room:
                    payload += link.outbox.pop(0)
                self.send(link, payload)

    # Receiving

    def receive(self, datagram, route):
        session, link = self._by_index.get(datagram[1:5], (None, None))
        if session is None or len(datagram) < OVERHEAD or session.is_over(time.monotonic()):
            return
        opened = session.open(datagram)
        if opened is None:
            return
        payload, is_newest = opened
        heard_before, link.heard_at = link.heard_at, time.monotonic()
        if session in link.answered:
            self._begin_to_use(link, session, route)
        if not link.is_up and session is link.current:
            self.bring_up(link)
        self._node.watch.on_sign_of_life(link)
        if session is link.current and is_newest:
            self._node.paths.on_newest(link, payload, route, heard_before)
        if not isinstance(route, Via):
            link.path.heard_directly_at = time.monotonic()
            link.path.direct = route
        self._dispatch(link, session, payload, route)

    def _begin_to_use(self, link, session, route):
        while (older := link.answered.pop(0)) is not session:
            self._by_index.pop(older.own_index, None)
        self.use(link, session, route)
        self._node.handshakes.forget(link.peer)
        emit("handshake", member=short(link.peer), role="responder", address=route,
             key=short(session.keys.id))

    def _dispatch(self, link, session, payload, route):
        if not payload:
            return
        if payload[0] == control.CONTROL:
            self._node.on_control(link, payload)
        elif payload[0] == PATH:
            self._node.paths.receive(link, session, payload, route)
        elif payload[0] == RELAYED:
            self._node.relay.receive(link, payload)
        elif payload[0] == feedback.FEEDBACK:
            self._on_feedback(link, payload)
        elif 0x80 <= payload[0] <= 0xBF and len(payload) > 1 and link.media:
            link.media.receive(payload, lambda stream: self._node.rights.may_send(
                self._node.document, link.peer, stream))

    def _on_feedback(self, link, payload):
        try:
            link.reported.take(link.sessions, payload)
        except Malformed as error:
            emit("error", message=f"feedback is ignored: {error}", command=None)

    # Time

    def tick(self):
        now = time.monotonic()
        for link in self.all():
            for session in link.sessions:
                if report := session.arrivals.due_report(session.own_index):
                    self.send(link, report)
            for session in [one for one in link.answered if now - one.began_at > _UNUSED_LIMIT]:
                link.answered.remove(session)
                self._by_index.pop(session.own_index, None)
            if link.current:
                self._tick_current(link, now)
            elif not link.answered:
                del self._links[link.peer]

    def _tick_current(self, link, now):
        session = link.current
        age = now - session.began_at
        if age >= LIFETIME or now - link.heard_at > _SILENCE_LIMIT:
            self.close(link, "timed-out")
            return
        if self._node.topology.is_surplus(link, now):
            self.part(link)
            return
        if age >= _REKEY_AFTER[session.is_initiator]:
            self._node.handshakes.begin(link.peer, link.boot, link.route, session.keys)
        needs_confirmation = session.is_initiator and not session.has_opened
        if needs_confirmation and now - link.sent_at >= link.confirm_wait:
            link.confirm_wait = min(5.0, 2 * link.confirm_wait)
            self.send(link, KEEPALIVE)
        if now - link.sent_at > link.keepalive_after:
            self.send(link, KEEPALIVE)
        self._node.paths.tick(link, now)

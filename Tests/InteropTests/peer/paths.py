"""Paths: the route of each link, and the rules by which it changes (section 7)."""

import os
import time
from dataclasses import dataclass, field

from .control import Type
from .address import Address, Via, encode_address
from .budget import Budget
from .events import emit, short

PATH = 0x02
CHALLENGE, RESPONSE, CLOSE = range(3)
_SILENCE = 3.0            # a path over which nothing came for so long may be replaced
_OWN_CHALLENGE_AFTER, _OWN_CHALLENGE_INTERVAL = 5.0, 2.0
_HEARD_DIRECTLY = 0.1
_LATE = 1.0
_UNANSWERED = 1.0
_TOKEN_LIFETIME = 10.0


@dataclass
class PathState:
    tokens: dict = field(default_factory=dict)  # token -> (route, when)
    induced: Budget = field(default_factory=lambda: Budget(2, 1))   # challenges
    answers: Budget = field(default_factory=lambda: Budget(4, 2))   # to other addresses
    direct: Address = None                      # where the peer was last heard directly
    heard_directly_at: float = float("-inf")
    next_own_challenge: float = 0.0


class Paths:
    def __init__(self, node):
        self._node = node

    def found(self, peer, boot, address, keys):
        """Discovery has found this run of a peer here."""
        link = self._node.links.get(peer)
        if link is None or link.current is None or link.boot != boot:
            if self._node.topology.may_open(peer):
                self._node.handshakes.begin(peer, boot, address, keys)
            return
        is_silent = time.monotonic() - link.heard_at > _SILENCE
        if is_silent and self._has_unanswered(link):
            self._node.handshakes.begin(peer, boot, address, keys)
        if link.is_relayed or is_silent:
            self._challenge_induced(link, address)

    @staticmethod
    def _has_unanswered(link):
        now = time.monotonic()
        return any(now - at > _UNANSWERED for _, at in link.path.tokens.values())

    def on_newest(self, link, payload, route, heard_before):
        """The newest datagram of the current session came by this route."""
        if route == link.route:
            return
        if isinstance(route, Via):
            if self._follows_relay(link, heard_before):
                self._move(link, route)
        elif payload[:1] != bytes([PATH]):
            self._challenge_induced(link, route)

    def _follows_relay(self, link, heard_before):
        """Whether a link moves to a relay at once, which cannot direct traffic at a third party."""
        now = time.monotonic()
        if not link.is_relayed:
            return now - link.path.heard_directly_at > _HEARD_DIRECTLY
        return self._node.id > link.peer or now - heard_before > _LATE

    def _challenge_induced(self, link, address):
        """Sends a challenge that others can provoke; such challenges are rate-limited."""
        if link.path.induced.take():
            self._challenge(link, address)

    def challenge_direct(self, link, address):
        """Sends a challenge of this node's own accord, which is not rate-limited."""
        self._challenge(link, address)

    def _challenge(self, link, route):
        now, token = time.monotonic(), os.urandom(8)
        link.path.tokens = {key: one for key, one in link.path.tokens.items()
                            if now - one[1] < _TOKEN_LIFETIME}
        link.path.tokens[token] = route, now
        self._node.links.send(link, bytes([PATH, CHALLENGE]) + token, route)

    def receive(self, link, session, payload, route):
        kind, token = payload[1:2], payload[2:]
        if kind == bytes([CHALLENGE]) and len(token) == 8:
            if route == link.route or link.path.answers.take():
                self._node.links.send(link, bytes([PATH, RESPONSE]) + token, route)
        elif kind == bytes([RESPONSE]):
            self._on_response(link, token, route)
        elif kind == bytes([CLOSE]) and session is link.current:
            self._node.links.close(link, "left")

    def _on_response(self, link, token, route):
        challenged, asked_at = link.path.tokens.pop(token, (None, 0))
        if challenged != route or route == link.route:
            return
        if isinstance(route, Via) and link.path.heard_directly_at > asked_at:
            return
        self._move(link, route)

    def _move(self, link, route):
        emit("path", member=short(link.peer), to=route)
        link.route = route
        self._node.links.send(link, b"")  # so that the other end finds out
        self.report_seen(link)

    def report_seen(self, link):
        """Reports to the peer the address at which it is seen, over a direct path."""
        if not link.is_relayed:
            self._node.links.control(link, Type.SEEN, encode_address(link.route))

    def tick(self, link, now):
        is_due = now - link.heard_at > _OWN_CHALLENGE_AFTER and now >= link.path.next_own_challenge
        if is_due and not link.is_relayed:
            link.path.next_own_challenge = now + _OWN_CHALLENGE_INTERVAL
            self._challenge(link, link.route)

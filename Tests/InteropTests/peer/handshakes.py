"""The schedule of handshakes: initiations, responses and retries (section 6)."""

import os
import random
import time
from collections import OrderedDict
from dataclasses import dataclass, field

from . import handshake
from .budget import Budget
from .crypto import blake2b, link_key
from .events import emit, short
from .reader import Malformed
from .session import Session

_FIRST_WAIT, _LONGEST_WAIT, _VARIATION = 0.25, 5.0, 0.1
_GIVES_UP_AFTER = 90.0
_LATEST_INITIATIONS = 3
_COOKIE_LIFETIME, _COOKIE_USES = 120.0, 2
_MOST_SEEN, _MOST_BOOTS = 1024, 32
_SIMULTANEOUS = 1.0  # seconds in which two handshakes count as opened at once


@dataclass
class Attempt:
    """A handshake under way: to this run of a peer, over this route."""

    keys: object
    boot: bytes
    route: object
    began_at: float
    due_at: float = 0.0
    wait: float = _FIRST_WAIT
    initiations: list = field(default_factory=list)
    cookie: bytes = None
    cookie_at: float = 0.0
    cookie_uses: int = 0

    def take_cookie(self):
        is_good = self.cookie_uses > 0 and time.monotonic() - self.cookie_at < _COOKIE_LIFETIME
        self.cookie_uses -= 1
        return self.cookie if is_good else None


class Handshakes:
    def __init__(self, node):
        self._node = node
        self._attempts = {}
        self._counter = 0
        self._seen = OrderedDict()        # mac1 of initiations that passed checks 1 to 3
        self._counters = {}               # peer -> boot -> highest counter accepted
        self._answered_at = {}            # (peer, boot) -> when
        self._unproven, self._with_cookie = Budget(50, 50), Budget(200, 200)
        self._cookie_secrets = [os.urandom(32)]
        self._cookie_secret_at = time.monotonic()

    # Initiator

    def begin(self, peer, boot, route, keys):
        """Begins a handshake unless one is under way, or was answered within the last second."""
        attempt = self._attempts.get(peer)
        if attempt and attempt.boot == boot and attempt.keys is keys:
            attempt.route = route
            return
        now = time.monotonic()
        answered = now - self._answered_at.get((peer, boot), float("-inf")) < _SIMULTANEOUS
        if not answered:
            self._attempts[peer] = Attempt(keys, boot, route, now)
            self._initiate(peer)

    def is_under_way(self, peer):
        return peer in self._attempts

    def forget(self, peer):
        self._attempts.pop(peer, None)

    def tick(self):
        now = time.monotonic()
        for peer, attempt in list(self._attempts.items()):
            if now - attempt.began_at > _GIVES_UP_AFTER:
                del self._attempts[peer]
            elif now >= attempt.due_at:
                self._initiate(peer)

    def _initiate(self, peer):
        attempt = self._attempts[peer]
        self._counter += 1
        payload = handshake.initiation_payload(
            self._node.id, self._node.boot, self._counter, attempt.boot,
            self._node.settings.capabilities)
        try:
            made = handshake.Initiation(
                self._node.identity, attempt.keys, peer, self._node.links.new_index(), payload,
                cookie=attempt.take_cookie())
        except Malformed:
            del self._attempts[peer]
            return
        attempt.initiations = (attempt.initiations + [made])[-_LATEST_INITIATIONS:]
        attempt.due_at = time.monotonic() + attempt.wait * random.uniform(
            1 - _VARIATION, 1 + _VARIATION)
        attempt.wait = min(_LONGEST_WAIT, 2 * attempt.wait)
        self._node.send(attempt.route, made.message)

    def _find(self, index):
        for peer, attempt in self._attempts.items():
            for made in attempt.initiations:
                if made.index == index:
                    return peer, attempt, made
        return None, None, None

    def on_response(self, datagram, route):
        peer, attempt, made = self._find(datagram[5:9])
        finished = made and made.read_response(datagram)
        if not finished or finished.payload[:8] != attempt.boot:
            return
        del self._attempts[peer]
        link = self._node.links.link_for(peer, attempt.boot, route)
        offered = int.from_bytes(finished.payload[8:12], "big")
        session = Session(made.keys, finished, made.index, True, time.monotonic(),
                          offered & self._node.settings.capabilities)
        self._node.links.use(link, session, route)
        emit("handshake", member=short(peer), role="initiator", address=route,
             key=short(made.keys.id), cookie=attempt.cookie is not None)
        self._node.links.bring_up(link)

    def on_cookie_reply(self, datagram):
        peer, attempt, made = self._find(datagram[1:5])
        is_expected = made and len(datagram) == handshake.COOKIE_REPLY_LENGTH
        cookie = made.read_cookie(datagram) if is_expected and not made.took_cookie else None
        if cookie is None:
            return
        made.took_cookie = True
        attempt.cookie, attempt.cookie_at = cookie, time.monotonic()
        attempt.cookie_uses = _COOKIE_USES
        self._initiate(peer)

    # Responder; the steps are those of "Responder"

    def on_initiation(self, datagram, route):
        if len(datagram) != handshake.INITIATION_LENGTH:
            return
        identity = self._node.identity
        keys = next((one for one in self._node.channel.keys
                     if handshake.has_mac1(identity, one, datagram)), None)
        if keys is None or handshake.mac1_of(datagram) in self._seen:
            return
        if not self._may_work_on(datagram, route, keys):
            return
        self._seen[handshake.mac1_of(datagram)] = True
        while len(self._seen) > _MOST_SEEN:
            self._seen.popitem(last=False)
        try:
            received = handshake.ReceivedInitiation(identity, keys, datagram)
        except Malformed:
            return
        if self._is_acceptable(received):
            self._remember(received)
            self._answer(received, route)

    def _may_work_on(self, datagram, route, keys):
        """Step 3: a cookie reply when too many initiations come without a cookie."""
        if handshake.has_cookie(datagram):
            is_good = any(handshake.has_mac2(datagram, self._cookie(route, secret))
                          for secret in self._current_cookie_secrets())
            return is_good and self._with_cookie.take()
        if not self._node.settings.demands_cookies and self._unproven.take():
            return True
        cookie = self._cookie(route, self._current_cookie_secrets()[0])
        self._node.send(route, handshake.cookie_reply(
            self._node.identity, keys, datagram, cookie))
        return False

    @staticmethod
    def _cookie(route, secret):
        return blake2b(16, str(route).encode(), secret)

    def _current_cookie_secrets(self):
        now = time.monotonic()
        if now - self._cookie_secret_at > _COOKIE_LIFETIME:
            self._cookie_secrets = [os.urandom(32), self._cookie_secrets[0]]
            self._cookie_secret_at = now
        return self._cookie_secrets

    def _is_acceptable(self, received):
        """Steps 4 to 6."""
        peer = received.peer
        if peer == self._node.id or link_key(peer) != received.peer_key:
            return False
        if received.own_boot != self._node.boot:
            return False
        if received.counter <= self._counters.get(peer, {}).get(received.peer_boot, 0):
            return False
        own = self._attempts.get(peer)
        return not (own and own.boot == received.peer_boot and self._node.id < peer
                    and time.monotonic() - own.began_at < _SIMULTANEOUS)

    def _remember(self, received):
        boots = self._counters.setdefault(received.peer, OrderedDict())
        boots[received.peer_boot] = received.counter
        while len(boots) > _MOST_BOOTS:
            boots.popitem(last=False)
        self._answered_at[received.peer, received.peer_boot] = time.monotonic()

    def _answer(self, received, route):
        link = self._node.links.link_for(received.peer, received.peer_boot, route)
        index = self._node.links.new_index()
        own = self._node.settings.capabilities
        message, finished = received.respond(
            index, handshake.response_payload(self._node.boot, own))
        session = Session(received.keys, finished, index, False, time.monotonic(),
                          received.capabilities & own)
        self._node.links.keep_answered(link, session)
        self._node.send(route, message)

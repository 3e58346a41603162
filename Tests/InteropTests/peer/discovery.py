"""Discovery: which run of which member is at which address (section 5)."""

import os
import random
import struct
import time
from collections import OrderedDict, deque
from dataclasses import dataclass, field

from .address import encode_address, is_unicast
from .announcement import Announcement, Challenge, open_with_any
from .budget import Budget
from .crypto import blake2b
from .events import emit, short

_PEER_WAITS = (0.25, 0.5, 1, 2, 4, 5)  # seconds; the last one from then on
_LINKED_WAIT = 30
_VARIATION = 0.2
_ANSWERED_FOR = 20.0   # seconds an own announcement may be asked about
_RECENT = 32
_ECHO_SLOT = 10.0
_MOST_PROVEN, _MOST_ADDRESSES, _MOST_FORMER = 128, 8, 4
_MOST_CHALLENGED, _MOST_BOOTS, _MOST_SOURCES = 256, 4, 4


@dataclass
class Proven:
    """An author whose boot id and addresses an echo has proven."""

    boot: bytes
    highest: int = 0
    addresses: list = field(default_factory=list)
    former: list = field(default_factory=list)


@dataclass
class Challenged:
    """An author that is not proven yet."""

    budget: Budget = field(default_factory=lambda: Budget(6, 2))
    boots: OrderedDict = field(default_factory=OrderedDict)  # boot -> (counter, sources)


class Discovery:
    def __init__(self, node):
        self._node = node
        self._counter = 0
        self._recent = deque(maxlen=_RECENT)   # (counter, when, echoes answered)
        self._secret = os.urandom(32)
        self._proven = OrderedDict()
        self._challenged = OrderedDict()
        self._challenges, self._answers = Budget(64, 32), Budget(64, 20)

    # Announcing

    def announcement(self, keys=None):
        """A new announcement, without an echo, as a datagram."""
        self._counter += 1
        self._recent.append((self._counter, time.monotonic(), set()))
        made = Announcement(self._node.id, self._node.boot, self._counter,
                            addresses=self._node.own_addresses())
        return made.seal(self._node.identity, keys or self._node.channel.current)

    def announce_to(self, address, round_number=0):
        """To a configured peer, again and again."""
        self._node.send(address, self.announcement())
        is_linked = any(link.route == address for link in self._node.links.all_up())
        wait = _LINKED_WAIT if is_linked else _PEER_WAITS[min(round_number, len(_PEER_WAITS) - 1)]
        wait *= random.uniform(1 - _VARIATION, 1 + _VARIATION)
        self._node.loop.after(wait, lambda: self.announce_to(address, round_number + 1))

    # Receiving; the steps are those of "What a receiver does"

    def on_announcement(self, datagram, source):
        opened, keys = open_with_any(Announcement, self._node.channel, datagram)
        if opened is None or opened.author == self._node.id:
            return
        proven = self._proven.get(opened.author)
        if proven and self._is_replay(opened, proven) or not opened.is_signed(keys):
            return
        is_proven = proven and proven.boot == opened.boot and source in proven.addresses
        if is_proven or self._has_good_echo(opened, source):
            self._prove(opened, source)
            self._node.paths.found(opened.author, opened.boot, source, keys)
        else:
            self._challenge(opened, source, keys)

    @staticmethod
    def _is_replay(opened, proven):
        is_old = opened.boot == proven.boot and opened.counter <= proven.highest
        return is_old or opened.boot in proven.former

    def _echo(self, opened, source, slot):
        message = (self._node.channel.id + opened.author + opened.boot + encode_address(source)
                   + source.host.partition("%")[2].encode() + struct.pack(">Q", slot))
        return blake2b(16, message, self._secret)

    def _has_good_echo(self, opened, source):
        slot = int(time.monotonic() / _ECHO_SLOT)
        return opened.echo in [self._echo(opened, source, one) for one in (slot, slot - 1)]

    def _prove(self, opened, source):
        proven = self._proven.get(opened.author)
        if proven is None or proven.boot != opened.boot:
            former = (proven.former + [proven.boot])[-_MOST_FORMER:] if proven else []
            proven = self._proven[opened.author] = Proven(opened.boot, former=former)
            emit("discovered", member=short(opened.author), address=source)
        proven.highest = max(proven.highest, opened.counter)
        if source not in proven.addresses:
            proven.addresses = (proven.addresses + [source])[-_MOST_ADDRESSES:]
        while len(self._proven) > _MOST_PROVEN:
            self._proven.popitem(last=False)

    def _challenge(self, opened, source, keys):
        """One challenge for one announcement, to each of a few sources."""
        author = self._challenged.setdefault(opened.author, Challenged())
        counter, sources = author.boots.get(opened.boot, (0, set()))
        if opened.counter > counter:
            counter, sources = opened.counter, set()
        author.boots[opened.boot] = counter, sources
        while len(author.boots) > _MOST_BOOTS:
            author.boots.popitem(last=False)
        while len(self._challenged) > _MOST_CHALLENGED:
            self._challenged.popitem(last=False)
        is_old = opened.counter < counter or source in sources or len(sources) >= _MOST_SOURCES
        if is_old or not author.budget.take() or not self._challenges.take():
            return
        sources.add(source)
        echo = self._echo(opened, source, int(time.monotonic() / _ECHO_SLOT))
        challenge = Challenge(opened.author, opened.boot, opened.counter, echo)
        self._node.send(source, challenge.seal(keys))

    def on_challenge(self, datagram, source):
        opened, keys = open_with_any(Challenge, self._node.channel, datagram)
        if opened is None or (opened.target, opened.boot) != (self._node.id, self._node.boot):
            return
        for counter, made_at, answered in self._recent:
            is_current = time.monotonic() - made_at < _ANSWERED_FOR
            if counter == opened.counter and is_current and opened.echo not in answered:
                if self._answers.take():
                    answered.add(opened.echo)
                    self._answer(opened.echo, source, keys)
                return

    def _answer(self, echo, source, keys):
        self._counter += 1
        answer = Announcement(self._node.id, self._node.boot, self._counter, echo)
        self._node.send(source, answer.seal(self._node.identity, keys))


class CandidateProber:
    """Hole punching (section 14): announcements to each address at which a member may be."""

    _WAITS = (0.25, 0.5, 1, 2, 4, 5)
    _EXPIRY = 15.0  # seconds without another report

    def __init__(self, node):
        self._node = node
        self._expires = {}     # address -> when
        self._budget = Budget(256, 64)

    def probe(self, address):
        """Takes note of a report of this address."""
        if not is_unicast(address):
            return
        is_new = address not in self._expires
        self._expires[address] = time.monotonic() + self._EXPIRY
        if is_new:
            self._send(address, 0)

    def _send(self, address, round_number):
        if time.monotonic() > self._expires[address]:
            del self._expires[address]
            return
        if self._budget.take():
            self._node.send(address, self._node.discovery.announcement())
        wait = self._WAITS[min(round_number, len(self._WAITS) - 1)]
        self._node.loop.after(wait, lambda: self._send(address, round_number + 1))

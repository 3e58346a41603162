"""Discovery: the addresses of members and the boot ids of their processes (section 5)."""

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
_ANSWERED_FOR = 20.0   # seconds for which challenges to an own announcement are answered
_RECENT = 32
_ECHO_SLOT = 10.0
_MOST_PROVEN, _MOST_ADDRESSES, _MOST_FORMER = 128, 8, 4
_MOST_CHALLENGED, _MOST_BOOTS, _MOST_SOURCES = 256, 32, 4
_ACCEPT, _CHALLENGE, _REPLAY = range(3)   # the cases of "Receiving an announcement"


@dataclass
class Proven:
    """A run of an author and its addresses that an echo has proven."""

    boot: bytes
    highest: int = 0                                         # H
    addresses: OrderedDict = field(default_factory=OrderedDict)   # address -> h(address)
    former: list = field(default_factory=list)

    def accept(self, address, counter):
        self.highest = max(self.highest, counter)
        self.addresses[address] = max(self.addresses.get(address, 0), counter)
        self.addresses.move_to_end(address)
        while len(self.addresses) > _MOST_ADDRESSES:
            self.addresses.popitem(last=False)


@dataclass
class ChallengedBoot:
    """The newest announcement of a run that was challenged, and where."""

    counter: int = 0
    sources: set = field(default_factory=set)
    budget: Budget = field(default_factory=lambda: Budget(6, 0.1))


@dataclass
class Challenged:
    """An author that was challenged; its boots, the one challenged last at the end."""

    budget: Budget = field(default_factory=lambda: Budget(6, 2))
    boots: OrderedDict = field(default_factory=OrderedDict)


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
        """Sends announcements to a configured peer periodically."""
        self._node.send(address, self.announcement())
        is_linked = any(link.route == address for link in self._node.links.all_up())
        wait = _LINKED_WAIT if is_linked else _PEER_WAITS[min(round_number, len(_PEER_WAITS) - 1)]
        wait *= random.uniform(1 - _VARIATION, 1 + _VARIATION)
        self._node.loop.after(wait, lambda: self.announce_to(address, round_number + 1))

    # Receiving; the steps are those of "Receiving an announcement"

    def on_announcement(self, datagram, source):
        opened, keys = open_with_any(Announcement, self._node.channel, datagram)
        if opened is None or opened.author == self._node.id:
            return
        case = self._case(opened, source)
        if case == _REPLAY or not opened.is_signed(keys):
            return
        if case == _ACCEPT:
            self._prove(opened, source)
            self._node.paths.found(opened.author, opened.boot, source, keys)
        else:
            self._challenge(opened, source, keys)

    def _case(self, opened, source):
        """The table of step 4, after the replays of a former boot (step 3)."""
        proven = self._proven.get(opened.author)
        if proven and opened.boot in proven.former:
            return _REPLAY
        is_known = proven is not None and proven.boot == opened.boot
        highest = proven.highest if is_known else -1
        here = proven.addresses.get(source) if is_known else None
        has_good_echo = self._has_good_echo(opened, source)
        if here is not None and opened.counter > here and opened.counter >= highest:
            return _ACCEPT
        if here is None and opened.counter > highest and not has_good_echo:
            return _CHALLENGE
        is_new_here = here is None or opened.counter > here
        return _ACCEPT if is_new_here and has_good_echo else _REPLAY

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
        proven.accept(source, opened.counter)
        if opened.author in self._challenged:   # this run answers: its budget is full again
            self._challenged[opened.author].boots.pop(opened.boot, None)
        while len(self._proven) > _MOST_PROVEN:
            self._proven.popitem(last=False)

    def _challenge(self, opened, source, keys):
        """One challenge for one announcement, to each of a few sources."""
        author = self._challenged.setdefault(opened.author, Challenged())
        boot = author.boots.setdefault(opened.boot, ChallengedBoot())
        author.boots.move_to_end(opened.boot)
        if opened.counter > boot.counter:
            boot.counter, boot.sources = opened.counter, set()
        while len(author.boots) > _MOST_BOOTS:
            author.boots.popitem(last=False)
        while len(self._challenged) > _MOST_CHALLENGED:
            self._challenged.popitem(last=False)
        is_old = (opened.counter < boot.counter or source in boot.sources
                  or len(boot.sources) >= _MOST_SOURCES)
        budgets = author.budget, boot.budget, self._challenges
        if is_old or not all(one.take() for one in budgets):
            return
        boot.sources.add(source)
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
        """Records that this address was reported."""
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

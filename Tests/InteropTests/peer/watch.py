"""Failure detection, after SWIM and Lifeguard (section 8)."""

import math
import os
import random
import struct
import time
from dataclasses import dataclass, field

from .control import Type

PROTOCOL_PERIOD = 0.3
_QUIET = 1.0                  # without a sign of life for so long, a neighbour is pinged
_PING_INTERVAL, _PING_INTERVAL_IN_CALL = 15.0, 1.0
_MOST_PINGS = 32
_ASKED = 3
_MOST_PROBES_OF_ONE, _MOST_PROBES = 8, 64


@dataclass
class WatchState:
    pings: dict = field(default_factory=dict)  # token -> when
    next_ping: float = 0.0
    asked_at: float = None        # when the ping was sent to which no sign of life came yet
    suspected_at: float = None
    answered_to_others: bool = False
    named: set = field(default_factory=set)    # the neighbours in the peer's latest report

    @property
    def is_suspected(self):
        return self.suspected_at is not None


@dataclass
class Probe:
    """An indirect probe of the neighbour `target`, requested by `asker`."""

    asker: object
    target: object
    token: bytes
    expires_at: float


class NeighbourWatch:
    def __init__(self, node):
        self._node = node
        self._probes = []
        self._round = []

    # Pings

    def ping(self, link):
        now, token = time.monotonic(), os.urandom(8)
        link.watch.pings[token] = now
        while len(link.watch.pings) > _MOST_PINGS:
            link.watch.pings.pop(next(iter(link.watch.pings)))
        in_call = self._node.call.current is not None
        link.watch.next_ping = now + (_PING_INTERVAL_IN_CALL if in_call else _PING_INTERVAL)
        for subscription in self._node.media.requested if link.media else ():
            self._node.links.control(link, Type.SUBSCRIBE, subscription.encode())
        for sent in link.media.sent_layers if link.media else ():
            self._node.links.control(link, Type.SENT_LAYER, sent.encode())
        self._node.links.control(link, Type.PING, token)

    def on_pong(self, link, token):
        sent_at = link.watch.pings.pop(token, None)
        if sent_at is None:
            return
        sample = time.monotonic() - sent_at
        known = link.round_trip
        link.round_trip = sample if known is None else known + (sample - known) / 8

    # Rounds

    def tick(self):
        now = time.monotonic()
        links = self._node.links.all_up()
        for link in links:
            if now >= link.watch.next_ping:
                self.ping(link)
            self._watch(link, now)
        self._ask_one(links, now)
        for probe in [one for one in self._probes if now > one.expires_at]:
            self._answer(probe, 0)

    def on_report(self, entry):
        """Pings neighbours that another one's new report suspects or no longer names."""
        reporter = self._node.links.get(entry.author)
        if reporter is None or not reporter.is_up:
            return
        doubted = set(entry.body.suspected) | (reporter.watch.named - set(entry.body.neighbours))
        reporter.watch.named = set(entry.body.neighbours)
        for link in self._node.links.all_up():
            if link is not reporter and link.peer[:8] in doubted:
                self.ping(link)

    def _ask_one(self, links, now):
        """Pings one quiet neighbour per period, in a random order that each round draws anew."""
        self._round = [one for one in self._round if one in links]
        if not self._round:
            self._round = random.sample(links, len(links))
        for link in list(self._round):
            self._round.remove(link)
            if now - link.heard_at > _QUIET and link.watch.asked_at is None:
                link.watch.asked_at = now
                self.ping(link)
                return

    def _watch(self, link, now):
        state = link.watch
        if state.asked_at is None:
            return
        patience = min(1.0, max(0.3, 2 * (link.round_trip or 0)))
        if state.is_suspected:
            self.ping(link)
            if now - state.suspected_at > self._limit(link):
                state.asked_at = state.suspected_at = None
                self._node.links.take_down(link, "timed-out")
        elif now - state.asked_at > patience:
            state.suspected_at, state.answered_to_others = now, False
            self._node.roster.report_soon()
            self._ask_others(link)

    def _ask_others(self, link):
        able = [one for one in self._node.links.all_up()
                if one is not link and not one.watch.is_suspected
                and self._node.roster.has_neighbour(one.peer, link.peer)]
        for one in random.sample(able, min(_ASKED, len(able))):
            self._node.links.control(one, Type.PROBE, link.peer + os.urandom(8))

    def _limit(self, link):
        links = self._node.links.all_up()
        doubters = sum(1 for one in links if one is not link
                       and self._node.roster.doubts(one.peer, link.peer))
        return suspicion_limit(doubters, len(links), link.watch.answered_to_others)

    def on_sign_of_life(self, link):
        state = link.watch
        was_suspected, state.asked_at, state.suspected_at = state.is_suspected, None, None
        if was_suspected:
            self._node.roster.report_soon()
        for probe in [one for one in self._probes if one.target is link]:
            self._answer(probe, 1)

    # Probes for others

    def on_probe(self, link, value):
        target = self._node.links.get(value[:32])
        if target is None or not target.is_up:
            self._node.links.control(link, Type.PROBE_RESULT, value + b"\0")
            return
        of_this = sum(1 for one in self._probes if one.asker is link)
        if of_this < _MOST_PROBES_OF_ONE and len(self._probes) < _MOST_PROBES:
            expires_at = time.monotonic() + PROTOCOL_PERIOD
            self._probes.append(Probe(link, target, value[32:], expires_at))
            self.ping(target)

    def _answer(self, probe, answered):
        self._probes.remove(probe)
        value = probe.target.peer + probe.token + struct.pack(">B", answered)
        self._node.links.control(probe.asker, Type.PROBE_RESULT, value)

    def on_probe_result(self, value):
        target = self._node.links.get(value[:32])
        if target is not None and value[40] == 1:
            target.watch.answered_to_others = True


def suspicion_limit(doubters, neighbours, answered_to_others):
    """Seconds from the suspicion to the failure of a link (step 4)."""
    if answered_to_others:
        return 8.0
    expected = min(3, neighbours - 2)
    if expected < 1:
        return 2.8
    return max(2.8, 4 - 1.2 * math.log(doubters + 1) / math.log(expected + 1))

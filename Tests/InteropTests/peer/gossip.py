"""Gossip of the document: push, acknowledgement, comparison (section 9)."""

import random
import time
from dataclasses import dataclass, field

from . import ranges
from .budget import Budget
from .control import Type, prefixes
from .document import DROPPED, QUARANTINED, Document
from .entries import Entry, Epoch, Grant, Joining, NeighbourReport, Redemption
from .events import emit, short
from .presence import Presence
from .reader import Malformed

_COMPARISON_INTERVAL, _COMPARISON_VARIATION = 1.0, 0.2
_MOST_IN_FLIGHT = 64
_MOST_ATTEMPTS = 6
_MOST_RANGE_BYTES = 1000
_FIRST_TIMEOUT, _SHORTEST_TIMEOUT, _LONGEST_TIMEOUT = 0.2, 0.06, 3.0
_RANGE_COST = 100


@dataclass
class InFlight:
    """An entry that was sent and is not acknowledged yet."""

    entry: Entry
    timeout: float
    due_at: float
    attempts: int = 1


@dataclass
class GossipState:
    """The gossip state of one link; the budgets are those of the table in section 9."""

    in_flight: dict = field(default_factory=dict)   # first 8 bytes of the id -> InFlight
    acknowledgements: list = field(default_factory=list)
    sent_digest: bytes = b""
    unknown_entries: Budget = field(default_factory=lambda: Budget(2000, 1000))
    pushed_on: Budget = field(default_factory=lambda: Budget(200, 50))
    wanted: Budget = field(default_factory=lambda: Budget(1024, 512))
    range_bytes: Budget = field(default_factory=lambda: Budget(24_000, 6_000))


class Gossip:
    def __init__(self, node):
        self._node = node
        self._links = node.links
        self._document: Document = node.document
        self.has_compared = False   # whether the document has been equal to a neighbour's
        self._sequence = random.getrandbits(31) << 32   # the upper half is drawn by each process

    # Own entries

    def publish(self, body):
        """Signs a body as this node's newest entry, and pushes it."""
        self._sequence += 1
        entry = self._sign(body)
        self._document.add(entry)
        self._push([entry])
        return entry

    def equivocate(self, body):
        """For tests: another entry under the sequence of the newest one, which is forbidden."""
        self._push([self._sign(body)])

    def _sign(self, body):
        return Entry.sign(self._node.identity, self._node.channel.id, self._sequence,
                          self._document.lamport + 1, body)

    # Sending

    def _push(self, entries, source=None):
        """Pushes an entry to every neighbour but the source, the author and the author's
        neighbours.
        """
        author = entries[0].author
        report = self._document.latest(NeighbourReport, author)
        is_neighbour = report is not None and self._links.is_up(author)
        reached = report.body.neighbours if is_neighbour else ()
        for link in self._links.all_up():
            if link is not source and link.peer != author and link.peer[:8] not in reached:
                self._send(link, entries)

    def send_again(self, link, entry):
        """Sends one entry to one neighbour, which may have it already."""
        self._send(link, [entry])

    def _send(self, link, entries):
        for entry in entries:
            state, prefix = link.gossip, entry.id[:8]
            if len(state.in_flight) >= _MOST_IN_FLIGHT and prefix not in state.in_flight:
                return  # the next comparison finds what was left out
            timeout = self._timeout(link)
            state.in_flight[prefix] = InFlight(entry, timeout, time.monotonic() + timeout)
            self._links.control(link, Type.ENTRY, entry.raw)

    @staticmethod
    def _timeout(link):
        if link.round_trip is None:
            return _FIRST_TIMEOUT
        return min(_LONGEST_TIMEOUT, max(_SHORTEST_TIMEOUT, 2 * link.round_trip + 0.04))

    def tick(self):
        """Sends unacknowledged entries again."""
        now = time.monotonic()
        for link in self._links.all_up():
            for prefix, one in list(link.gossip.in_flight.items()):
                if now < one.due_at:
                    continue
                if one.attempts >= _MOST_ATTEMPTS:
                    del link.gossip.in_flight[prefix]
                    continue
                one.attempts += 1
                one.timeout *= 2
                one.due_at = now + one.timeout
                self._links.control(link, Type.ENTRY, one.entry.raw)

    def acknowledge(self, link):
        waiting = link.gossip.acknowledgements
        while waiting:
            self._links.control(link, Type.RECEIVED, b"".join(waiting[:64]))
            del waiting[:64]

    def is_acknowledged(self, entry):
        return not any(entry.id[:8] in link.gossip.in_flight for link in self._links.all_up())

    # Receiving entries

    def on_received(self, link, value):
        acknowledged = [one for one in prefixes(value) if link.gossip.in_flight.pop(one, None)]
        if acknowledged:
            emit("acknowledged", member=short(link.peer), entries=len(acknowledged))

    def on_entry(self, link, raw):
        try:
            entry = Entry.decode(raw)
        except Malformed:
            return
        if self._document.keeps(entry):
            link.gossip.acknowledgements.append(entry.id[:8])
            return
        if not link.gossip.unknown_entries.take() or not entry.is_signed(self._node.channel.id):
            return
        link.gossip.acknowledgements.append(entry.id[:8])
        outcome = self._document.add(entry)
        if entry.author == self._node.id:
            self._node.on_own_entry_from_before(entry)
            return
        if outcome == DROPPED:
            return
        self._pass_on(link, entry, outcome)
        if entry.kind in (Grant.KIND, Redemption.KIND, Epoch.KIND):
            for one in self._document.retry_refused():
                self._push([one], source=link)
        self._node.on_new_entry(entry)

    def _pass_on(self, link, entry, outcome):
        if not link.gossip.pushed_on.take():
            return
        if outcome == QUARANTINED:
            emit("quarantined", member=short(entry.author))
            item = next(one for one in self._document.items.values()
                        if len(one) == 2 and one[0].author == entry.author)
            for other in self._links.all_up():
                self._send(other, item)
        else:
            self._push([entry], source=link)

    # Comparison

    def start(self):
        self._node.loop.every(_COMPARISON_INTERVAL, self._compare, _COMPARISON_VARIATION)

    def on_link_up(self, link):
        """A node sends its own redemption, joining and presence, then the digest."""
        for body in (Redemption, Joining, Presence):
            entry = self._document.latest(body, self._node.id)
            if entry is not None:
                self._send(link, [entry])
        self._send_digest(link)

    def _compare(self):
        links = self._links.all_up()
        if links:
            self._send_digest(random.choice(links))

    def _send_digest(self, link):
        link.gossip.sent_digest = self._document.digest()
        self._links.control(link, Type.DIGEST, link.gossip.sent_digest)

    def on_digest(self, link, value):
        is_equal = value == self._document.digest()
        emit("digest", member=short(link.peer), items=len(self._document.items),
             theirs=int.from_bytes(value[:4], "big"), equal=is_equal)
        if is_equal:
            self.has_compared = True
            if link.gossip.sent_digest != value:
                self._send_digest(link)     # so that the neighbour knows as well
        elif link.gossip.range_bytes.take(_RANGE_COST):
            self._send_ranges(link, ranges.whole(self._document.items))

    def on_ranges(self, link, received):
        if not link.gossip.range_bytes.take(_RANGE_COST):
            return
        answers, to_send, to_want = ranges.compare(self._document.items, received)
        self._send_ranges(link, answers)
        for item_id in to_send:
            self._send(link, self._document.items[item_id])
        for start in range(0, len(to_want), 64):
            self._links.control(link, Type.WANT, b"".join(to_want[start:start + 64]))

    def on_want(self, link, value):
        for prefix in prefixes(value):
            item = self._document.item_with_prefix(prefix)
            if item and link.gossip.wanted.take():
                self._send(link, item)

    def _send_ranges(self, link, areas):
        value, count = b"", 0
        for area in areas:
            encoded = area.encode()
            if len(value) + len(encoded) > _MOST_RANGE_BYTES or count == ranges.MOST_RANGES:
                self._links.control(link, Type.RANGES, value)
                value, count = b"", 0
            value, count = value + encoded, count + 1
        if value and link.gossip.range_bytes.take(len(value)):
            self._links.control(link, Type.RANGES, value)

"""Calls: claims, terms, ends, and this node's own part in them (section 10)."""

import os
import time
from dataclasses import dataclass

from .document import Document
from .entries import Claim, End, Joining, Moderation
from .events import emit, short
from .presence import Flag, Presence
from .rights import Role

# Seconds after entering the channel: without a comparison, and with one.
_STARTS_AFTER, _STARTS_EARLY_AFTER = 1.0, 0.6
_MET_AFTER, _LASTS_AFTER = 1.0, 10.0
_WAITED_AFTER = 7.0
_GRACE, _NEXT_IN_LINE = 10.0, 2.0


@dataclass(frozen=True)
class Call:
    """A call, as the entries of a document show it."""

    id: bytes
    standing: int
    term: int
    initiator: bytes
    order: int
    started_at: int

    @property
    def rank(self):
        """Of the calls that are led, the one with the smallest rank is the channel's."""
        return -self.standing, self.order, self.id


BLIND, INFORMED, JOINED, LASTING = range(4)


def removals(document: Document, rights):
    """The entries that remove members from calls."""
    return [one for one in document.entries(Moderation)
            if one.body.actions & Moderation.REMOVE
            and rights.moderates(document, one.author, one.body.member)]


def removed(document: Document, rights):
    """The calls and members that were removed from them."""
    return {(one.body.call, one.body.member) for one in removals(document, rights)}


def is_kept_out(member, joined, call, document: Document, rights):
    """Whether a removal keeps a member out of a call: itself, or another key of its invite that was
    not in the call by then. `joined` is that of its presence, None if it names another call.
    """
    invite = rights.invite(document, member)
    for one in removals(document, rights):
        is_same = one.body.call == call.id
        if one.body.member == member:
            if is_same or call.order < one.lamport:
                return True
        elif is_same and invite and invite == rights.invite(document, one.body.member):
            was_inside = joined is not None and joined < one.lamport
            if not was_inside and not any(
                    said.author == member and said.body.call == call.id
                    and said.lamport < one.lamport for said in document.entries(Joining)):
                return True
    return False


def valid_claims(document: Document, rights):
    """The claims whose authors may make them."""
    gone = removed(document, rights)
    return [one for one in document.entries(Claim)
            if rights.role(document, one.author) >= Role.PRESENTER
            and (one.body.term == 1 or (one.body.call, one.author) not in gone)]


def live_claims(document: Document, rights):
    """The valid claims that no end covers."""
    claims, gone = valid_claims(document, rights), removed(document, rights)
    claimed = {(one.author, one.body.call, one.body.term) for one in claims}
    ends = [one for one in document.entries(End)
            if (one.author, one.body.call, one.body.term) in claimed
            and (one.body.call, one.author) not in gone]
    return [one for one in claims if not any(_covers(end, one) for end in ends)]


def _covers(end, claim):
    if end.body.call != claim.body.call:
        return False
    is_own = claim.author == end.author and claim.body.term == end.body.term
    return is_own or claim.body.term < end.body.term


def describe(call, document: Document, rights):
    """The call as its entries show it; None without a live claim."""
    live = [one for one in live_claims(document, rights) if one.body.call == call]
    if not live:
        return None
    leader = min(live, key=lambda one: (-one.body.term, one.order))
    claims = [one for one in valid_claims(document, rights) if one.body.call == call]
    first = min((one for one in claims if one.body.term == 1),
                key=lambda one: one.order, default=leader)
    order = first.lamport if first.body.term == 1 else first.body.order
    return Call(call, standing(call, first, claims, document, rights), leader.body.term,
                leader.author, order, first.body.started_at)


def standing(call, first, claims, document: Document, rights):
    """How well a call is established, by the entries of two different members."""
    joinings = [one for one in document.entries(Joining)
                if one.body.call == call and rights.role(document, one.author) >= Role.CONSUMER]
    if any(one.body.term > 1 and one.author != first.author for one in claims):
        return LASTING
    if sum(one.body.stage == Joining.LASTING for one in joinings) > 1:
        return LASTING
    if any(one.author != first.author for one in joinings):
        return JOINED
    return INFORMED if first.body.has_compared or joinings else BLIND


def participants(call, present, document: Document, rights):
    """The members in a call, in the order of succession. `present` is a list of members, the calls
    that their presences name, and "joined".
    """
    return [member for joined, member in sorted((joined, member) for member, at, joined in present
                                                if at == call.id)
            if rights.role(document, member) >= Role.CONSUMER
            and not is_kept_out(member, joined, call, document, rights)]


def channels_call(document: Document, rights, present, viewer=None, ends_with_initiator=False):
    """The channel's call as `viewer` sees it, and its participants; None and [] if it sees none."""
    own = next((at for member, at, _ in present if member == viewer), None)
    best = None
    for at in {at for _, at, _ in present}:
        call = describe(at, document, rights)
        inside = call and participants(call, present, document, rights)
        if not inside:
            continue
        is_led = call.initiator in inside or not ends_with_initiator and any(
            rights.role(document, one) >= Role.PRESENTER for one in inside)
        is_open = is_led or at == own or not ends_with_initiator or call.initiator == viewer
        rank = not is_led, not is_led and at != own, call.rank
        if is_open and (best is None or rank < best[0]):
            best = rank, call, inside
    return best[1:] if best else (None, [])


class CallMember:
    """Joins, starts, leaves and takes over the channel's call."""

    def __init__(self, node, wants):
        self._node = node
        self._wants = wants          # whether to be in the call
        self._entered_at = time.monotonic()
        self.current = None          # the id of the call this node is in
        self.joined = 0
        self.hands_over = False      # whether it has left the call that it led to others
        self.call = None             # the channel's
        self._participants = set()
        self._initiator_gone_at = None
        self._together_since = None  # with another participant, without a break
        self._alone_since = None     # in a call, without a break

    def others(self):
        """The other participants of the call that this node is in."""
        if self.current is None:
            return []
        return [one for one, presence in self._node.roster.members.items()
                if presence.call == self.current]

    def join(self):
        """Joins the channel's call, or starts one."""
        self._wants = True

    def tick(self):
        if self._wants and (self.call is not None or self._may_start()):
            self._enter()
        self._say_if_together()
        self._take_over_if_due()

    def _may_start(self):
        waited = time.monotonic() - self._entered_at
        return waited > (_STARTS_EARLY_AFTER if self._node.gossip.has_compared else _STARTS_AFTER)

    def _enter(self):
        """Joins the channel's call; claims a new one if there is none."""
        if self.current is not None:
            return
        document, node = self._node.document, self._node
        self.joined = document.lamport + 1
        if self.call is not None:
            self.current = self.call.id
        elif node.rights.role(document, node.id) >= Role.PRESENTER:
            self.current = os.urandom(16)
            node.gossip.publish(Claim(self.current, 1, int(time.time() * 1000), 0,
                                      node.gossip.has_compared))
        else:
            return
        self.hands_over = False
        node.publish_presence()
        node.refresh()

    def refresh(self):
        """Follows the document and the roster."""
        present = [(member, presence.call, presence.joined)
                   for member, presence in self._node.roster.members.items() if presence.call]
        document, rights = self._node.document, self._node.rights
        mine = self.current and describe(self.current, document, rights)
        if mine and is_kept_out(self._node.id, self.joined, mine, document, rights):
            self._wants, self.current = False, None
            self._node.publish_presence()
        if self.current is not None:
            present.append((self._node.id, self.current, self.joined))
        claims = live_claims(document, rights)
        call, inside = channels_call(document, rights, present, self._node.id,
                                     rights.calls_end_with_initiator)
        self._emit_changes(call, set(inside))
        if self.current is None:
            return
        if call is not None and call.id != self.current:
            self.current = call.id       # moves over
            self.joined = document.lamport
            self._node.publish_presence()
            self._node.refresh()
        elif self.current not in {one.body.call for one in claims}:
            self._wants, self.current = False, None     # the call is over
            self._node.publish_presence()
            self._node.refresh()
        self._watch_initiator()

    def _emit_changes(self, call, participants):
        before, gone = self.call, self._participants - participants
        come = participants - self._participants
        self.call, self._participants = call, participants
        fields = {"participants": sorted(map(short, participants))}
        if before and (call is None or call.id != before.id):
            emit("call.ended", call=before.id, initiator=short(before.initiator), **fields)
        if call is None:
            return
        fields.update(call=call.id, initiator=short(call.initiator), term=call.term)
        if before is None or before.id != call.id:
            emit("call.started", **fields)
            return
        if before.initiator != call.initiator:
            emit("call.handed-over", **fields)
        for member in come:
            emit("call.joined", member=short(member), **fields)
        for member in gone:
            emit("call.left", member=short(member), **fields)

    def leave(self, hands_over=False):
        """Leaves the call; ends it if this node is its initiator and does not hand it over."""
        self._wants = False
        if self.current is None:
            return
        if self.call and self.call.initiator == self._node.id:
            self.hands_over = hands_over
            if not hands_over:
                self._end()
        self.current = None
        self._node.publish_presence()
        self._node.refresh()

    def moderate(self, prefix, actions):
        """Mutes the member whose id begins like that in the call, or removes it."""
        member = next(one for one in self._node.roster.members if one.startswith(prefix))
        self._node.gossip.publish(Moderation(self.call.id, member, actions))
        self._node.refresh()

    def _end(self):
        call, term = self.call, self.call.term
        claims = live_claims(self._node.document, self._node.rights)
        if any(one.body.call == call.id and one.body.term == term
               and one.author != self._node.id for one in claims):
            term += 1
            self._claim(term)
        self._node.gossip.publish(End(call.id, term))

    def _claim(self, term):
        call = self.call
        self._node.gossip.publish(
            Claim(call.id, term, call.started_at, call.order, call.standing > BLIND))

    # Joining entries

    def _say_if_together(self):
        """Signs a joining after 1 s with another participant, and another one after 10 s; one after
        7 s alone in a call that it has started without having compared documents.
        """
        now, node = time.monotonic(), self._node
        if self.current is None or not self.others():
            self._together_since = None
            self._say_if_waited(now)
            return
        self._alone_since = None
        if self._together_since is None or self._together_since[0] != self.current:
            self._together_since = (self.current, now)
        together = now - self._together_since[1]
        newest = node.document.latest(Joining, node.id)
        said = newest.body.stage if newest and newest.body.call == self.current else 0
        stage = (Joining.LASTING if together >= _LASTS_AFTER
                 else Joining.MET if together >= _MET_AFTER else 0)
        if stage > said:
            node.gossip.publish(Joining(self.current, stage))
            node.refresh()

    def _say_if_waited(self, now):
        node, call = self._node, self.call
        is_own = call is not None and self.current == call.id and call.initiator == node.id
        if not is_own or call.standing > BLIND:
            self._alone_since = None
        elif self._alone_since is None or self._alone_since[0] != call.id:
            self._alone_since = (call.id, now)
        elif now - self._alone_since[1] >= _WAITED_AFTER:
            node.gossip.publish(Joining(call.id, Joining.MET))
            node.refresh()

    # Taking over

    def _watch_initiator(self):
        is_there = (self.call is None or self.current is None
                    or self.call.initiator in self._participants)
        if is_there:
            self._initiator_gone_at = None
        elif self._initiator_gone_at is None:
            self._initiator_gone_at = time.monotonic()

    def _take_over_if_due(self):
        """After 10 s, or at once if the initiator has handed the call over, the first in line
        claims the next term, 2 s later the second one, and so on.
        """
        if self._initiator_gone_at is None or self.call is None or self.current is None:
            return
        if self._node.rights.calls_end_with_initiator:
            if time.monotonic() - self._initiator_gone_at > _GRACE:
                self._initiator_gone_at, self._wants, self.current = None, False, None
                self._node.publish_presence()
                self._node.refresh()
            return
        if self._node.rights.role(self._node.document, self._node.id) < Role.PRESENTER:
            return
        line = sorted([(self.joined, self._node.id)] + [
            (self._node.roster.members[one].joined, one) for one in self.others()
            if self._node.rights.role(self._node.document, one) >= Role.PRESENTER])
        turn = line.index((self.joined, self._node.id))
        newest = self._node.document.latest(Presence, self.call.initiator)
        has_left = newest and newest.body.call is None and newest.body.flags & Flag.HANDS_OVER
        grace = 0 if has_left else _GRACE
        if time.monotonic() - self._initiator_gone_at > grace + _NEXT_IN_LINE * turn:
            self._initiator_gone_at = None
            self._claim(self.call.term + 1)
            self._node.refresh()

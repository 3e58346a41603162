"""Calls: claims, terms, ends, and this node's own part in them (section 10)."""

import os
import time
from dataclasses import dataclass

from .document import Document
from .entries import Claim, End, Joining, Moderation
from .events import emit, short
from .rights import Role

# Seconds after entering the channel: without a comparison, and with one.
_STARTS_AFTER, _STARTS_EARLY_AFTER = 1.0, 0.6
_MET_AFTER, _LASTS_AFTER = 1.0, 10.0
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
        """The call with the smallest rank is the channel's."""
        return -self.standing, self.order, self.id


BLIND, INFORMED, JOINED, LASTING = range(4)


def removed(document: Document, rights):
    """The calls and members that were removed from them."""
    return {(one.body.call, one.body.member) for one in document.entries(Moderation)
            if one.body.actions & Moderation.REMOVE
            and rights.moderates(document, one.author, one.body.member)}


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
    return INFORMED if first.body.has_compared else BLIND


def channels_call(document: Document, rights, present_in):
    """The channel's call, or None. `present_in`: the ids of calls with a reachable participant."""
    calls = [describe(one, document, rights) for one in set(present_in)]
    return min((one for one in calls if one), key=lambda one: one.rank, default=None)


class CallMember:
    """Joins, starts, leaves and takes over the channel's call."""

    def __init__(self, node, wants):
        self._node = node
        self._wants = wants          # whether to be in the call
        self._entered_at = time.monotonic()
        self.current = None          # the id of the call this node is in
        self.joined = 0
        self.call = None             # the channel's
        self._participants = set()
        self._initiator_gone_at = None
        self._together_since = None  # with another participant, without a break

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
        node.publish_presence()
        node.refresh()

    def refresh(self):
        """Follows the document and the roster."""
        members = {member: presence.call for member, presence in self._node.roster.members.items()
                   if presence.call}
        document, rights = self._node.document, self._node.rights
        gone = removed(document, rights)
        if (self.current, self._node.id) in gone:
            self._wants, self.current = False, None
            self._node.publish_presence()
        if self.current is not None:
            members[self._node.id] = self.current
        members = {member: at for member, at in members.items() if (at, member) not in gone}
        claims = live_claims(document, rights)
        call = channels_call(document, rights, members.values())
        self._emit_changes(call, {one for one, at in members.items() if call and at == call.id})
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

    def leave(self):
        """Leaves the call; ends it if this node is its initiator."""
        self._wants = False
        if self.current is None:
            return
        if self.call and self.call.initiator == self._node.id:
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
        """Signs a joining after 1 s with another participant, and another one after 10 s."""
        if self.current is None or not self.others():
            self._together_since = None
            return
        now, node = time.monotonic(), self._node
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

    # Taking over

    def _watch_initiator(self):
        is_there = (self.call is None or self.current is None
                    or self.call.initiator in self._participants)
        if is_there:
            self._initiator_gone_at = None
        elif self._initiator_gone_at is None:
            self._initiator_gone_at = time.monotonic()

    def _take_over_if_due(self):
        """After 10 s the first in line claims the next term, 2 s later the second one, and so on.
        """
        if self._initiator_gone_at is None or self.call is None or self.current is None:
            return
        if self._node.rights.role(self._node.document, self._node.id) < Role.PRESENTER:
            return
        line = sorted([(self.joined, self._node.id)] + [
            (self._node.roster.members[one].joined, one) for one in self.others()
            if self._node.rights.role(self._node.document, one) >= Role.PRESENTER])
        turn = line.index((self.joined, self._node.id))
        if time.monotonic() - self._initiator_gone_at > _GRACE + _NEXT_IN_LINE * turn:
            self._initiator_gone_at = None
            self._claim(self.call.term + 1)
            self._node.refresh()

"""Roles and rights (section 12)."""

import time
from enum import IntEnum

from .crypto import blake2b, verify
from .entries import Claim, End, Epoch, Grant, Message, Moderation, Redemption
from .media.streams import SCREEN
from .reader import Malformed, Reader

_HIGHEST_LAMPORT_OF_OTHERS = 1 << 61
_CALLS_END_WITH_INITIATOR, _ONLY_PRESENTERS_SEND = 1, 2


class Role(IntEnum):
    NONE = 0
    CONSUMER = 1
    ATTENDEE = 2
    PRESENTER = 3
    OWNER = 4


class Genesis:
    """Makes a created channel; signed by its owner."""

    def __init__(self, raw):
        self.raw = raw
        reader = Reader(raw)
        self.owner, self.nonce = reader.take(32), reader.take(16)
        self.created_at, self.settings = reader.number(8), reader.number(1)
        self.name = reader.text(64)
        signature = reader.take(64)
        if not reader.is_at_end:
            raise Malformed("a genesis with bytes left over")
        if not verify(self.owner, signature, b"muster/1 genesis" + raw[:-64]):
            raise Malformed("the genesis is not signed by its owner")
        self.channel_id = blake2b(32, b"muster/1 genesis id" + raw)


def redemption_message(channel_id, redeemer):
    """The bytes that the one-time key of an invite signs."""
    return b"muster/1 redeem" + channel_id + redeemer


class OpenRights:
    """In an open channel everyone is a presenter; grants, epochs and moderations mean nothing."""

    def takes(self, document, entry):
        return True

    def holds(self, document, entry):
        return True

    def principal(self, document, entry):
        return entry.author

    def drops(self, entry):
        return entry.kind in (Grant.KIND, Epoch.KIND, Moderation.KIND)

    def is_owner(self, author):
        return False

    def role(self, document, member, now=None):
        return Role.PRESENTER

    def invite(self, document, member):
        return None

    calls_end_with_initiator = False

    def moderates(self, document, author, member):
        return False

    def may_send(self, document, member, stream=None):
        return True


class CreatedRights:
    """The rights of a created channel, as its document has them now."""

    def __init__(self, genesis):
        self._genesis = genesis

    @property
    def calls_end_with_initiator(self):
        return bool(self._genesis.settings & _CALLS_END_WITH_INITIATOR)

    def is_owner(self, author):
        return author == self._genesis.owner

    def role(self, document, member, now=None):
        """The role at a time in seconds since 1970; without one, now."""
        if member in document.quarantined and not self.is_owner(member):
            return Role.NONE
        return self._granted(document, member, time.time() if now is None else now)

    def _granted(self, document, member, now):
        """The role that grants and a redemption give, whether the member is quarantined or not."""
        if self.is_owner(member) or self._is_made_owner(document, member, now):
            return Role.OWNER
        return self._given(document, member, now, lambda author: self._is_granter(
            document, author, now))

    def _given(self, document, member, now, is_granter):
        """The role by the grants of some owners."""
        newest = self._newest_grant(document, member, is_granter)
        removed_by = self._removed_by(document, member)
        if newest and removed_by and newest.order < removed_by.order:
            newest = None
        granted = newest.body.role if newest and _is_valid(newest.body, now) else Role.NONE
        return max(granted, self._redeemed(document, member, newest, now, is_granter))

    def moderates(self, document, author, member):
        """Whether a member's moderations of another count, expired roles included."""
        role = self.role(document, author, now=0)
        is_higher = self.is_owner(author) or role > self.role(document, member, now=0)
        return (role >= Role.PRESENTER and is_higher and author != member
                and not self.is_owner(member))

    def may_send(self, document, member, stream=None):
        """Whether a member may send a video stream, or audio if `stream` is None."""
        only_presenters = self._genesis.settings & _ONLY_PRESENTERS_SEND or stream == SCREEN
        return self.role(document, member) >= (Role.PRESENTER if only_presenters else Role.ATTENDEE)

    def epochs(self, document):
        """The valid chain: the owner's, from 1 on without a gap."""
        candidates = sorted(
            (one for one in document.entries(Epoch) if self.is_owner(one.author)),
            key=lambda one: one.order)
        chain, previous = [], bytes(32)
        while True:
            following = [one for one in candidates if one.body.number == len(chain) + 1
                         and one.body.previous == previous and self._is_complete(document, one)]
            if not following:
                return chain
            chain.append(following[0])
            previous = following[0].id

    def _invite_epoch(self, document):
        """The epoch from which on invites count: the newest that removed anyone."""
        removing = [one.body.number for one in self.epochs(document) if one.body.removed]
        return max(removing, default=0)

    def takes(self, document, entry):
        """Whether the document admits an entry, by its author and kind. A redemption that gives
        nothing goes again when the document settles.
        """
        if entry.kind == Redemption.KIND:
            return self._is_good(document, entry)
        return self.holds(document, entry)

    def holds(self, document, entry):
        """Whether the document keeps an entry: by the author's role, whether it has expired or not,
        since the clocks of nodes differ.
        """
        role = self._granted(document, entry.author, now=0)
        if entry.kind == Epoch.KIND:
            return self.is_owner(entry.author)
        if entry.kind == Grant.KIND:
            return role == Role.OWNER
        if entry.kind == Redemption.KIND:
            return role > Role.NONE
        removed_by = self._removed_by(document, entry.author)
        if entry.kind == Message.KIND and removed_by and entry.lamport <= removed_by.lamport:
            return False
        of_presenters = entry.kind in (Claim.KIND, End.KIND, Moderation.KIND)
        return role >= (Role.PRESENTER if of_presenters else Role.CONSUMER)

    def _removed_by(self, document, member):
        """The newest epoch that removed a member, or the invite that its grants name; None if none
        did.
        """
        gone = {member, self._confirmed_invite(document, member)}
        return max((one for one in self.epochs(document) if gone & set(one.body.removed)),
                   key=lambda one: one.order, default=None)

    def principal(self, document, entry):
        """To whose share an entry counts: an invite's, or its author's or subject's own."""
        if entry.kind == Redemption.KIND and entry.body.grant is not None:
            return entry.body.grant.body.subject
        if entry.kind == Grant.KIND and self.is_owner(entry.author):
            return entry.body.invite or entry.body.subject
        return self.invite(document, entry.author) or entry.author

    def invite(self, document, member):
        """The one-time key of the invite by which a member came; None if it came by none."""
        confirmed = self._confirmed_invite(document, member)
        if confirmed is not None:
            return confirmed
        redemption = document.latest(Redemption, member)
        if redemption is not None and redemption.body.grant is not None:
            return redemption.body.grant.body.subject
        return None

    def _confirmed_invite(self, document, member):
        """The one-time key that the newest of a member's grants names that name one."""
        newest = max(
            (one for one in document.entries(Grant)
             if one.body.subject == member and one.body.invite
             and self._counts(document, one)),
            key=lambda one: one.order, default=None)
        return newest and newest.body.invite

    def drops(self, entry):
        """Whether the document never keeps an entry that it takes."""
        return (entry.kind == Grant.KIND and not self.is_owner(entry.author)
                and entry.lamport > _HIGHEST_LAMPORT_OF_OTHERS)

    def _is_complete(self, document, epoch):
        """Whether a grant is known for each member that the epoch keeps."""
        subjects = {one.body.subject[:8] for one in document.entries(Grant)}
        return all(kept in subjects for kept in epoch.body.kept)

    def _counts(self, document, grant):
        """Whether a grant is by an owner who may give it, or might before that role expired."""
        return self.is_owner(grant.author) or (
            grant.body.role < Role.OWNER and self._is_made_owner(document, grant.author, now=0))

    def _is_granter(self, document, member, now):
        return self.is_owner(member) or self._is_made_owner(document, member, now)

    def _is_made_owner(self, document, member, now):
        """Whether the owner of the genesis made a member an owner, which nobody else takes away."""
        return (member not in document.quarantined
                and self._given(document, member, now, self.is_owner) == Role.OWNER)

    def _newest_grant(self, document, member, is_granter):
        direct = [one for one in document.entries(Grant)
                  if one.body.subject == member and not one.body.bearer
                  and is_granter(one.author)
                  and (self.is_owner(one.author) or one.body.role < Role.OWNER)]
        return max(direct, key=lambda one: one.order, default=None)

    def _redeemed(self, document, member, direct, now, is_granter):
        """The role from a redemption; it is valid until an epoch newer than its grant's removes."""
        redemption = document.latest(Redemption, member)
        if redemption is None or not self._is_good(document, redemption):
            return Role.NONE
        invite = redemption.body.grant
        grant, (_, role_expires_at) = invite.body, invite.body.terms
        if not is_granter(invite.author) or grant.epoch < self._invite_epoch(document):
            return Role.NONE
        if not _is_valid(grant, now) or role_expires_at and role_expires_at <= now:
            return Role.NONE
        if direct is not None and direct.order > invite.order:
            return Role.NONE
        return grant.role if self._has_use(document, redemption) else Role.NONE

    def _has_use(self, document, redemption):
        """Whether the invite permits this use of it: whether it is confirmed, or a use is left."""
        entry, one_time_key = redemption.body.grant, redemption.body.grant.body.subject
        published = self._published(document, one_time_key)
        if (published is not None and published.body.role == Role.NONE
                or any(one_time_key in one.body.removed for one in self.epochs(document))):
            return False
        uses, _ = entry.body.terms
        if uses == 0:
            return True
        confirmed = {one.body.subject for one in document.entries(Grant)
                     if one.body.invite == one_time_key and self._counts(document, one)}
        return redemption.author in confirmed or len(confirmed) < uses

    def _published(self, document, one_time_key):
        """The newest grant in the document for the one-time key of an invite."""
        return max((one for one in document.entries(Grant)
                    if one.body.bearer and one.body.subject == one_time_key
                    and self._counts(document, one)),
                   key=lambda one: one.order, default=None)

    def _is_good(self, document, redemption):
        grant, channel_id = redemption.body.grant, self._genesis.channel_id
        return (grant is not None and self._counts(document, grant)
                and grant.is_signed(channel_id)
                and verify(grant.body.subject, redemption.body.signature,
                           redemption_message(channel_id, redemption.author)))


def _is_valid(grant, now):
    return not grant.expires_at or grant.expires_at > now

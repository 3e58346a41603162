"""The document and the retention of its entries (section 9, "Retention")."""

from collections import OrderedDict

from . import ranges
from .crypto import blake2b
from .entries import (
    Claim, End, Epoch, Grant, Joining, Message, Moderation, NeighbourReport, Redemption)
from .presence import Presence

_NEWEST_OF_AUTHOR = (Presence.KIND, NeighbourReport.KIND, Redemption.KIND, Joining.KIND)
_RIGHTS = (Grant.KIND, Redemption.KIND, Epoch.KIND)
_MOST_QUARANTINED = 256
_MOST_REMEMBERED = 256
_MOST_REFUSED = 300
_LARGEST_STEP = 1 << 24  # of the Lamport counter, by one entry

KEPT, DROPPED, QUARANTINED = "kept", "dropped", "quarantined"


class Table:
    """Entries of like kinds: the newest of each author, or under another key, and of these as many
    as fit, which principals share.
    """

    def __init__(self, of_each_key, in_all, key=lambda entry: entry.author):
        self.of_each_key, self.in_all, self.key = of_each_key, in_all, key
        self.entries = {}

    def newest(self, key):
        return max(self._under(key), key=lambda one: one.order, default=None)

    def add(self, entry, principal_of):
        """The evicted entries, which may include the new one."""
        self.entries[entry.id] = entry
        gone = []
        own = self._under(self.key(entry))
        if len(own) > self.of_each_key:
            gone.append(min(own, key=lambda one: one.order))
            self.entries.pop(gone[0].id)
        if len(self.entries) > self.in_all:
            gone.append(self._next_to_go(principal_of))
            self.entries.pop(gone[-1].id)
        return gone

    def _under(self, key):
        return [one for one in self.entries.values() if self.key(one) == key]

    def _next_to_go(self, principal_of):
        """The oldest of those with the most entries, of the principal with the most entries."""
        shares = {}    # principal -> key -> entries
        for one in self.entries.values():
            share = shares.setdefault(principal_of(one), {})
            share.setdefault(self.key(one), []).append(one)
        counts = {principal: sum(map(len, share.values())) for principal, share in shares.items()}
        most = max(counts.values())
        if most == 1:
            return min(self.entries.values(), key=lambda one: one.order)
        share = shares[min(one for one, count in counts.items() if count == most)].values()
        largest = max(map(len, share))
        return min((one for own in share if len(own) == largest for one in own),
                   key=lambda one: one.order)


class Document:
    """A function of the set of entries it was given, not of their order."""

    def __init__(self, rights, own):
        self._rights, self._own = rights, own
        self.items = {}        # id -> the entries of the item: one, or two for a quarantined author
        self._by_prefix = {}
        self.grants = Table(1, 4096, key=lambda grant: grant.body.subject)    # the owner's
        self.calls = Table(64, 256)
        self.messages = Table(2048, 4096)
        self._tables = {
            Claim.KIND: self.calls, End.KIND: self.calls, Message.KIND: self.messages,
            Epoch.KIND: Table(1024, 1024), Grant.KIND: Table(128, 4096),
            Moderation.KIND: Table(64, 256),
            **{kind: Table(1, 2048) for kind in _NEWEST_OF_AUTHOR},
        }
        self._unknown = Table(32, 256)
        self._by_sequence = {}             # (author, sequence) -> entry that is kept
        self._former = OrderedDict()       # the same, of entries that were not kept
        self.quarantined = set()
        self._refused = OrderedDict()      # entries to look at again when the rights change
        self.lamport = 0

    # Reading

    def entries(self, body):
        """All kept entries with this kind of body."""
        return [item[0] for item in self.items.values()
                if len(item) == 1 and item[0].kind == body.KIND]

    def latest(self, body, author):
        return self._tables[body.KIND].newest(author)

    def digest(self):
        return ranges.digest(self.items)

    def item_with_prefix(self, prefix):
        return self.items.get(self._by_prefix.get(prefix), ())

    def keeps(self, entry):
        return entry.id in self.items

    # Adding

    def add(self, entry):
        """Takes an entry whose signature is good; KEPT, DROPPED or QUARANTINED."""
        is_bound = entry.kind != Redemption.KIND    # by its sequence number, and by a quarantine
        if is_bound and entry.author in self.quarantined or self.keeps(entry):
            return DROPPED
        if not self._rights.takes(self, entry):
            self._refuse(entry)
            return DROPPED
        self.lamport = max(self.lamport, min(entry.lamport, self.lamport + _LARGEST_STEP))
        key = entry.author, entry.sequence
        other = is_bound and (self._by_sequence.get(key) or self._former.get(key)) or None
        if (other is not None and other.id != entry.id and not self._rights.is_owner(entry.author)
                and self._has_room_for_quarantine(entry.author)):
            self._quarantine(entry, other)
            return QUARANTINED
        self._insert(entry)
        for one in self._displaced_by(entry):
            self._remove(one)
        if entry.kind in _RIGHTS:
            self._settle()
        return KEPT if entry.id in self.items else DROPPED

    def retry_refused(self):
        """Tries the refused entries again; returns those that are kept now."""
        refused, self._refused = self._refused, OrderedDict()
        return [one for one in refused.values() if self.add(one) == KEPT]

    def _refuse(self, entry):
        self._refused[entry.id] = entry
        while len(self._refused) > _MOST_REFUSED:
            self._refused.popitem(last=False)

    def _displaced_by(self, entry):
        """The entries that an entry supersedes; the entry itself if it is not kept."""
        if self._rights.drops(entry):
            return [entry]
        return self._table(entry).add(entry, lambda one: self._rights.principal(self, one))

    def _table(self, entry):
        if entry.kind == Grant.KIND and self._rights.is_owner(entry.author):
            return self.grants
        return self._tables.get(entry.kind, self._unknown)

    def _settle(self):
        """Removes the entries whose authors have no right to them any more, but keeps those of this
        node until it has a role.
        """
        while True:
            entries = [item[0] for item in self.items.values() if len(item) == 1]
            if not self._rights.role(self, self._own, now=0):
                entries = [one for one in entries if one.author != self._own]
            gone = [one for one in entries if not self._rights.holds(self, one)]
            ended = [author for author in self.quarantined
                     if not all(self._rights.holds(self, one)
                                for one in self.items[equivocation_id(author)])]
            if not gone and not ended:
                return
            for author in ended:
                self._end_quarantine(author)
            for one in gone:
                self._table(one).entries.pop(one.id)
                self._remove(one)

    def _insert(self, entry):
        self.items[entry.id] = (entry,)
        self._by_prefix[entry.id[:8]] = entry.id
        if entry.kind != Redemption.KIND:
            self._by_sequence[entry.author, entry.sequence] = entry

    def _remove(self, entry):
        self.items.pop(entry.id)
        self._by_prefix.pop(entry.id[:8], None)
        if entry.kind == Redemption.KIND:
            return
        self._by_sequence.pop((entry.author, entry.sequence), None)
        self._former[entry.author, entry.sequence] = entry
        while len(self._former) > _MOST_REMEMBERED:
            self._former.popitem(last=False)

    def _has_room_for_quarantine(self, author):
        """Of too many quarantined authors, those with the smallest item ids stay."""
        if len(self.quarantined) < _MOST_QUARANTINED:
            return True
        last = max(self.quarantined, key=equivocation_id)
        if equivocation_id(author) > equivocation_id(last):
            return False
        self._end_quarantine(last)
        return True

    def _end_quarantine(self, author):
        self.quarantined.remove(author)
        item_id = equivocation_id(author)
        del self.items[item_id]
        self._by_prefix.pop(item_id[:8], None)

    def _quarantine(self, entry, other):
        """Equivocation: two entries under one sequence. All entries of the author go, but for a
        redemption.
        """
        author = entry.author
        self.quarantined.add(author)
        for item in list(self.items.values()):
            if item[0].author == author and len(item) == 1 and item[0].kind != Redemption.KIND:
                self._table(item[0]).entries.pop(item[0].id)
                self._remove(item[0])
        item_id = equivocation_id(author)
        self.items[item_id] = (other, entry)
        self._by_prefix[item_id[:8]] = item_id


def equivocation_id(author):
    """The id of the item that quarantines an author."""
    return blake2b(32, b"muster/1 fence" + author)


def predecessors(document):
    """The newest messages without a successor, at most four: the predecessors of a new one."""
    messages = document.messages.entries.values()
    followed = {one for message in messages for one in message.body.predecessors}
    heads = [one for one in messages if one.id[:8] not in followed]
    heads.sort(key=lambda one: one.order, reverse=True)
    return tuple(one.id[:8] for one in heads[:4])

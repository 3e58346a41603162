"""The document and the retention of its entries (section 9, "Retention")."""

from collections import OrderedDict

from . import ranges
from .crypto import blake2b
from .entries import Claim, End, Epoch, Grant, Joining, Message, NeighbourReport, Redemption
from .presence import Presence

_NEWEST_OF_AUTHOR = (Presence.KIND, NeighbourReport.KIND, Redemption.KIND, Joining.KIND)
_MOST_NEWEST = 2048      # authors or subjects of whom the newest entry is kept
_MOST_QUARANTINED = 256
_MOST_REMEMBERED = 256
_MOST_REFUSED = 300
_LARGEST_STEP = 1 << 32  # of the Lamport counter, by one entry

KEPT, DROPPED, QUARANTINED = "kept", "dropped", "quarantined"


class Table:
    """Entries of like kinds: the newest of each author are kept, and the newest of all."""

    def __init__(self, of_each_author, in_all):
        self.of_each_author, self.in_all = of_each_author, in_all
        self.entries = {}

    def add(self, entry):
        """The evicted entries, which may include the new one."""
        self.entries[entry.id] = entry
        own = [one for one in self.entries.values() if one.author == entry.author]
        gone = self._oldest(own, self.of_each_author)
        return gone + self._oldest(self.entries.values(), self.in_all)

    def _oldest(self, entries, limit):
        count = len(entries) - limit
        if count <= 0:
            return []
        oldest = sorted(entries, key=lambda one: one.order)[:count]
        for one in oldest:
            self.entries.pop(one.id)
        return oldest


class Document:
    """A function of the set of entries it was given, not of their order."""

    def __init__(self, rights):
        self._rights = rights
        self.items = {}        # id -> the entries of the item: one, or two for a quarantined author
        self._by_prefix = {}
        self._newest = {kind: {} for kind in _NEWEST_OF_AUTHOR}   # kind -> author -> entry
        self.grants = {}       # (author, subject) -> the owner's newest grant
        self.calls = Table(64, 256)
        self.messages = Table(2048, 4096)
        self._tables = {
            Claim.KIND: self.calls, End.KIND: self.calls, Message.KIND: self.messages,
            Epoch.KIND: Table(1024, 1024), Grant.KIND: Table(128, 2048),
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
        return self._newest[body.KIND].get(author)

    def digest(self):
        return ranges.digest(self.items)

    def item_with_prefix(self, prefix):
        return self.items.get(self._by_prefix.get(prefix), ())

    def keeps(self, entry):
        return entry.id in self.items

    # Adding

    def add(self, entry):
        """Takes an entry whose signature is good; KEPT, DROPPED or QUARANTINED."""
        if entry.author in self.quarantined or self.keeps(entry):
            return DROPPED
        if not self._rights.takes(self, entry):
            self._refuse(entry)
            return DROPPED
        self.lamport = max(self.lamport, min(entry.lamport, self.lamport + _LARGEST_STEP))
        key = entry.author, entry.sequence
        other = self._by_sequence.get(key) or self._former.get(key)
        if (other is not None and other.id != entry.id and not self._rights.is_owner(entry.author)
                and self._has_room_for_quarantine(entry.author)):
            self._quarantine(entry, other)
            return QUARANTINED
        self._insert(entry)
        for one in self._displaced_by(entry):
            self._remove(one)
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
        if entry.kind in _NEWEST_OF_AUTHOR:
            return self._replace(self._newest[entry.kind], entry.author, entry)
        if entry.kind == Grant.KIND and self._rights.is_owner(entry.author):
            return self._replace(self.grants, (entry.author, entry.body.subject), entry)
        return self._tables.get(entry.kind, self._unknown).add(entry)

    @staticmethod
    def _replace(newest, key, entry):
        old = newest.get(key)
        if old is not None and old.order >= entry.order:
            return [entry]
        newest[key] = entry
        if len(newest) <= _MOST_NEWEST:
            return [old] if old is not None else []
        oldest = min(newest, key=lambda one: newest[one].order)
        return [newest.pop(oldest)]

    def _insert(self, entry):
        self.items[entry.id] = (entry,)
        self._by_prefix[entry.id[:8]] = entry.id
        self._by_sequence[entry.author, entry.sequence] = entry

    def _remove(self, entry):
        self.items.pop(entry.id)
        self._by_prefix.pop(entry.id[:8], None)
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
        self.quarantined.remove(last)
        item_id = equivocation_id(last)
        del self.items[item_id]
        self._by_prefix.pop(item_id[:8], None)
        return True

    def _quarantine(self, entry, other):
        """Equivocation: two entries under one sequence. All entries of the author go."""
        author = entry.author
        self.quarantined.add(author)
        for item in [item for item in self.items.values() if item[0].author == author]:
            self._remove(item[0])
        for table in (*self._tables.values(), self._unknown):
            table.entries = {key: one for key, one in table.entries.items() if one.author != author}
        for newest in (*self._newest.values(), self.grants):
            for key in [key for key, one in newest.items() if one.author == author]:
                del newest[key]
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

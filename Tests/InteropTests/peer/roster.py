"""The roster, and this node's neighbour report (section 9)."""

from .entries import NeighbourReport
from .events import emit, short
from .presence import Flag, Presence, printable

_GATHERING = 0.05   # seconds for which changes of links are gathered into one report
_MOST_NEIGHBOURS, _MOST_SUSPECTED = 64, 32


class Roster:
    def __init__(self, node):
        self._node = node
        self.members = {}      # id -> Presence, of all members but this node
        self._report_is_due = False
        self._reported = None

    # This node's own reports

    def report_soon(self):
        if not self._report_is_due:
            self._report_is_due = True
            self._node.loop.after(_GATHERING, self.report)

    def report(self, again=False):
        """Publishes a neighbour report if it says anything new."""
        self._report_is_due = False
        links = self._node.links.all_up()
        neighbours = sorted(link.peer[:8] for link in links)[:_MOST_NEIGHBOURS]
        suspected = sorted(link.peer[:8] for link in links if link.watch.is_suspected)
        body = NeighbourReport(
            self._node.boot, tuple(neighbours), tuple(suspected[:_MOST_SUSPECTED]))
        if again or body != self._reported:
            self._reported = body
            self._node.gossip.publish(body)
            self._node.refresh()

    # Reports of others

    def _report_of(self, member):
        """A neighbour report is valid only with the boot id of its author's presence."""
        report = self._node.document.latest(NeighbourReport, member)
        presence = self._node.document.latest(Presence, member)
        if report is None or presence is None or report.body.boot != presence.body.boot:
            return None
        return report.body

    def has_neighbour(self, member, other):
        if member == self._node.id:
            return self._node.links.is_up(other)
        report = self._report_of(member)
        return report is not None and other[:8] in report.neighbours

    def doubts(self, member, other):
        """Whether the neighbour report of `member` suspects `other` or does not list it."""
        report = self._report_of(member)
        return report is not None and (
            other[:8] in report.suspected or other[:8] not in report.neighbours)

    # The roster

    def refresh(self):
        before, self.members = self.members, self._present()
        replaced = {one for one in self.members.keys() & before.keys()
                    if self.members[one].boot != before[one].boot}
        gone = (before.keys() - self.members.keys()) | replaced
        for member in gone:
            self._emit("member.left", member, before[member],
                       reason=self._reason(member, before[member]))
        for member in (self.members.keys() - before.keys()) | replaced:
            self._emit("member.joined", member, self.members[member])
        for member in (self.members.keys() & before.keys()) - replaced:
            if self.members[member] != before[member]:
                self._emit("member.updated", member, self.members[member])

    def _reason(self, member, before):
        """Why a member has left the roster; `before` is its last presence in it."""
        entry, link = self._node.document.latest(Presence, member), self._node.links.get(member)
        boots = {entry.body.boot} if entry else set()
        if link and link.is_up:
            boots.add(link.boot)
        if entry is None or not self._node.rights.role(self._node.document, member):
            return "removed"   # a quarantined author has no entries
        if boots != {before.boot}:
            return "replaced"
        has_left = entry.body.leaves or self._node.links.was_closed_by(member)
        return "left" if has_left else "crashed"

    def _emit(self, event, member, presence, **more):
        role = self._node.rights.role(self._node.document, member)
        emit(event, member=short(member), name=printable(presence.name), role=int(role),
             inCall=presence.call is not None, videoMuted=bool(presence.flags & Flag.VIDEO_MUTED),
             audioMuted=bool(presence.flags & Flag.AUDIO_MUTED),
             streams={one.name: [f"{layer.width}x{layer.height}@{layer.rate}"
                                 for layer in one.layers] for one in presence.streams}, **more)

    def _present(self):
        present = {}
        for member in self._reachable():
            entry = self._node.document.latest(Presence, member)
            link = self._node.links.get(member)
            if entry is None or entry.body.leaves:
                continue
            if link and link.is_up and entry.body.boot != link.boot:
                continue  # of a neighbour only the run that the handshake named
            if self._node.rights.role(self._node.document, member):
                present[member] = entry.body
        return present

    def _reachable(self):
        """Neighbours, and members that a reachable one names and that name it, too."""
        reached = {link.peer for link in self._node.links.all_up()}
        authors = [entry.author for entry in self._node.document.entries(Presence)]
        to_visit = list(reached)
        while to_visit:
            member = to_visit.pop()
            for other in authors:
                if other in reached or other == self._node.id:
                    continue
                if self.has_neighbour(member, other) and self.has_neighbour(other, member):
                    reached.add(other)
                    to_visit.append(other)
        return reached

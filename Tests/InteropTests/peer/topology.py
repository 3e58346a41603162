"""The choice of members to link to (section 9, "Topology")."""

_FULL_MESH = 24       # members, this node included
_RING_DISTANCE = 3
_MOST_LINKS = 64
_GRACE = 10.0         # seconds before a link that is not wanted is closed


def ring_distance(members, one, other):
    """The distance of two ids in the ring of all ids, in positions."""
    ring = sorted(members)
    apart = abs(ring.index(one) - ring.index(other))
    return min(apart, len(ring) - apart)


class Topology:
    def __init__(self, node):
        self._node = node

    def wants(self, peer):
        """Decides by this node's roster; a peer that is not in it yet is wanted."""
        members = {*self._node.roster.members, self._node.id}
        if peer not in members or len(members) <= _FULL_MESH or peer in self._node.call.others():
            return True
        return ring_distance(members, self._node.id, peer) <= _RING_DISTANCE

    def may_open(self, peer):
        """Whether to open a handshake to a peer that discovery found."""
        return self.wants(peer) and len(self._node.links.all()) < _MOST_LINKS

    def is_surplus(self, link, now):
        """Whether a link is to be closed: the two rosters may differ for a moment."""
        return now - link.began_at > _GRACE and not self.wants(link.peer)

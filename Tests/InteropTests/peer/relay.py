"""Relaying: passing on datagrams of two members who cannot reach each other (section 7)."""

import time

from . import control
from .address import Via, encode_address
from .budget import Budget
from .events import emit, short
from .presence import Flag

RELAYED = 0x03
FORWARD, FORWARDED = range(2)
LONGEST_RELAYED = 1161
_HEADER = 10
_LINK_DATAGRAMS = (0x10, 0x11, 0x12, 0x20)
_UNREACHABLE_AFTER = 0.75
_CANDIDATE_INTERVAL = 4.0
_RETRY_INTERVAL = 1.0


class Relay:
    """Both sides: what this node passes on for others, and its own links through a neighbour."""

    def __init__(self, node):
        self._node = node
        self._budget = Budget(250_000, 500_000)   # bytes
        self._pairs = {}             # (id, id) -> Budget: none more than half
        self._without_link = {}      # member of the call -> since when
        self._tried_at = {}          # the same -> when a handshake was begun
        self._candidates_at = {}     # peer -> when candidates were sent
        self.relayed = 0             # datagrams passed on

    # Sending and receiving through a neighbour

    def send(self, route, datagram):
        link = self._node.links.get(route.neighbour)
        if link and link.is_up and not link.is_relayed and len(datagram) <= LONGEST_RELAYED:
            head = bytes([RELAYED, FORWARD]) + route.member[:8]
            self._node.links.send(link, head + datagram)

    def receive(self, link, payload):
        if link.is_relayed or len(payload) <= _HEADER:
            return
        member, datagram = payload[2:_HEADER], payload[_HEADER:]
        if payload[1] == FORWARD and self._node.settings.relays:
            self._pass_on(link, member, datagram)
        elif payload[1] == FORWARDED and datagram[0] in _LINK_DATAGRAMS:
            author = next((one for one in self._node.roster.members if one[:8] == member), None)
            if author is not None:
                self._node.receive(datagram, Via(link.peer, author))

    def _pass_on(self, link, member, datagram):
        target = next((one for one in self._node.links.all_up() if one.peer[:8] == member), None)
        if target is None or target.is_relayed or target is link:
            return
        pair = tuple(sorted((link.peer, target.peer)))
        share = self._pairs.setdefault(pair, Budget(125_000, 250_000))
        if len(datagram) > LONGEST_RELAYED or not share.take(len(datagram)):
            return
        if not self._budget.take(len(datagram)):
            return
        if self.relayed == 0:
            emit("relaying", members=[short(one) for one in pair])
        self.relayed += 1
        head = bytes([RELAYED, FORWARDED]) + link.peer[:8]
        self._node.links.send(target, head + datagram)

    # Looking for members of the call without a link

    def tick(self):
        now, in_call = time.monotonic(), self._node.call.others()
        unreachable = [one for one in in_call if not self._node.links.is_up(one)]
        self._without_link = {one: self._without_link.get(one, now) for one in unreachable}
        for member, since in self._without_link.items():
            is_due = now - self._tried_at.get(member, float("-inf")) > _RETRY_INTERVAL
            if now - since > _UNREACHABLE_AFTER and is_due:
                self._seek(member)
        for link in self._node.links.all_up():
            if link.is_relayed:
                self._seek_direct_path(link, now)

    def _seek(self, member):
        """A handshake through a neighbour that hears the member; the smaller id begins it."""
        if self._node.id > member or self._node.handshakes.is_under_way(member):
            return
        self._tried_at[member] = time.monotonic()
        neighbour = next((one for one in self._node.links.all_up()
                          if one.peer != member and self._may_relay(one, member)), None)
        presence = self._node.roster.members.get(member)
        if neighbour is not None and presence is not None:
            emit("seeking", member=short(member), via=short(neighbour.peer))
            self._node.handshakes.begin(member, presence.boot, Via(neighbour.peer, member),
                                        self._node.channel.current)

    def _may_relay(self, link, member):
        presence = self._node.roster.members.get(link.peer)
        return (presence is not None and not link.is_relayed
                and not presence.flags & Flag.RELAYS_NOTHING
                and self._node.roster.hears(link.peer, member))

    def _seek_direct_path(self, link, now):
        if now < self._candidates_at.get(link.peer, 0):
            return
        self._candidates_at[link.peer] = now + _CANDIDATE_INTERVAL
        own = b"".join(map(encode_address, self._node.own_addresses()))
        self._node.links.control(link, control.Type.CANDIDATES, own)
        if link.path.direct is not None:
            self._node.paths.challenge_direct(link, link.path.direct)

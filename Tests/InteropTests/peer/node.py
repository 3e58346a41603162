"""A node: its parts, and the dispatch of input to them."""

import os
import random
import time
from dataclasses import dataclass, field

from . import announcement, control, feedback, handshake, rendezvous
from .address import Via, is_unicast
from .calls import CallMember
from .channel import Channel
from .control import Type
from .crypto import Identity
from .discovery import CandidateProber, Discovery
from .document import Document
from .entries import Message, NeighbourReport
from .events import emit, short
from .gossip import Gossip
from .handshakes import Handshakes
from .invite import Invite
from .links import Links
from .local_network import LocalNetwork
from .loop import Loop
from .media import long_audio, redundancy
from .media.local import LocalMedia
from .membership import Membership
from .paths import Paths
from .presence import Flag, Presence
from .reader import Malformed
from .relay import Relay
from .rendezvous import Rendezvous
from .rights import CreatedRights, OpenRights
from .roster import Roster
from .session import DATA, LONGEST_DATAGRAM
from .sent_layer import SentLayer
from .subscription import Subscription
from .texts import Texts
from .topology import Topology
from .transport import Transport
from .watch import PROTOCOL_PERIOD, NeighbourWatch

_TICK = 0.05
_LEAVE_LIMIT = 0.5   # seconds to wait for an acknowledgement of the last presence
_MOST_PONGS = 4
_LONG = 200          # bytes of a datagram: media, for the most part


@dataclass
class Settings:
    """The configuration of a node; the last three fields are for tests."""

    name: str
    channel: Channel
    identity: Identity
    listen: list
    invite: Invite = None
    peers: list = field(default_factory=list)
    rendezvous: list = field(default_factory=list)
    uses_local_network: bool = False
    joins_call: bool = False
    videos: dict = field(default_factory=dict)   # stream -> paths, the smallest layer first
    audio: str = None
    record: str = None
    relays: bool = True
    demands_cookies: bool = False
    capabilities: int = feedback.CAPABILITY | redundancy.CAPABILITY | long_audio.CAPABILITY
    lost_part: float = 0.0         # of the long datagrams, both ways
    lost_audio: float = 0.0        # of the audio packets received


class Node:
    def __init__(self, settings):
        self.settings, self.identity, self.channel = settings, settings.identity, settings.channel
        self.id, self.boot = self.identity.id, os.urandom(8)
        self._is_leaving = False
        genesis = self.channel.genesis
        self.rights = CreatedRights(genesis) if genesis else OpenRights()
        self.document = Document(self.rights, self.id)
        self.loop = Loop()
        self.transport = Transport(self.loop, settings.listen, self.receive)
        self.discovery, self.prober = Discovery(self), CandidateProber(self)
        self.handshakes, self.paths, self.links = Handshakes(self), Paths(self), Links(self)
        self.gossip, self.watch = Gossip(self), NeighbourWatch(self)
        self.roster, self.topology, self.relay = Roster(self), Topology(self), Relay(self)
        self.call, self.texts = CallMember(self, settings.joins_call), Texts(self)
        self.membership = Membership(self, settings.invite)
        self.media = LocalMedia(self, settings.videos, settings.audio, settings.record)
        self._rendezvous = [Rendezvous(self, address) for address in settings.rendezvous]

    # Life

    def start(self):
        emit("ready", id=short(self.id), key=self.id, listen=self.transport.addresses,
             channels=[self.channel.name])
        for address in self.settings.peers:
            self.discovery.announce_to(address)
        if self.settings.uses_local_network:
            LocalNetwork(self).start()
        for one in self._rendezvous:
            one.start()
        self.membership.start()
        self.publish_presence()
        self.roster.report(again=True)
        self.gossip.start()
        self.media.start()
        self.loop.every(PROTOCOL_PERIOD, self.watch.tick)
        self.loop.every(_TICK, self._tick)
        self.loop.after_each_step(self.links.flush)

    def _tick(self):
        for part in (self.handshakes, self.links, self.gossip, self.relay, self.call):
            part.tick()

    def leave(self):
        """Announces the leave, waits until it is acknowledged, and closes all links."""
        self.call.leave()
        self._is_leaving = True
        for one in self._rendezvous:
            one.leave()
        last = self.publish_presence()
        limit = time.monotonic() + _LEAVE_LIMIT
        while time.monotonic() < limit and not self.gossip.is_acknowledged(last):
            self.loop.step(longest=0.05)
        self.media.close()
        self.links.leave()
        self.loop.is_stopped = True

    # This node's own state

    def own_addresses(self):
        """The addresses at which this node may be reached, best first."""
        seen = [one.seen_at for one in self._rendezvous if one.seen_at]
        own = [one for one in (*self.transport.addresses, *seen) if is_unicast(one)]
        return list(dict.fromkeys(own))[:8]

    def publish_presence(self):
        flags = self.media.flags
        if not self.settings.relays:
            flags |= Flag.RELAYS_NOTHING
        if self._is_leaving:
            flags |= Flag.LEAVES
        if self.call.hands_over:
            flags |= Flag.HANDS_OVER
        return self.gossip.publish(Presence(
            self.boot, flags, self.settings.name, self.call.current, self.call.joined,
            self.media.offered))

    def subscribe(self, subscriptions):
        """Asks all senders for more or less of their video streams."""
        for one in subscriptions:
            self.media.request(one)
        for link in self.links.all_up():
            self.watch.ping(link)

    # Datagrams

    def _is_lost(self, datagram):
        return len(datagram) > _LONG and random.random() < self.settings.lost_part

    def send(self, route, datagram):
        if self._is_lost(datagram):
            return
        if isinstance(route, Via):
            self.relay.send(route, datagram)
        elif is_unicast(route):
            self.transport.send(route, datagram)

    def receive(self, datagram, route):
        """Dispatches a datagram, received directly or through a neighbour (section 4)."""
        is_relayed = isinstance(route, Via)
        if not datagram or len(datagram) > LONGEST_DATAGRAM or self._is_lost(datagram):
            return
        if not is_relayed and not is_unicast(route):
            return
        kind = datagram[0]
        if kind == DATA:
            self.links.receive(datagram, route)
        elif kind == announcement.ANNOUNCEMENT:
            self.discovery.on_announcement(datagram, route)
        elif kind == announcement.CHALLENGE:
            self.discovery.on_challenge(datagram, route)
        elif kind == handshake.INITIATION:
            self.handshakes.on_initiation(datagram, route)
        elif kind == handshake.RESPONSE:
            self.handshakes.on_response(datagram, route)
        elif kind == handshake.COOKIE_REPLY:
            self.handshakes.on_cookie_reply(datagram)
        elif kind in (rendezvous.COOKIE, rendezvous.RECORDS):
            for one in self._rendezvous:
                if one.address == route:
                    one.receive(datagram)

    # Control messages

    def on_control(self, link, payload):
        try:
            messages = control.decode(payload)
        except Malformed as error:
            emit("error", message=f"a control payload is ignored: {error}", command=None)
            return
        pongs = 0
        for kind, value in messages:
            if kind == Type.PING:
                pongs += 1
                if pongs <= _MOST_PONGS:
                    self.links.control(link, Type.PONG, value)
            else:
                self._on_message(link, kind, value)

    def _on_message(self, link, kind, value):
        actions = {
            Type.ENTRY: lambda: self.gossip.on_entry(link, value),
            Type.RECEIVED: lambda: self.gossip.on_received(link, value),
            Type.SUBSCRIBE: lambda: self._on_subscription(link, value),
            Type.PONG: lambda: self.watch.on_pong(link, value),
            Type.DIGEST: lambda: self.gossip.on_digest(link, value),
            Type.RANGES: lambda: self.gossip.on_ranges(link, value),
            Type.WANT: lambda: self.gossip.on_want(link, value),
            Type.PROBE: lambda: self.watch.on_probe(link, value),
            Type.PROBE_RESULT: lambda: self.watch.on_probe_result(value),
            Type.EPOCH_KEY: lambda: self.membership.on_epoch_key(link, value),
            Type.REFUSED: lambda: self.membership.on_refused(link, value),
            Type.SEEN: lambda: emit("seen", member=short(link.peer),
                                    address=control.decode_addresses(value)[0]),
            Type.CANDIDATES: lambda: self._on_candidates(link, value),
            Type.SENT_LAYER: lambda: self._on_sent_layer(link, value),
        }
        actions[kind]()

    def _on_subscription(self, link, value):
        if link.media:
            link.media.on_subscription(Subscription.decode(value))

    def _on_sent_layer(self, link, value):
        if link.media:
            link.media.on_sent_layer(SentLayer.decode(value))

    def _on_candidates(self, link, value):
        for address in control.decode_addresses(value):
            if link.candidates.take():
                self.prober.probe(address)

    # What follows from changes

    def on_link_up(self, link):
        self.paths.report_seen(link)
        self.gossip.on_link_up(link)
        self.watch.ping(link)
        self.roster.report_soon()
        self.refresh()

    def on_link_down(self, link):
        link.gossip.in_flight.clear()
        self.roster.report_soon()
        self.refresh()

    def on_new_entry(self, entry):
        if entry.kind == Message.KIND:
            self.texts.show(entry)
        self.refresh()
        if entry.kind == NeighbourReport.KIND:
            self.watch.on_report(entry)

    def on_own_entry_from_before(self, entry):
        """Another run of this identity was here: publishes the current state under a higher
        sequence.
        """
        if entry.kind in (Presence.KIND, NeighbourReport.KIND):
            self.publish_presence()
            self.roster.report(again=True)

    def refresh(self):
        """Derives roster, call and media anew from the document and the links."""
        if self._is_leaving:
            return
        self.roster.refresh()
        self.call.refresh()
        self.membership.refresh()
        in_call = set(self.call.others())
        for link in self.links.all():
            wants_media = link.is_up and link.peer in in_call
            if wants_media and link.media is None:
                self.media.begin(link)
                self.watch.ping(link)
            elif link.media is not None and not wants_media:
                self.media.end(link)

"""Roaming: a participant whose address or network changes stays in the call."""

from check import check
from meeting import AWAY, rendezvous, through
from netns import inside, ip
from screens import Screens

# The longest gap between frames, in seconds, from when there is an address again.
LONGEST = 1
# Seconds without any network, in the harder case.
HOLE = 0.2
# Seconds after a change during which late effects would show.
AFTERWARDS = 4


@check(needs="namespaces", measures=True)
def a_node_whose_address_changes_stays_in_the_call(t):
    lan = t.lan(2)
    for host in lan.hosts:
        _use_ipv4_only(host)
        # Otherwise removing a network's primary address also removes its secondary ones.
        _set(host, "ipv4/conf/eth0/promote_secondaries", "1")
    nodes = [t.node(name, host=host, record=True)
             for name, host in zip(("anna", "berta"), lan.hosts)]
    moved = lan.hosts[1].namespace

    def change(verb, number):
        return f"addr {verb} 10.77.0.{number}/24 broadcast 10.77.0.255 dev eth0"

    roam = _Roaming(t, nodes, nodes[1])
    roam.judge("the new one first", roam.move(
        moved, [change("add", 22), change("del", 2)]))
    roam.judge("the new one later", roam.move(
        moved, [change("add", 23)], [change("del", 22)]))


@check(needs="namespaces", measures=True)
def a_node_that_changes_its_network_stays_in_the_call(t):
    internet = t.internet(delay=AWAY)
    # One peer with a public address, and one that requires hole punching.
    _move_twice(t, internet, [internet.host("open"), internet.home("preserving").hosts[0]])


@check(needs="namespaces", measures=True)
def a_node_that_changes_its_network_needs_no_third_one(t):
    internet = t.internet(delay=AWAY)
    _move_twice(t, internet, [internet.home("preserving").hosts[0]])


def _move_twice(t, internet, others):
    """Moves a member from one router's network to a second one's, then to a third one's."""
    public = internet.host("public")
    rendezvous(t, public)
    moving = internet.home("preserving").hosts[0]
    nodes = []
    for name, host in zip(("anna", "berta", "cilla"), [moving, *others]):
        nodes.append(t.node(name, *through(public), host=host, record=True))
        nodes[-1].ready()
    roam = _Roaming(t, nodes, nodes[0])
    tether, cafe = [internet.home("preserving", hosts=0, network=network)
                    for network in ("192.168.43", "10.20.30")]
    _, up = internet.lay_cable(moving, tether, "wwan0")
    roam.judge("Wi-Fi to tether", roam.move(moving.namespace, [*up, "link del eth0"]))
    _, up = internet.lay_cable(moving, cafe, "wlan1")
    roam.judge("a hole, then Wi-Fi", roam.move(moving.namespace, up, ["link del wwan0"]))


class _Roaming:
    """A call in which one participant moves, and its effect on the others."""

    def __init__(self, t, nodes, mover):
        self.t = t
        self.nodes = nodes
        self.mover = mover
        t.meet(*nodes)
        t.video_continues(*nodes)
        self.screens = Screens(*nodes)
        t.later(self.screens.stop)
        t.pause(1)
        self.rosters = [node.roster() for node in nodes]

    def move(self, namespace, lines, before=()):
        """Applies all lines in one batch, those in `before` shortly earlier; returns when the
        move began and when the last line was done."""
        self._wait_until_all_are_linked_directly()
        began = self.t.now()
        if before:
            ip(namespace=namespace, lines=before)
            self.t.pause(HOLE)
        ip(namespace=namespace, lines=lines)
        return began, self.t.now()

    def _wait_until_all_are_linked_directly(self):
        end = self.t.now() + 60
        for other in self.nodes:
            while other is not self.mover and self.mover.peer_statistics(other)["via"]:
                self.t.require(self.t.now() < end, f"{other.name} is still reached through others")

    def judge(self, what, move):
        began, moved = move
        t = self.t
        t.pause(AFTERWARDS)
        t.video_continues(*self.nodes, within=40)
        until = t.now() - 1
        # If the change leaves no time without an address, the whole gap counts.
        since = moved if moved - began > HOLE else began
        for other in self.nodes:
            if other is not self.mover:
                gaps = [self.screens.gap(*way, since, until)
                        for way in ((self.mover, other), (other, self.mover))]
                t.figure(f"{what}: {self.mover.name} saw {other.name} stand for", gaps[0], "s",
                         at_most=LONGEST)
                t.figure("was seen to stand for", gaps[1], "s", at_most=LONGEST)
        for name in ("member.joined", "member.left", "link.down", "call.left", "call.ended"):
            reported = [node.name for node in self.nodes for _ in node.all(name, began)]
            t.expect(not reported, f"{what}: {name} at {reported}")
        t.expect([node.roster() for node in self.nodes] == self.rosters,
                 f"{what}: the rosters changed")


def _use_ipv4_only(host):
    _set(host, "ipv6/conf/all/disable_ipv6", "1")


def _set(host, name, value):
    with inside(host.namespace):
        with open(f"/proc/sys/net/{name}", "w", encoding="ascii") as file:
            file.write(value)

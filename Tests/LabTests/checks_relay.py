"""Relaying: members without a direct path use a third member until they have one."""

import signal
import time

from check import check
from meeting import AWAY, both_directions, rendezvous, through
from screens import Screens
from wire import DATA, judge_wire

# Seconds after a change during which late effects would show.
AFTERWARDS = 4
# The greatest age of the last frame before a change, in seconds.
BEFORE = 0.1
# The end of kind and receiver index in a transport packet.
_INDEX_END = 5


@check(needs="namespaces", measures=True)
def a_relayed_pair_takes_a_direct_path_and_leaves_it_without_a_freeze(t):
    internet, nodes, (third,), homes = _severed_pair(t, ["carl"])
    screens = _screens(t, *nodes)
    t.video_continues(*nodes)
    for _ in range(3 if t.is_long else 1):
        internet.mend(*homes)
        mended = t.now()
        t.figure("a way of its own", _wait_for(t, nodes, None, 60) - mended,
                 "s after it opened", at_most=45)
        t.pause(AFTERWARDS)
        _report_gaps(t, screens, nodes, "while it was taken", mended, 0.5)
        # Frames from here on belong to the next phase.
        internet.cut(*homes)
        cut = t.now()
        t.figure("by the relay", _wait_for(t, nodes, third.id, 30) - cut, "s after it closed")
        t.pause(AFTERWARDS)
        _report_gaps(t, screens, nodes, "while it was left", cut, 0.5)
    _expect_together(t, nodes)


@check(needs="namespaces", measures=True)
def a_relay_that_dies_is_followed_by_another(t):
    _, nodes, thirds, _ = _severed_pair(t, ["carl", "dora"], with_video=True)
    first, second = nodes
    relay = next(one for one in thirds if one.id == first.peer_statistics(second)["via"])
    other = next(one for one in thirds if one is not relay)
    everyone = [first, second, other]
    t.video_continues(*everyone)
    screens = _screens(t, *everyone)
    t.pause(1)
    killed = relay.signal(signal.SIGKILL)
    t.figure("by the other one", _wait_for(t, nodes, other.id, 30) - killed,
             "s after the first one died")
    t.pause(AFTERWARDS)
    _report_gaps(t, screens, nodes, "the pair", killed, 5)
    # A member with direct links to both notices nothing.
    until = t.now() - 1
    gaps = [screens.gap(*way, killed - BEFORE, until)
            for one in nodes for way in both_directions((one, other))]
    t.figure("the third one's pictures stood for", max(gaps), "s", at_most=0.5)
    _expect_together(t, everyone, since=killed)


@check(needs="namespaces", measures=True)
def the_wire_beside_a_relay_shows_no_names_channels_keys_or_media(t):
    internet, nodes, (third,), homes = _severed_pair(t, ["carl-between-them"])
    capture = t.capture(third.host)
    t.pause(4)
    passed = [one.peer_statistics(other)["via"] for one, other in both_directions(nodes)]
    t.expect(passed == [third.id] * 2, f"by way of {passed}")
    judge_wire(t, capture, [*nodes, third], [(320, 180), (160, 90)],
               (third.host, homes[0].outside))
    # Datagrams from one home leave for the other, correlated by times and sizes only.
    came, went = [
        [one for one in capture.datagrams if one.payload[:1] == bytes([DATA])
         and place(one) in {home.outside for home in homes}]
        for place in (lambda one: one.source, lambda one: one.target)]
    payloads = {one.payload[_INDEX_END:] for one in came}
    same = sum(one.payload[_INDEX_END:] in payloads for one in went)
    t.figure("passed on", len(went), at_least=100)
    t.figure("that can be known again", same, at_most=0)


def _severed_pair(t, names, with_video=False):
    """Two participants without a direct path, and others that reach both; all are linked
    when this returns."""
    internet = t.internet(delay=AWAY)
    public = internet.host("public")
    rendezvous(t, public)
    media = {} if with_video else {"video": "none", "audio": "none"}
    thirds = [t.node(name, *through(public), host=internet.host(name), record=with_video,
                     **media) for name in names]
    for third in thirds:
        third.ready()
    homes = [internet.home("preserving") for _ in range(2)]
    internet.cut(*homes)
    nodes = [t.node(name, *through(public), host=home.hosts[0], record=True)
             for name, home in zip(("anna-of-the-hill", "berta-by-the-sea"), homes)]
    found = [one.wait("link.up", 10, member=other.id) for one, other in both_directions(nodes)]
    relays = {link["via"] for link in found}
    t.require(len(relays) == 1 and relays <= {third.id for third in thirds}, f"by way of {found}")
    t.meet(*nodes)
    return internet, nodes, thirds, homes


def _screens(t, *nodes):
    screens = Screens(*nodes)
    t.later(screens.stop)
    return screens


def _wait_for(t, nodes, via, within):
    """Waits until both report this path; returns when the second one did."""
    end = time.monotonic() + within
    while True:
        reported = [one.peer_statistics(other) for one, other in both_directions(nodes)]
        if all(one["via"] == via for one in reported):
            return max(one["at"] for one in reported)
        t.require(time.monotonic() < end, f"still by way of {[one['via'] for one in reported]}")


def _report_gaps(t, screens, nodes, what, since, limit):
    until = time.monotonic() - 1
    for one, other in both_directions(nodes):
        t.figure(f"{what}: {one.name}'s picture of {other.name} stood for",
                 screens.gap(one, other, since - BEFORE, until), "s", at_most=limit)


def _expect_together(t, nodes, since=0.0):
    ids = {node.id for node in nodes}
    for name in ("member.left", "call.left", "call.ended"):
        reported = [node.name for node in nodes for event in node.all(name, since)
                if event.get("member") in ids]
        t.expect(not reported, f"{name} at {reported}")

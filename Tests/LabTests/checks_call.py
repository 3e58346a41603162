"""Nodes discover each other and hold calls: rosters, media and latency."""

import collections
import os
import signal
import stat
import time

from check import check
from netns import ip

# The longest time from the later node's `ready` to its first frame, in seconds.
FIRST_FRAME = 0.5


@check(measures=True)
def two_nodes_meet_on_loopback_and_carry_video_and_audio(t):
    first = t.node("anna", record=True)
    first.ready()
    second = t.node("berta", record=True)
    ready = second.ready()["at"]
    seen = t.meet(first, second)
    t.figure("first frame", seen - ready, "s", at_most=FIRST_FRAME)
    t.pause(3 if t.is_long else 2)
    for one, other in ((first, second), (second, first)):
        reported = one.peer_statistics(other)
        t.figure(f"{one.name} has", reported["in"]["frames"], "frames", at_least=15)
        t.figure("lost", reported["in"]["framesLost"], "frames", at_most=0)
        t.figure("of sound", reported["in"]["audioLostPercent"], "%", at_most=1)
        t.require(reported["latencyMs"], f"{one.name} measures no latency")
        t.figure("latency p50", reported["latencyMs"]["p50"], "ms")
        t.figure("p95", reported["latencyMs"]["p95"], "ms", at_most=40)
    t.expect(not second.all("link.down") and not second.all("member.left"), "someone was lost")


@check(gate=True)
def events_have_the_fields_of_their_table(t):
    first, second = t.pair()
    second.send("mute", media="audio")
    first.wait("member.updated", member=second.id, audioMuted=True)
    first.wait("stats")
    second.send("leave-call")
    first.wait("call.left", member=second.id)
    second.send("quit")
    first.wait("member.left", member=second.id)
    member = {"member", "key", "name", "role", "inCall", "audioMuted", "videoMuted", "speaking"}
    call = {"call", "initiator", "startedAt", "participants"}
    link = {"member", "address", "via", "reason"}
    table = {
        "ready": {"schema", "id", "key", "listen", "view", "channels"},
        "member.joined": member, "member.updated": member, "member.left": member | {"reason"},
        "call.started": call, "call.joined": call | {"member"},
        "call.left": call | {"member", "reason"}, "call.state": {"state"},
        "call.speaker": {"member"},
        "link.up": link, "link.down": link,
        "media.first-frame": {"member", "after", "width", "height"},
        "stats": {"node", "peers"},
    }
    seen = set()
    for node in (first, second):
        for event in node.events:
            name = event["event"]
            seen.add(name)
            t.expect(table.get(name, set()) <= event.keys(),
                     f"{name} lacks {sorted(table.get(name, set()) - event.keys())}")
            wide = name in ("ready", "stats", "warning", "error")
            t.expect(wide or event.get("channel") == t.channel, f"{name} names no channel")
        ready = node.ready()
        t.expect(ready["schema"] == 1 and ready["view"] is None, "ready: schema or view")
        t.expect(ready["key"].startswith(ready["id"]) and len(ready["key"]) == 64, "ready: key")
        t.expect(ready["channels"] == [t.channel], "ready: channels")
        t.duration("t begins", ready["at"] - node.started_at - ready["t"], at_most=0.5)
        times = [event["t"] for event in node.events]
        t.expect(times == sorted(times), f"{node.name}: t goes backwards")
    t.expect(set(table) - {"call.left", "call.speaker", "link.down"} <= seen,
             f"never came: {sorted(set(table) - seen)}")
    t.figure("kinds seen", len(seen))


@check(needs="namespaces", measures=True)
def five_nodes_on_one_bridge_see_each_other_without_addresses(t):
    lan = t.lan(5)
    # Small frames at half rate: 20 streams are encoded and decoded on one machine.
    nodes = [t.node(f"node{host.number}", host=host) for host in lan.hosts[:4]]
    for node in nodes:
        node.ready()
    t.meet(*nodes)
    last = t.node("node5", host=lan.hosts[4])
    nodes.append(last)
    seen = t.meet(*nodes)
    t.figure("all pictures", seen - last.started_at, "s after the last start", at_most=2)
    t.figure("after its ready", seen - last.ready()["at"], "s")
    t.pause(1)
    frames = []
    for node in nodes:
        t.expect(len(node.roster()) == 4, f"{node.name} has {len(node.roster())} members")
        reported = node.wait("stats", since=seen + 1)
        frames += [peer["in"]["framesLost"] for peer in reported["peers"] if peer["in"]]
    t.figure("streams", len(frames), at_least=20)
    t.figure("frames lost", sum(frames), at_most=0)
    calls = {node.all("call.started")[-1]["call"] for node in nodes}
    t.figure("calls", len(calls), at_most=1)


@check(needs="namespaces", measures=True)
def two_nodes_with_addresses_given_need_no_multicast(t):
    lan = t.lan(2)
    for host in lan.hosts:
        ip("link", "set", "eth0", "multicast", "off", namespace=host.namespace)
    capture = t.capture(lan.hosts[1])
    first = t.node("anna", "--no-lan", "--listen", "10.77.0.1:4711", host=lan.hosts[0])
    first.ready()
    second = t.node("berta", "--no-lan", "--no-dscp", "--peer", "10.77.0.1:4711",
                    host=lan.hosts[1])
    ready = second.ready()["at"]
    t.figure("first frame", t.meet(first, second) - ready, "s", at_most=FIRST_FRAME)
    t.pause(2)
    capture.stop()
    _classes_are_marked(t, capture.datagrams)
    loud = [one for one in capture.datagrams if not one.is_to_one]
    t.expect(not loud, f"--no-lan is not quiet: {loud[:2]}")
    t.figure("datagrams to all", len(loud))


def _classes_are_marked(t, datagrams):
    """RFC 8837: audio is EF, video AF41, and the rest default; with --no-dscp everything is."""
    sizes = collections.defaultdict(list)
    for one in datagrams:
        if one.source == "10.77.0.1":
            sizes[one.dscp].append(len(one.payload))
    t.expect(set(sizes) == {0, 34, 46}, f"marks of {sorted(sizes)}")
    t.expect(max(sizes[34]) > 1000 and max(sizes[46]) < 1000,
             f"video of up to {max(sizes[34])} bytes, audio of up to {max(sizes[46])}")
    t.figure("audio", len(sizes[46]), "datagrams", at_least=50)
    unmarked = {one.dscp for one in datagrams if one.source == "10.77.0.2"}
    t.expect(unmarked == {0}, f"--no-dscp marks with {unmarked}")


@check(needs="namespaces", measures=True)
def a_peer_given_by_address_may_start_later(t):
    lan = t.lan(2)
    late = t.node("berta", "--no-lan", "--peer", "10.77.0.1:4711", host=lan.hosts[1])
    late.ready()
    t.pause(3)
    first = t.node("anna", "--no-lan", "--listen", "10.77.0.1:4711", host=lan.hosts[0])
    ready = first.ready()["at"]
    t.figure("first frame", t.meet(first, late) - ready, "s", at_most=6.5)


@check(measures=True)
def a_node_in_two_channels_keeps_them_apart(t):
    one, two = t.channel + "-one", t.channel + "-two"
    left = t.node("left", channels=[one])
    right = t.node("right", channels=[two])
    middle = t.node("middle", channels=[one, two])
    t.meet(left, middle)
    t.meet(right, middle)
    t.expect(left.wait("media.first-frame")["channel"] == one, "left is in another channel")
    t.expect(right.wait("media.first-frame")["channel"] == two, "right is in another channel")
    t.expect(left.roster() == {(one, middle.id)}, f"left's roster: {left.roster()}")
    t.expect(right.roster() == {(two, middle.id)}, f"right's roster: {right.roster()}")
    t.expect(middle.roster() == {(one, left.id), (two, right.id)}, "middle's roster")
    middle.send("mute", media="audio")
    left.wait("member.updated", member=middle.id, audioMuted=True)
    # The initiator's leave ends a call; the call of the other channel continues.
    at = middle.send("leave-call", channel=one)
    t.require(_is_over(left, middle, at), "left does not learn that middle left the call")
    before = right.peer_statistics(middle)["in"]["frames"]
    t.pause(1)
    after = right.peer_statistics(middle)["in"]["frames"]
    t.figure("frames in the other channel meanwhile", after - before, at_least=8)
    t.expect(middle.is_running and left.is_running and right.is_running, "a node has ended")


def _is_over(node, other, since):
    end = since + 5
    while time.monotonic() < end:
        if node.all("call.left", since, member=other.id) or node.all("call.ended", since):
            return True
        time.sleep(0.02)
    return False


@check(measures=True)
def a_second_node_on_the_default_directory_is_someone_else(t):
    home = {"XDG_DATA_HOME": os.path.join(t.folder, "home")}
    first = t.node("anna", data=False, environment=home)
    first.ready()
    t.expect(not _about_data(first), "the first node warns of its data directory")
    second = t.node("berta", data=False, environment=home)
    t.meet(first, second)
    second.wait("warning", limit=2)
    t.expect(len(_about_data(second)) == 1, "no warning that the data directory is in use")
    t.expect(first.id != second.id, "both are the same")
    kept = first.id
    for node in (first, second):
        node.signal(signal.SIGINT)
        node.ended(3)
    third = t.node("anna", data=False, environment=home)
    t.expect(third.id == kept, "the identity was not kept")
    secret = [os.path.join(folder, name) for folder, _, names in os.walk(home["XDG_DATA_HOME"])
              for name in names]
    open_ones = [path for path in secret if stat.S_IMODE(os.stat(path).st_mode) & 0o077]
    t.expect(secret and not open_ones, f"readable by others: {open_ones}")
    t.figure("files kept", len(secret))


def _about_data(node):
    return [event for event in node.all("warning") if "in use" in event["message"]]


@check(measures=True)
def a_named_data_directory_in_use_is_an_error(t):
    directory = os.path.join(t.folder, "mine")
    first = t.node("anna", data=directory)
    first.ready()
    second = t.node("berta", data=directory)
    t.figure("exit code", second.ended(5), at_most=1, at_least=1)
    lines = second.errors.splitlines()
    t.expect(len(lines) == 1 and lines[0].startswith("muster: "), f"it says {lines}")
    t.expect(not second.raw, "it writes events")
    t.expect(first.is_running, "the first node has ended")


@check(measures=True)
def mute_and_unmute_are_seen_and_stop_the_media(t):
    first, second = t.pair()
    for media, field in (("audio", "audioMuted"), ("video", "videoMuted")):
        for verb, state in (("mute", True), ("unmute", False)):
            at = second.send(verb, media=media)
            seen = first.wait("member.updated", since=at, member=second.id, **{field: state})
            t.figure(f"{verb} {media}", seen["at"] - at, "s", at_most=1)
            if media == "video" and state:
                before = first.peer_statistics(second)["in"]["frames"]
                t.pause(1)
                after = first.peer_statistics(second)["in"]["frames"]
                t.figure("frames while muted", after - before, at_most=1)
    before = first.peer_statistics(second)["in"]["frames"]
    t.pause(1)
    after = first.peer_statistics(second)["in"]["frames"]
    t.figure("frames a second later", after - before, at_least=8)
    t.expect(not first.all("member.left") and not first.all("link.down"), "someone was lost")


@check(measures=True)
def a_watcher_sees_the_call_and_may_join_and_leave_it(t):
    first, second = t.pair()
    watcher = t.node("cilla", "--watch", call=False)
    known = set(watcher.wait("call.started")["participants"])
    t.pause(1)
    # A participant whose presence arrives later is reported as joining.
    known |= {event["member"] for event in watcher.all("call.joined")}
    t.expect(known == {first.id, second.id}, f"the watcher sees {known} in the call")
    t.expect(not watcher.all("media.first-frame"), "a watcher gets pictures")
    at = watcher.send("join-call")
    t.meet(first, second, watcher, since=0)
    first.wait("call.joined", since=at, member=watcher.id)
    t.figure("first pictures", watcher.first_frame(first)["at"] - at, "s", at_most=1)
    at = watcher.send("leave-call")
    seen = first.wait("call.left", since=at, member=watcher.id)
    t.figure("leaving seen", seen["at"] - at, "s", at_most=1)
    t.expect(seen["reason"] == "left", f"left because {seen['reason']}")
    t.expect(not first.all("call.ended"), "the call has ended for others")
    before = first.peer_statistics(second)["in"]["frames"]
    t.figure("frames of the rest", first.peer_statistics(second)["in"]["frames"] - before,
             at_least=8)

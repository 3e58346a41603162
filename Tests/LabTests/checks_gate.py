"""The checks that gate every change: the main functions, judged by events and recordings.

None of them measures a time. A check that something does not happen waits for an event that has to
follow it.
"""

import os
import signal
import subprocess

from check import check
from media import Ivf, complaints, luma_of, read_pattern, rms, samples
from meeting import AWAY, both_directions, member, rendezvous, through
from node import clean_environment

# Seconds. On an idle machine the slowest of these waits, for a relayed pair's direct path, takes 2.
LIMIT = 60


@check(needs="ffmpeg", gate=True)
def two_nodes_meet_and_record_each_other(t):
    pair = t.pair(record=True)
    t.video_grows(*pair, by=60)
    for node in pair:
        t.expect(not node.all("link.down") and not node.all("member.left"), "someone was lost")
    _leave(t, *pair)
    for one, other in both_directions(pair):
        _judge_recording(t, one, other)


@check(needs="namespaces", gate=True)
def five_nodes_on_a_bridge_hold_one_call(t):
    lan = t.lan(5)
    nodes = [t.node(f"node{host.number}", host=host) for host in lan.hosts]
    t.meet(*nodes)
    t.video_grows(*nodes, by=10)
    calls = {node.all("call.started")[-1]["call"] for node in nodes}
    t.figure("calls", len(calls), at_most=1)
    for node in nodes:
        t.figure(f"{node.name}'s roster", len(node.roster()), at_least=4, at_most=4)


@check(needs=("namespaces", "ffmpeg"), gate=True)
def loss_breaks_no_frame(t):
    lan = t.lan(2, faulty=True)
    for host in lan.hosts:
        host.impair(up={"delay": 20, "loss": 5})
    pair = [t.node(name, host=host, record=True)
            for name, host in zip(("anna", "berta"), lan.hosts)]
    t.meet(*pair)
    t.video_grows(*pair, by=90)
    lost = [one.peer_statistics(other, LIMIT)["lossPercent"] for one, other in both_directions(pair)]
    t.figure("loss", max(lost), "%", at_least=0.1)
    _leave(t, *pair)
    for one, other in both_directions(pair):
        _judge_recording(t, one, other)


@check(needs="namespaces", gate=True)
def members_behind_nats_meet_through_a_rendezvous(t):
    internet = t.internet(delay=AWAY)
    public = internet.host("public")
    rendezvous(t, public)
    pair = [member(t, name, internet.home("preserving").hosts[0], "nat", through(public))
            for name in ("anna", "berta")]
    t.meet(*pair)
    for one, other in both_directions(pair):
        one.wait("link.up", LIMIT, member=other.id, via=None)
    t.video_grows(*pair)


@check(needs="namespaces", gate=True)
def a_severed_pair_is_relayed_until_it_has_a_direct_path(t):
    internet = t.internet(delay=AWAY)
    public = internet.host("public")
    rendezvous(t, public)
    relay = t.node("carl", *through(public), host=internet.host("carl"), video="none", audio="none")
    # Otherwise both of the pair, who cannot reach each other, might start a call.
    relay.wait("call.started", LIMIT)
    homes = [internet.home("preserving") for _ in range(2)]
    internet.cut(*homes)
    pair = [t.node(name, *through(public), host=home.hosts[0])
            for name, home in zip(("anna", "berta"), homes)]

    def is_via(path):
        return all(one.peer_statistics(other, LIMIT)["via"] == path
                   for one, other in both_directions(pair))

    t.meet(*pair)
    t.expect(is_via(relay.id), "another path than the relay's")
    for mends, path in ((True, None), (False, relay.id)):
        (internet.mend if mends else internet.cut)(*homes)
        t.until(lambda: is_via(path), f"a path by way of {path}", limit=10 * LIMIT)
        t.video_grows(*pair)
    for node in (*pair, relay):
        t.expect(not node.all("member.left") and not node.all("call.ended"), "someone was lost")


@check(needs="ffmpeg", gate=True)
def a_crash_hands_the_call_over_and_leaves_a_playable_recording(t):
    first = t.node("anna", record=True)
    first.wait("call.started", LIMIT)
    second, third = t.node("berta"), t.node("cilla")
    t.meet(first, second, third)
    t.video_grows(first, second, third)
    crashed = first.id
    first.signal(signal.SIGKILL)
    first.ended(LIMIT)
    for node in (second, third):
        left = node.wait("member.left", LIMIT, member=crashed)
        t.expect(left["reason"] == "crashed", f"left because {left['reason']}")
    handed = [node.wait("call.handed-over", 3 * LIMIT) for node in (second, third)]
    t.figure("initiators", len({event["initiator"] for event in handed}), at_most=1)
    t.video_grows(second, third)
    _judge_recording(t, first, second)
    again = t.node("anna")
    t.expect(again.id == crashed, "the identity was not kept")
    for node in (second, third):
        t.meet(again, node, since=again.started_at)


@check(gate=True)
def the_initiators_leave_ends_the_call_and_a_participants_does_not(t):
    first = t.node("anna")
    call = first.wait("call.started", LIMIT)["call"]
    second, third = t.node("berta"), t.node("cilla")
    t.meet(first, second, third)
    third.signal(signal.SIGINT)
    for node in (first, second):
        left = node.wait("member.left", LIMIT, member=third.id)
        t.expect(left["reason"] == "left", f"left because {left['reason']}")
    t.figure("exit code", third.ended(LIMIT), at_most=0)
    t.expect(not third.errors, f"it says {third.errors[:200]}")
    t.video_grows(first, second)
    t.expect(not second.all("call.ended"), "a participant's leave ended the call")
    first.send("leave-call")
    second.wait("call.ended", LIMIT, call=call)
    said = second.send("say", text="still here")
    first.wait("message", LIMIT, said, text="still here")
    t.expect(len(first.roster()) == 1, f"the roster: {first.roster()}")


@check(gate=True)
def the_demo_shows_everyone_to_everyone(t):
    # Everyone sees everyone after 0.3 s on an idle machine.
    temporary = os.path.join(t.folder, "tmp")
    os.makedirs(temporary)
    done = subprocess.run(
        [t.muster, "demo", "--for", "10"], stdin=subprocess.DEVNULL, capture_output=True, text=True,
        timeout=3 * LIMIT, env=clean_environment(t.folder, {"TMPDIR": temporary}))
    t.expect(not os.listdir(temporary), f"it leaves {os.listdir(temporary)} behind")
    t.figure("exit code", done.returncode, at_most=0)
    t.expect("Everyone saw everyone" in done.stdout, done.stdout[-300:] + done.stderr[-300:])


def _leave(t, *nodes):
    """All of them leave, after which their recordings are complete."""
    for node in nodes:
        node.send("quit")
    for node in nodes:
        t.figure(f"{node.name}'s exit code", node.ended(LIMIT), at_most=0)


def _judge_recording(t, one, other):
    """What one node recorded of another one's test pattern and tone."""
    path, sound = one.recording(other, "ivf"), one.recording(other, "wav")
    for recorded in (path, sound):
        t.expect(not (said := complaints(recorded)), f"{os.path.basename(recorded)}: {said[:200]}")
    whole = Ivf(path).from_first(320, 180)
    part = os.path.join(t.folder, f"{one.name}.ivf")
    whole.save(part)
    numbers = [read_pattern(luma, 320, 180) for luma in luma_of(part, 320 * 180)]
    t.expect(all(numbers), f"{numbers.count(None)} of {len(numbers)} patterns cannot be read")
    t.expect(numbers == sorted(set(numbers)), "frames are repeated or out of order")
    t.figure(f"{one.name} recorded", len(numbers), "frames", at_least=30)
    t.figure("loudness", rms(samples(sound)), at_least=100)

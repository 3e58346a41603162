"""Leaves, crashes, suspends and returns."""

import os
import random
import signal

from check import check
from media import Ivf, complaints, duration
from pseudo_terminal import Terminal

# Seconds until a graceful leave and a crash are seen everywhere, by the specification.
LEAVE, CRASH = 1.0, 5.0


@check(measures=True)
def a_clean_leave_is_seen_at_once_and_ends_the_process(t):
    first = t.node("anna")
    first.ready()
    for number, how in enumerate(("SIGINT", "SIGTERM", "quit")):
        other = t.node(f"berta{number}")
        t.meet(first, other)
        at = other.send("quit") if how == "quit" else other.signal(getattr(signal, how))
        left = first.wait("member.left", since=at, member=other.id)
        t.figure(f"{how} seen", left["at"] - at, "s", at_most=LEAVE)
        t.expect(left["reason"] == "left", f"{how}: left because {left['reason']}")
        t.figure("exit code", other.ended(5), at_most=0)
        t.figure("gone", other.exited_at - at, "s", at_most=1)
        t.expect(not other.errors, f"{how}: it says {other.errors[:200]}")
    t.expect(not first.roster(), f"ghosts: {first.roster()}")


@check(measures=True)
def a_node_obeys_whatever_its_output_does(t):
    """Nobody reads, the disk is full, or there is no standard output: it stays, and leaves when it
    is told to."""
    silent = {"video": "none", "audio": "none"}
    first = t.node("anna", **silent)
    first.ready()
    for output, code in (("", 0), (">/dev/full", 1), (">&-", 0)):
        for how in ("SIGTERM", "SIGHUP", "quit"):
            what = f"{output or 'unread'}, {how}"
            wrap = ("sh", "-c", f'exec "$@" {output}', "sh") if output else ()
            other = t.node(what, wrap=wrap, **silent)
            joined = first.wait("member.joined", where=lambda event: event["name"] == what)
            member = joined["member"]
            if not output:
                other.stop_reading()
            # More answers than a pipe of 4 KiB holds.
            for _ in range(30):
                other.send("dance")
            t.pause(1)
            at = other.send("quit") if how == "quit" else other.signal(getattr(signal, how))
            left = first.wait("member.left", since=at, member=member)
            t.expect(left["reason"] == "left", f"{what}: left because {left['reason']}")
            t.figure(f"{what}: seen", left["at"] - at, "s", at_most=LEAVE)
            t.expect(other.ended(5) == code, f"{what}: exit code {other.ended(5)}")
            t.figure("gone", other.exited_at - at, "s", at_most=1)
            t.expect(other.errors.count("\n") == code, f"{what}: it says {other.errors[:200]}")


@check(needs="ffmpeg", measures=True)
def kill_9_leaves_playable_recordings_and_a_usable_identity(t):
    first = t.node("anna")
    first.ready()
    second = t.node("berta", record=True)
    t.meet(first, second)
    kept = second.id
    t.pause(3)
    at = second.signal(signal.SIGKILL)
    second.ended(2)
    left = first.wait("member.left", since=at, member=kept, limit=10)
    t.figure("crash seen", left["at"] - at, "s", at_most=CRASH)
    t.expect(left["reason"] == "crashed", f"left because {left['reason']}")
    for ending in ("ivf", "wav"):
        said = complaints(second.recording(first, ending))
        t.expect(not said, f"the .{ending}: {said[:200]}")
    t.figure("recorded", Ivf(second.recording(first, "ivf")).span, "s", at_least=2.5)
    t.figure("and", duration(second.recording(first, "wav")), "s of sound", at_least=2.0)
    again = t.node("berta")
    t.expect(again.id == kept, "it is someone else now")
    joined = first.wait("member.joined", since=again.started_at, member=kept)
    t.figure("back", joined["at"] - again.ready()["at"], "s")
    t.meet(first, again, since=again.started_at)


@check(needs="ffmpeg", measures=True)
def kill_9_at_any_moment_leaves_nothing_unplayable(t):
    first = t.node("anna")
    first.ready()
    chance = random.Random(9)
    kept, played = None, 0
    for _ in range(20 if t.is_long else 6):
        other = t.node("berta", record=True)
        t.pause(chance.uniform(0.05, 0.9))
        other.signal(signal.SIGKILL)
        other.ended(2)
        for ready in other.all("ready"):
            kept = kept or ready["id"]
            t.expect(ready["id"] == kept, "it was someone else")
        folder = os.path.join(other.folder, "record")
        for name in os.listdir(folder) if os.path.isdir(folder) else []:
            path = os.path.join(folder, name)
            # Killed between creating a file and the first write: nothing to play.
            if os.path.getsize(path) > 0:
                said = complaints(path)
                t.expect(not said, f"{name}, {os.path.getsize(path)} bytes: {said[:200]}")
                played += 1
    t.require(kept, "no run came as far as ready")
    last = t.node("berta")
    t.expect(last.id == kept, "the last run is someone else")
    t.meet(first, last, since=last.started_at)
    t.expect(first.roster() == {(t.channel, kept)}, f"roster: {first.roster()}")
    t.figure("recordings", played, at_least=1)


@check(measures=True)
def a_restart_is_not_mistaken_for_the_dead(t):
    first = t.node("anna")
    first.ready()
    second = t.node("berta")
    t.meet(first, second)
    second.signal(signal.SIGKILL)
    second.ended(2)
    # At once, so that the other node has not detected the crash of the first run.
    again = t.node("berta")
    t.figure("pictures again", t.meet(first, again, since=again.started_at)
             - again.ready()["at"], "s", at_most=1.5)
    t.pause(1)
    t.expect(first.roster() == {(t.channel, again.id)}, f"roster: {first.roster()}")
    reasons = [event["reason"] for event in first.all("member.left")]
    t.expect(reasons == ["replaced"], f"left: {reasons}")


@check(measures=True)
def the_initiator_who_leaves_ends_the_call_and_others_do_not(t):
    first = t.node("anna")
    first.wait("call.started")
    second, third = t.node("berta"), t.node("cilla")
    t.meet(first, second, third)
    call = second.wait("call.started", initiator=first.id)
    at = third.send("leave-call")
    second.wait("call.left", since=at, member=third.id)
    t.pause(0.5)
    t.expect(not second.all("call.ended", since=at), "a participant's leave ended the call")
    at = first.send("leave-call")
    for node in (second, third):
        ended = node.wait("call.ended", since=at, call=call["call"])
        t.figure(f"{node.name} knows", ended["at"] - at, "s", at_most=LEAVE)
        t.expect((ended["reason"], ended["initiator"]) == ("ended", first.id), f"saw {ended}")
    t.pause(1.5)
    for node in (first, second, third):
        t.expect(len(node.roster()) == 2, f"{node.name} lost members: {node.roster()}")
        revived = node.all("call.started", since=at, call=call["call"])
        t.expect(not revived, f"{node.name}: the ended call came back")
    at = second.send("start-call")
    third.wait("call.started", since=at, initiator=second.id)
    third.send("join-call")
    t.meet(second, third, since=at)


@check(measures=True)
def an_initiator_hands_its_call_over(t):
    first = t.node("anna")
    first.wait("call.started")
    second = t.node("berta")
    second.wait("call.started", initiator=first.id)
    first.wait("call.joined", member=second.id)
    third = t.node("cilla")
    first.wait("call.joined", member=third.id)
    at = first.send("leave-call", handOver=True)
    for node in (first, second, third):
        new = node.wait("call.handed-over", since=at, initiator=second.id)
        t.figure(f"{node.name} knows", new["at"] - at, "s", at_most=LEAVE)
        inside = sorted([second.id, third.id])
        t.expect(new["participants"] == inside, f"{node.name}: in it are {new['participants']}")
    first.wait("call.state", since=at, state="disconnected")
    # Without anyone to hand it over to, the call ends.
    at = third.send("leave-call")
    second.wait("call.left", since=at, member=third.id)
    at = second.send("leave-call", handOver=True)
    ended = first.wait("call.ended", since=at)
    t.expect(ended["initiator"] == second.id, f"saw {ended}")


@check()
def the_terminal_asks_an_initiator_that_leaves(t):
    other = t.node("anna", call=False)
    other.ready()
    terminal = Terminal(t, [
        t.muster, "join", t.channel, "--name", "berta", "--call", "--no-view", "--interface", "lo",
        "--video", "none", "--audio", "none", "--speaker", "none", "--passphrase", t.passphrase,
        "--data", os.path.join(t.folder, "berta")])
    started = other.wait("call.started")
    other.send("join-call")
    other.wait("call.state", state="connected")
    terminal.shows("anna is here")
    terminal.types("q")
    terminal.shows("You lead the call")
    terminal.text = ""
    terminal.types("\x1b")
    terminal.shows("[q] quit")
    at = t.now()
    terminal.types("q")
    terminal.shows("[h] hands it over to anna and quits")
    terminal.types("h")
    other.wait("call.handed-over", since=at, initiator=other.id, call=started["call"])
    other.wait("member.left", since=at)
    terminal.ends()
    t.expect(not other.all("call.ended"), "the call was ended")


@check(measures=True)
def a_node_that_slept_comes_back(t):
    first, second = t.pair()
    at = second.signal(signal.SIGSTOP)
    t.pause(3)
    woken = second.signal(signal.SIGCONT)
    t.figure("reported meanwhile", len(first.all("member.left", since=at)), "leaves")
    t.figure("pictures", t.video_continues(first, second, since=woken), "s later")


@check(needs="namespaces", measures=True)
def a_cable_that_is_cut_and_mended_brings_the_call_back(t):
    lan = t.lan(2, faulty=True)
    first = t.node("anna", host=lan.hosts[0])
    first.ready()
    second = t.node("berta", host=lan.hosts[1])
    t.meet(first, second)
    for seconds in (1, 6):
        lan.hosts[1].impair_both_directions(cut=True)
        t.pause(seconds)
        lan.hosts[1].impair_both_directions(cut=False)
        t.figure(f"cut {seconds} s: pictures", t.video_continues(first, second), "s later")
    t.figure("reported", len(first.all("member.left")), "leaves")


@check(measures=True)
def a_node_leaves_by_itself_after_its_time(t):
    first = t.node("anna")
    first.ready()
    second = t.node("berta", "--for", "2")
    t.meet(first, second)
    left = first.wait("member.left", member=second.id, limit=5)
    t.expect(left["reason"] == "left", f"left because {left['reason']}")
    t.figure("exit code", second.ended(2), at_most=0)
    t.figure("stayed", second.exited_at - second.ready()["at"], "s", at_most=3.2, at_least=1.8)

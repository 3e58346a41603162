"""VP8 and Opus in both directions, subscriptions, and repair (sections 8 and 13)."""

from check import check
from context import latest
from footage import LAYERS, MUSTER_TONE, PEER_TONE
from frames import (
    AUDIO_PACKETS, FRAMES, frames_received, has_frames, has_only, quit_all, recording, tone_plays,
    video_plays)

LARGE, SMALL = f"{LAYERS[1][0]}x{LAYERS[1][1]}", f"{LAYERS[0][0]}x{LAYERS[0][1]}"


@check(needs="ffmpeg", gate=True)
def python_gets_video_and_audio_of_muster(t):
    muster = t.start_muster(call=True, video="test:320x180@15", audio=t.footage.muster_tone)
    python = t.start_peer(knows=[muster], call=True, record=True)
    first = python.wait("media.first-frame", member=muster.id)
    t.expect((first["width"], first["height"]) == LAYERS[1],
             f"expected a frame of {LAYERS[1]}, saw {first['width']} by {first['height']}")
    python.wait("media", member=muster.id,
                where=lambda event: has_frames(event, "camera", FRAMES)
                and event["audioPackets"] >= AUDIO_PACKETS)
    quit_all(python, muster)
    skipped = latest(python, "media")["in"]["camera"]["framesSkipped"]
    t.expect(skipped == 0, f"expected no frame to be passed over, saw {skipped}")
    video_plays(t, recording(python, muster), FRAMES)
    tone_plays(t, recording(python, muster, ending=".opus"), MUSTER_TONE)


@check(needs="ffmpeg", gate=True)
def muster_gets_video_and_audio_of_python(t):
    muster = t.start_muster(call=True, record=True)
    python = t.start_peer(knows=[muster], call=True, sends=True)
    first = muster.wait("media.first-frame", member=python.id)
    t.expect((first["width"], first["height"]) == LAYERS[1],
             f"expected a frame of {LAYERS[1]}, saw {first['width']} by {first['height']}")
    frames_received(muster, python, FRAMES)
    python.wait("media", where=lambda event: event["audioPacketsSent"] >= AUDIO_PACKETS + 25)
    quit_all(python, muster)
    video = recording(muster, python)
    has_only(t, video, t.footage.sent_frames())
    video_plays(t, video, FRAMES)
    tone_plays(t, recording(muster, python, ending=".wav"), PEER_TONE)


@check(needs="ffmpeg")
def subscriptions_choose_the_layer(t):
    """Each requests a lower resolution, and gets the smaller layer from a keyframe on."""
    muster = t.start_muster(call=True, video="test:640x360@15", record=True)
    python = t.start_peer(knows=[muster], call=True, sends=True)
    python.wait("layer", member=muster.id, to="640x360")
    python.wait("sent-layer", member=muster.id, width=640, rate=15, why="CALL_STARTED")
    muster.wait("layer", member=python.id, direction="in", why="call-started",
                where=lambda event: event["to"].startswith(LARGE))
    python.send("subscribe", width=320, height=180)
    python.wait("layer", member=muster.id, to="320x180")
    python.wait("sent-layer", member=muster.id, width=320, why="RECEIVER_REQUEST")
    muster.send("watch", member=python.id, width=160, height=90, fps=15)
    python.wait("subscription", member=muster.id, width=160, height=90, rate=15)
    muster.wait("layer", member=python.id, direction="in", why="receiver-request",
                where=lambda event: event["to"].startswith(SMALL))
    python.send("subscribe", width=320, height=180, rate=8)
    python.wait("sent-layer", member=muster.id, width=320, rate=8, why="RECEIVER_REQUEST")
    python.send("subscribe", width=0, height=0)
    muster.wait("layer", member=python.id, direction="out", to="off")
    python.wait("sent-layer", member=muster.id, width=0, why="RECEIVER_REQUEST")
    python.send("subscribe", width=65535, height=65535)
    python.wait("layer", member=muster.id, to="640x360",
                where=lambda event: event["t"] > latest(python, "layer", to="320x180")["t"])


@check(needs="ffmpeg", gate=True)
def lost_packets_are_sent_again_and_recordings_decode(t):
    """Python loses one of 20 long datagrams, received and sent."""
    muster = t.start_muster(call=True, video="test:640x360@15", record=True)
    python = t.start_peer("--loss", "5", knows=[muster], call=True, sends=True, record=True)
    python.wait("media", where=lambda event: has_frames(event, "camera", 2 * FRAMES)
                and event["packetsAskedFor"] > 0 and event["out"]["camera"]["packetsRepeated"] > 0)
    frames_received(muster, python, 2 * FRAMES)
    quit_all(python, muster)
    figures = latest(python, "media")
    t.figure("asked for", figures["packetsAskedFor"])
    t.figure("repeated", figures["out"]["camera"]["packetsRepeated"])
    video_plays(t, recording(muster, python), 2 * FRAMES)
    video_plays(t, recording(python, muster), 2 * FRAMES)


@check(needs="ffmpeg")
def muster_copies_audio_that_does_not_arrive(t):
    """Python loses three of ten audio packets, and says so in its receiver reports."""
    muster = t.start_muster(call=True, audio=t.footage.muster_tone)
    python = t.start_peer("--audio-loss", "30", knows=[muster], call=True, record=True)
    python.wait("media", member=muster.id, where=lambda event: event["audioCopies"] >= AUDIO_PACKETS)
    quit_all(python, muster)
    wrong = latest(python, "media")["wrongCopies"]
    t.expect(wrong == 0, f"expected copies of what had arrived, saw {wrong} others")
    tone_plays(t, recording(python, muster, ending=".opus"), MUSTER_TONE)


@check(needs="ffmpeg")
def muster_reports_the_packets_that_arrive(t):
    """Python loses one of 20 long datagrams, and muster's feedback names those that are missing."""
    muster = t.start_muster(call=True)
    python = t.start_peer("--loss", "5", knows=[muster], call=True, sends=True)
    python.wait("media", member=muster.id, where=lambda event: event["feedback"]["reports"] >= 30)
    figures = latest(python, "media")["feedback"]
    t.figure("feedback", figures)
    t.expect(figures["wrong"] == 0, f"expected only datagrams that were sent, saw {figures}")
    t.expect(0 < figures["missing"] < figures["arrived"] / 5,
             f"expected one of twenty or fewer to be missing, saw {figures}")


def _estimate(node, member):
    """The latest estimate of the path to a member, and the queueing delay there."""
    peers = latest(node, "stats")["peers"]
    peer = next(peer for peer in peers if peer["member"] == member.id)
    return peer["estimateKbps"], peer["queueMs"]


@check()
def muster_understands_reports(t):
    muster = t.start_muster(call=True, video="test:320x180@15")
    python = t.start_peer(knows=[muster], call=True)
    muster.wait("stats", where=lambda event: any(
        peer["estimateKbps"] is not None and peer["out"] and peer["out"]["frames"] >= FRAMES
        for peer in event["peers"]))
    estimate, queue = _estimate(muster, python)
    t.figure("estimate", estimate, "kbit/s")
    t.figure("queueing delay", queue, "ms")
    t.expect(queue >= 0, f"expected a delay, saw {queue}")


@check()
def muster_estimates_nothing_without_reports(t):
    muster = t.start_muster(call=True, video="test:320x180@15")
    python = t.start_peer("--no-feedback", knows=[muster], call=True)
    muster.wait("stats", where=lambda event: any(
        peer["out"] and peer["out"]["frames"] >= FRAMES for peer in event["peers"]))
    t.expect(_estimate(muster, python) == (None, None),
             f"expected no estimate, saw {_estimate(muster, python)}")


@check()
def a_peer_without_feedback_is_held_by_its_receiver_reports(t):
    """Half of what it is sent is lost, and all that it says about it is in its receiver reports:
    it is left with keyframes."""
    muster = t.start_muster(call=True, video="test:640x360@25")
    python = t.start_peer("--no-feedback", "--loss", "50", knows=[muster], call=True)
    muster.wait("layer", member=python.id, direction="out", why="bandwidth",
                where=lambda event: event["to"] == "320x180@0", limit=30)


@check(needs="ffmpeg")
def muster_reports_nothing_to_a_peer_without_the_capability(t):
    muster = t.start_muster(call=True, record=True)
    python = t.start_peer("--no-feedback", knows=[muster], call=True, sends=True)
    frames_received(muster, python, FRAMES)
    python.wait("media", where=lambda event: event["audioPacketsSent"] >= AUDIO_PACKETS)
    figures = latest(python, "media")["feedback"]
    t.expect(figures["reports"] + figures["wrong"] == 0, f"expected no feedback, saw {figures}")

"""VP8 and Opus in both directions, subscriptions, and repair (sections 8 and 13)."""

import os

from check import check
from context import latest
from footage import LAYERS, MUSTER_TONE, PEER_TONE, decoded_frames, samples, tone_share
from peer.media.files import IVFFile
from peer.media.vp8 import is_keyframe

FRAMES = 30
AUDIO_PACKETS = 100
LARGE, SMALL = f"{LAYERS[1][0]}x{LAYERS[1][1]}", f"{LAYERS[0][0]}x{LAYERS[0][1]}"
_LARGEST_SHARE = 0.5   # of a tone that survived an encoder for speech


def _frames_received(node, other, count):
    """Waits until muster has received so many frames."""
    def has(event):
        return any(peer["member"] == other.id and peer["in"] and peer["in"]["frames"] >= count
                   for peer in event["peers"])
    node.wait("stats", where=has)


def _video_plays(t, path, at_least):
    """Every recorded frame decodes, and there are enough of them."""
    recorded = len(IVFFile(path).frames)
    decoded, complaints = decoded_frames(path)
    t.expect(recorded >= at_least, f"expected {at_least} recorded frames, saw {recorded}")
    t.expect(decoded == recorded and not complaints,
             f"expected all {recorded} frames to decode, saw {decoded}: {complaints[:200]}")
    t.figure("frames", decoded)


def _tone_plays(t, path, frequency):
    values = samples(path)
    share = tone_share(values, frequency)
    t.expect(len(values) >= AUDIO_PACKETS * 960,
             f"expected {AUDIO_PACKETS * 960} samples, saw {len(values)}")
    t.figure(f"energy at {frequency} Hz", share, at_least=_LARGEST_SHARE)


def _quit(*nodes):
    """Ends nodes in order, so that recordings are complete."""
    for node in nodes:
        node.send("quit")
    for node in nodes:
        node.ended(15)


@check(needs="ffmpeg")
def python_gets_video_and_audio_of_muster(t):
    muster = t.start_muster(call=True, video="test:320x180@15", audio=t.footage.muster_tone)
    python = t.start_peer(knows=[muster], call=True, record=True)
    first = python.wait("media.first-frame", member=muster.id)
    t.expect((first["width"], first["height"]) == LAYERS[1],
             f"expected a frame of {LAYERS[1]}, saw {first['width']} by {first['height']}")
    python.wait("media", member=muster.id,
                where=lambda event: event["frames"] >= FRAMES
                and event["audioPackets"] >= AUDIO_PACKETS)
    _quit(python, muster)
    skipped = latest(python, "media")["framesSkipped"]
    t.expect(skipped == 0, f"expected no frame to be passed over, saw {skipped}")
    record = os.path.join(python.folder, "record", muster.id)
    _video_plays(t, record + ".ivf", FRAMES)
    _tone_plays(t, record + ".opus", MUSTER_TONE)


@check(needs="ffmpeg")
def muster_gets_video_and_audio_of_python(t):
    muster = t.start_muster(call=True, record=True)
    python = t.start_peer(knows=[muster], call=True, sends=True)
    first = muster.wait("media.first-frame", member=python.id)
    t.expect((first["width"], first["height"]) == LAYERS[1],
             f"expected a frame of {LAYERS[1]}, saw {first['width']} by {first['height']}")
    _frames_received(muster, python, FRAMES)
    python.wait("media", where=lambda event: event["audioPacketsSent"] >= AUDIO_PACKETS + 25)
    _quit(python, muster)
    video = muster.recording(python, "ivf")
    frames, sent = IVFFile(video).frames, t.footage.sent_frames()
    foreign = sum(1 for frame in frames if frame not in sent)
    t.expect(not foreign, f"expected only frames that Python sent, saw {foreign} others")
    t.expect(is_keyframe(frames[0]), "expected a keyframe first, saw another frame")
    _video_plays(t, video, FRAMES)
    _tone_plays(t, muster.recording(python, "wav"), PEER_TONE)


@check(needs="ffmpeg")
def subscriptions_choose_the_layer(t):
    """Each asks the other for less, and gets the smaller layer from a keyframe on."""
    muster = t.start_muster(call=True, video="test:640x360@15", record=True)
    python = t.start_peer(knows=[muster], call=True, sends=True)
    python.wait("layer", member=muster.id, to="640x360")
    muster.wait("layer", member=python.id, direction="in",
                where=lambda event: event["to"].startswith(LARGE))
    python.send("subscribe", width=320, height=180)
    python.wait("layer", member=muster.id, to="320x180")
    muster.send("watch", member=python.id, width=160, height=90)
    python.wait("subscription", member=muster.id, width=160, height=90)
    muster.wait("layer", member=python.id, direction="in",
                where=lambda event: event["to"].startswith(SMALL))
    python.send("subscribe", width=0, height=0)
    muster.wait("layer", member=python.id, direction="out", to="off")
    python.send("subscribe", width=65535, height=65535)
    python.wait("layer", member=muster.id, to="640x360",
                where=lambda event: event["t"] > latest(python, "layer", to="320x180")["t"])


@check(needs="ffmpeg")
def lost_packets_are_sent_again_and_recordings_decode(t):
    """Python loses one of 20 long datagrams, received and sent."""
    muster = t.start_muster(call=True, video="test:640x360@15", record=True)
    python = t.start_peer("--loss", "5", knows=[muster], call=True, sends=True, record=True)
    python.wait("media", where=lambda event: event["frames"] >= 2 * FRAMES
                and event["packetsAskedFor"] > 0 and event["packetsRepeated"] > 0)
    _frames_received(muster, python, 2 * FRAMES)
    _quit(python, muster)
    figures = latest(python, "media")
    t.figure("asked for", figures["packetsAskedFor"])
    t.figure("repeated", figures["packetsRepeated"])
    _video_plays(t, muster.recording(python, "ivf"), 2 * FRAMES)
    _video_plays(t, os.path.join(python.folder, "record", muster.id + ".ivf"), 2 * FRAMES)

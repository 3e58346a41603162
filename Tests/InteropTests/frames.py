"""Helpers for media checks: counting frames, and judging recordings."""

import glob
import os

from footage import decoded_frames, samples, tone_share
from node import Unexpected
from peer.media.files import IVFFile
from peer.media.vp8 import is_keyframe

FRAMES = 30
AUDIO_PACKETS = 100
_LARGEST_SHARE = 0.5   # of a tone that survived an encoder for speech


def has_frames(event, stream, count):
    """Whether a `media` event of the Python peer reports at least this many frames of a stream."""
    return event["in"].get(stream, {"frames": 0})["frames"] >= count


def _figures_in(peer, stream):
    """muster's statistics of a stream that it receives; None if there are none."""
    if stream == "camera":
        return peer["in"]
    return next((one["in"] for one in peer["streams"] if one["stream"] == stream), None)


def frames_received(node, other, count, stream="camera"):
    """Waits until muster has received this many frames of a stream."""
    def has(event):
        found = [_figures_in(peer, stream) for peer in event["peers"]
                 if peer["member"] == other.id]
        return any(one and one["frames"] >= count for one in found)
    node.wait("stats", where=has)


def recording(node, other, ending=".ivf"):
    """The path of the recording that `node`, of either kind, has made of another."""
    folder = os.path.join(node.folder, "record")
    found = glob.glob(os.path.join(folder, f"*-{other.id}{ending}"))
    if len(found) != 1:
        raise Unexpected(f"{node.name}: expected one {ending} of {other.name},"
                         f" saw {sorted(os.listdir(folder))}")
    return found[0]


def has_only(t, path, sent):
    """Every frame of a recording is one of those sent, and a keyframe is the first."""
    frames = IVFFile(path).frames
    foreign = sum(1 for frame in frames if frame not in sent)
    t.expect(not foreign, f"{os.path.basename(path)}: expected only frames that were sent,"
                          f" saw {foreign} others")
    t.expect(is_keyframe(frames[0]), "expected a keyframe first, saw another frame")


def video_plays(t, path, at_least):
    """Every recorded frame decodes, and there are enough of them."""
    recorded = len(IVFFile(path).frames)
    decoded, complaints = decoded_frames(path)
    t.expect(recorded >= at_least, f"expected {at_least} recorded frames, saw {recorded}")
    t.expect(decoded == recorded and not complaints,
             f"expected all {recorded} frames to decode, saw {decoded}: {complaints[:200]}")
    t.figure("frames", decoded)


def tone_plays(t, path, frequency):
    values = samples(path)
    share = tone_share(values, frequency)
    t.expect(len(values) >= AUDIO_PACKETS * 960,
             f"expected {AUDIO_PACKETS * 960} samples, saw {len(values)}")
    t.figure(f"energy at {frequency} Hz", share, at_least=_LARGEST_SHARE)


def quit_all(*nodes):
    """Ends nodes in order, so that recordings are complete."""
    for node in nodes:
        node.send("quit")
    for node in nodes:
        node.ended(15)

"""Several video streams of a member: separate frames, recordings and subscriptions (section 13)."""

from check import check
from footage import LAYERS, SCREEN
from frames import (
    FRAMES, frames_received, has_frames, has_only, quit_all, recording, video_plays)

TWO_STREAMS = {"video": "test:320x180@15"}
SHARED = ("--share", "test:320x180@15")
SCREEN_ENDING = "-screen.ivf"
_SETTLED = 2.0   # seconds after which a stream that was to end has ended


def _both_arrive(node, sender):
    """Waits until a Python peer has frames of both streams of a sender."""
    node.wait("media", member=sender.id, where=lambda event: all(
        has_frames(event, stream, FRAMES) for stream in ("camera", "screen")))


def _first_frames_are(t, node, sender, **sizes):
    for stream, size in sizes.items():
        first = node.wait("media.first-frame", member=sender.id, stream=stream)
        seen = first["width"], first["height"]
        t.expect(seen == size, f"expected a frame of {size} of the {stream}, saw {seen}")


@check(needs="ffmpeg")
def python_gets_two_streams_of_muster(t):
    muster = t.start_muster(*SHARED, call=True, **TWO_STREAMS)
    python = t.start_peer(knows=[muster], call=True, record=True)
    _first_frames_are(t, python, muster, camera=(320, 180), screen=(320, 180))
    _both_arrive(python, muster)
    reports = python.all("member.joined", member=muster.id) \
        + python.all("member.updated", member=muster.id)
    offered = reports[-1]["streams"]
    t.expect(set(offered) == {"camera", "screen"}, f"expected two streams, saw {offered}")
    quit_all(python, muster)
    video_plays(t, recording(python, muster), FRAMES)
    video_plays(t, recording(python, muster, SCREEN_ENDING), FRAMES)


@check(needs="ffmpeg")
def muster_gets_two_streams_of_python(t):
    muster = t.start_muster(call=True, record=True)
    python = t.start_peer(knows=[muster], call=True, sends=True, shares=True)
    _first_frames_are(t, muster, python, camera=LAYERS[1], screen=SCREEN)
    for stream in ("camera", "screen"):
        frames_received(muster, python, FRAMES, stream)
    quit_all(python, muster)
    camera, screen = recording(muster, python), recording(muster, python, SCREEN_ENDING)
    has_only(t, camera, t.footage.sent_frames())
    has_only(t, screen, t.footage.sent_screen_frames())
    video_plays(t, camera, FRAMES)
    video_plays(t, screen, FRAMES)


def _screen_ends_and_camera_goes_on(t, receiver, sender, frames):
    """`frames`: a function of a `media` event of Python, with the frames of both streams so far."""
    t.pause(_SETTLED)
    def figures(since):
        event = receiver.wait("media", since=since)
        return frames(event), event["at"]
    before, at = figures(t.now())
    after, _ = figures(at + _SETTLED)
    t.expect(after["screen"] == before["screen"],
             f"{sender.name}: expected no frame of the screen after 0 by 0,"
             f" saw {after['screen'] - before['screen']}")
    t.expect(after["camera"] > before["camera"],
             f"{sender.name}: expected frames of the camera to go on, saw none")


@check(needs="ffmpeg")
def python_subscribes_to_the_streams_of_muster_one_by_one(t):
    """A request of 0x0 for the screen ends the screen alone."""
    muster = t.start_muster(*SHARED, call=True, **TWO_STREAMS)
    python = t.start_peer(knows=[muster], call=True)
    _both_arrive(python, muster)
    python.send("subscribe", stream="screen", width=0, height=0)
    muster.wait("layer", member=python.id, stream="screen", direction="out", to="off")
    _screen_ends_and_camera_goes_on(t, python, muster, lambda event: {
        stream: one["frames"] for stream, one in event["in"].items()})
    t.expect(not muster.all("layer", stream="camera", direction="out", to="off"),
             "expected the camera to go on, saw it off")
    since = python.send("subscribe", stream="screen", width=65535, height=65535)
    muster.wait("layer", since=since, member=python.id, stream="screen", direction="out")


@check(needs="ffmpeg")
def muster_subscribes_to_the_streams_of_python_one_by_one(t):
    muster = t.start_muster(call=True)
    python = t.start_peer(knows=[muster], call=True, sends=True, shares=True)
    for stream in ("camera", "screen"):
        frames_received(muster, python, FRAMES, stream)
    muster.send("watch", member=python.id, stream="screen", off=True)
    python.wait("subscription", member=muster.id, stream="screen", width=0, height=0)
    _screen_ends_and_camera_goes_on(t, python, python, lambda event: {
        stream: one["frames"] for stream, one in event["out"].items()})
    t.expect(not python.all("subscription", stream="camera", width=0),
             "expected no subscription of the camera to change, saw 0 by 0")


@check(needs="ffmpeg")
def two_python_peers_exchange_two_streams(t):
    """Python on both sides, without muster."""
    sender = t.start_peer(name="sender", call=True, sends=True, shares=True)
    receiver = t.start_peer(name="receiver", knows=[sender], call=True, record=True)
    _first_frames_are(t, receiver, sender, camera=LAYERS[1], screen=SCREEN)
    _both_arrive(receiver, sender)
    receiver.send("subscribe", stream="screen", width=0, height=0)
    sender.wait("subscription", member=receiver.id, stream="screen", width=0)
    _screen_ends_and_camera_goes_on(t, receiver, sender, lambda event: {
        stream: one["frames"] for stream, one in event["in"].items()})
    quit_all(receiver, sender)
    has_only(t, recording(receiver, sender), t.footage.sent_frames())
    has_only(t, recording(receiver, sender, SCREEN_ENDING), t.footage.sent_screen_frames())

"""Who speaks: the dominant speaker, and playout of the loudest."""

import json
import os
import subprocess
import wave

from check import check
from media import correlation, samples

_TURN = 3
_TURNS = 8
_LEAD = 2


def _voices(t, count):
    """A file for each of `count` people, who read the recording in turns of 3 s."""
    with wave.open(t.footage.speech, "rb") as file:
        layout, read = file.getparams(), file.readframes(file.getnframes())
    turn = _TURN * layout.framerate * 2
    read = (read * (_TURNS * turn // len(read) + 1))[:_TURNS * turn]
    paths = []
    for person in range(count):
        heard = bytearray(_LEAD * layout.framerate * 2) + bytearray(len(read))
        for number in range(person, _TURNS, count):
            begin = len(heard) - len(read) + number * turn
            heard[begin:begin + turn] = read[number * turn:(number + 1) * turn]
        paths.append(os.path.join(t.folder, f"voice{person}.wav"))
        with wave.open(paths[-1], "wb") as file:
            file.setparams(layout)
            # Some silence, so that the files do not begin anew before the nodes end.
            file.writeframes(bytes(heard) + bytes(20 * layout.framerate * 2))
    return paths


def _call(t, nodes):
    """Lets the nodes call once all know each other; returns when each one was in the call."""
    t.until(lambda: all(len(node.roster()) == len(nodes) - 1 for node in nodes), "all members")
    nodes[0].send("start-call")
    for node in nodes[1:]:
        node.wait("call.started", 10)
        node.send("join-call")
    return [node.wait("call.state", 10, state="connected")["at"] for node in nodes]


@check(needs="ffmpeg", measures=True)
def of_five_the_speaker_is_known_and_heard(t):
    heard = os.path.join(t.folder, "heard.wav")
    voices = _voices(t, 4)
    nodes = [t.node(f"n{number}", video="none", audio=voice, call=False)
             for number, voice in enumerate(voices)]
    listener = t.node("listener", video="none", audio="none", speaker=heard, call=False)
    everyone = [*nodes, listener]
    begin = _call(t, everyone)
    t.pause(_LEAD + _TURNS * _TURN + 1)
    late = []
    for node in everyone:
        changes = [(event["at"], event["member"]) for event in node.all("call.speaker")]
        wanted = [nodes[number % len(nodes)].id for number in range(_TURNS)]
        t.expect([member for _, member in changes] == wanted, f"{node.name}: {changes}")
        for number, (at, _) in enumerate(changes[:_TURNS]):
            late.append(at - begin[number % len(nodes)] - _LEAD - number * _TURN)
    t.duration("known after", max(late, default=0), at_most=1)
    listener.send("quit")
    t.expect(listener.ended(5) == 0, "it does not end well")
    t.figure("likeness of what is heard",
             correlation(samples(heard), samples(t.footage.speech)), at_least=0.8)


@check(needs="ffmpeg", measures=True)
def of_four_the_videos_of_the_last_two_speakers_are_received(t):
    voices = _voices(t, 4)
    nodes = [t.node(f"n{number}", video="test:320x180@15", audio=voice, call=False, watches=False)
             for number, voice in enumerate(voices)]
    viewer = t.node("viewer", "--max-streams", "2", video="none", audio="none", call=False)
    begin = _call(t, [*nodes, viewer])
    late = []
    for turn in range(_TURNS):
        speaker = nodes[turn % len(nodes)]
        start = begin[turn % len(nodes)] + _LEAD + turn * _TURN
        t.until(lambda: _received(viewer, speaker) != "off", f"{speaker.name}'s video")
        risen = [event["at"] for event in _layers(viewer, speaker) if event["from"] == "off"]
        late.append(risen[-1] - start)
        if turn >= 2:
            t.pause(max(start + 2 - t.now(), 0))
            shown = {node.name for node in nodes if _received(viewer, node) != "off"}
            last = {nodes[number % len(nodes)].name for number in (turn - 1, turn)}
            t.expect(shown == last, f"turn {turn}: {shown}, not {last}")
    t.duration("received after", max(late), at_most=2)
    for node in nodes:
        for end, ended in ((viewer, node), (node, viewer)):
            reasons = {event["why"] for event in _layers(end, ended) if event["to"] == "off"}
            t.expect(reasons == {"rank"}, f"{end.name} with {ended.name}: {reasons}")
    at = viewer.send("watch", member=nodes[1].id, width=320, height=180, pin=True)
    viewer.wait("layer", 5, at, member=nodes[1].id, direction="in")


def _layers(node, other):
    """The changes of the camera's layer that a node sends to another one or receives from it."""
    return node.all("layer", member=other.id, stream="camera")


def _received(node, other):
    """The layer that a node receives of another one's camera."""
    return (_layers(node, other) or [{"to": "off"}])[-1]["to"]


@check(needs="namespaces")
def a_mesh_is_measured(t):
    done = subprocess.run(
        [t.built("muster-lab"), "bench", "mesh", "--nodes", "3", "--for", "3", "--video", "test:320x180@15",
         "--large", "320x180", "--small", "160x90", "--json"],
        stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=120)
    t.require(done.returncode == 0, f"it exits with {done.returncode}: {done.stderr[-300:]}")
    measured = json.loads(done.stdout)
    t.expect([node["name"] for node in measured["nodes"]] == ["n1", "n2", "n3"], done.stdout)
    t.expect(all(node["frames"] > 0 and node["cores"] > 0 for node in measured["nodes"]),
             done.stdout)
    t.expect([node["latencyMsP95"] is None for node in measured["nodes"]] == [True, True, False],
             done.stdout)
    t.expect("muster-audio" in measured["threads"], done.stdout)
    left = subprocess.run(["ip", "netns", "list"], capture_output=True, text=True).stdout
    t.expect("muster-" not in left, f"namespaces are left: {left}")

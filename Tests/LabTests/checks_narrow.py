"""Calls through links that carry less than their media's rate."""

from check import check
from meeting import both_directions
from scenario import Scenario

# UDP payload of a whole video packet in bytes, the most that a retransmission can take.
_LONGEST_PACKET = 1_200
_SECONDS = 15
# The rate in kbit/s, and the time after which the estimate has to be near to it.
_NARROW = 600
_SETTLING = 5
# A rate in kbit/s that audio alone would fill, and the time after which it no longer does.
_AUDIO_ONLY = 64
_AUDIO_SETTLING = 8
# The time after which an uplink that several receivers share has to be known.
_SHARING = 20


@check(needs=("namespaces", "ffmpeg"), measures=True)
def retransmissions_do_not_fill_a_narrow_link(t):
    lan = t.lan(2, faulty=True)
    pair = [t.node(name, host=host, video=t.footage.video, audio=t.footage.speech, record=True)
            for name, host in zip(("anna", "berta"), lan.hosts)]
    t.meet(*pair)
    for host in lan.hosts:
        host.impair(up={"rate": _NARROW, "delay": 20, "queue": 300})
    narrow = t.now()
    before = [one.peer_statistics(other)["in"] for one, other in both_directions(pair)]
    t.pause(_SECONDS)
    for (one, other), earlier in zip(both_directions(pair), before):
        received = one.peer_statistics(other)["in"]
        t.figure(f"{one.name} received", received["frames"] - earlier["frames"], "frames",
                 at_least=27 * _SECONDS)
        t.figure("audio lost since the call began", received["audioLostPercent"], "%",
                 at_most=0.5)
        t.figure("frozen", (received["frozenMs"] - earlier["frozenMs"]) / 1000, "s")
        seconds = _sent_by_second(one, narrow)
        sent = sum(total for total, _ in seconds) / len(seconds)
        t.figure("sent", sent, "kbit/s")
        most = max(total / max(total - again, 1) for total, again in seconds)
        t.figure("most in a second", most, "times the media's rate", at_most=1.5)
        estimates = _estimates(one, other, narrow + _SETTLING)
        t.figure("lowest estimate", min(estimates), "kbit/s", at_least=0.6 * _NARROW)
        t.figure("highest estimate", max(estimates), "kbit/s", at_most=1.25 * _NARROW)


@check(needs=("namespaces", "ffmpeg"), measures=True)
def audio_is_complete_where_nothing_else_has_room(t):
    lan = t.lan(2, faulty=True)
    for host in lan.hosts:
        host.impair(up={"rate": _AUDIO_ONLY, "delay": 20, "queue": 300})
    pair = [t.node(name, host=host, video="test:640x360@30", audio=t.footage.speech, record=True)
            for name, host in zip(("anna", "berta"), lan.hosts)]
    for one in pair:
        one.wait("stats", where=lambda event: any(peer["in"] for peer in event["peers"]))
    t.pause(_AUDIO_SETTLING)
    settled = t.now()
    before = [_audio(one) for one in pair]
    t.pause(_SECONDS)
    for one, (frames, lost) in zip(pair, before):
        now = _audio(one)
        t.figure(f"{one.name} got", (now[0] - frames) / _SECONDS, "frames of audio a second",
                 at_least=45)
        t.figure("lost", now[1] - lost, "frames", at_most=1)
        seconds = _sent_by_second(one, settled)
        t.figure("sent", sum(total for total, _ in seconds) / len(seconds), "kbit/s",
                 at_most=0.8 * _AUDIO_ONLY)


@check(needs=("namespaces", "ffmpeg"), measures=True)
def two_receivers_share_a_narrow_uplink(t):
    _share(t, 500, 2, frames=0.5, others=())


@check(needs=("namespaces", "ffmpeg"), measures=True)
def eight_receivers_share_a_narrow_uplink(t):
    _share(t, 3_000, 8, frames=0.4, others=("--max-video", "320x180"))


@check(needs=("namespaces", "ffmpeg"), measures=True)
def sixteen_receivers_share_an_uplink_for_their_audio(t):
    _share(t, 1_500, 16, frames=0.005, others=())


def _share(t, rate, count, frames, others):
    """Lets receivers share an uplink of this rate; each gets all audio, and this share of the
    frames. The first one requests the largest layer, the others what `others` say."""
    lan = t.lan(count + 1, faulty=True)
    lan.hosts[0].impair(up={"rate": rate, "delay": 20, "queue": 300})
    sender = t.node("anna", host=lan.hosts[0], video=t.footage.video, audio=t.footage.speech)
    receivers = [
        t.node(f"node{number}", *(others if number > 1 else ()), host=lan.hosts[number],
               video="none", audio="none", record=True) for number in range(1, count + 1)]
    for receiver in receivers:
        receiver.wait("stats", 30, where=lambda event: any(peer["in"] for peer in event["peers"]))
    t.pause(_SHARING)
    lan.measure()
    before = [_received(one, sender) for one in receivers]
    t.pause(_SECONDS)
    passed = lan.measured()
    after = [_received(one, sender) for one in receivers]
    used = sum(flow["kbps"] for (source, _), flow in passed.items() if source == 0)
    t.figure("used", used / rate, "of the uplink", at_least=0.8, at_most=1.02)
    t.figure("known of it", sender.all("stats")[-1]["node"]["uplinkLimitKbps"] / rate, "of it",
             at_least=0.7, at_most=1.4)
    rows = []
    for (heard, lost, frames_before, _), (heard_now, lost_now, frames_now, now) in zip(
            before, after):
        rows.append((
            (heard_now - heard) / _SECONDS, lost_now - lost,
            (frames_now - frames_before) / _SECONDS, now["layer"], now["why"]))
    heard, lost, shown, _, _ = zip(*rows)
    t.figure("least audio", min(heard), "frames a second", at_least=45)
    t.figure("most lost", max(lost), "frames of audio", at_most=50 * _SECONDS * 0.01)
    t.figure("least video", min(shown), "frames a second", at_least=30 * frames)
    t.table(("audio", "lost", "video", "layer", "reason"),
            [(f"{row[0]:.1f}", str(row[1]), f"{row[2]:.1f}", *row[3:]) for row in rows])


@check(needs=("namespaces", "ffmpeg"), measures=True)
def scenarios_are_alike_in_the_model_and_by_processes(t):
    if not t.is_long:
        t.skip("takes four minutes: --long runs it")
    rows = []
    for name in ("narrow-600", "narrow-250", "three-receivers", "random-loss-10"):
        scenario = Scenario(t.built("muster-lab"), name)
        model, measured = scenario.model(), scenario.run(t)
        for (sender, receiver), real in measured.items():
            flow = model[sender, receiver]
            rows.append((
                name, f"{sender} > {receiver}", f"{flow['kbps']:.0f} / {real['kbps']:.0f}",
                f"{flow['queueMsMedian']:.0f} / {real['queueMsMedian']:.0f}",
                f"{flow['queueMsP95']:.0f} / {real['queueMsP95']:.0f}",
                f"{flow['video']['frames']} / {real['frames']}",
                f"{flow['audioLostPercent']:.1f} / {real['audioLostPercent']:.1f}"))
            # Without a bottleneck the rate depends on the picture.
            if flow["availableKbps"] is not None:
                t.figure(f"{name}, {receiver}: rate by rate of the model",
                         real["kbps"] / flow["kbps"], at_least=0.7, at_most=1.4)
    t.table(("scenario", "flow", "kbit/s, model / real", "queue p50, ms", "queue p95, ms",
             "frames", "audio lost, %"), rows)


def _audio(node):
    """Frames of audio that were received, and lost."""
    counters = node.all("stats")[-1]["counters"]
    return counters.get("audio.received", 0), counters.get("audio.lost", 0)


def _received(node, sender):
    """Frames of audio that a node without other senders had received, and lost, frames of video,
    and the latest statistics of what it receives."""
    peers = node.all("stats")[-1]["peers"]
    latest = next(peer["in"] for peer in peers if peer["member"] == sender.id)
    return *_audio(node), latest["frames"], latest


def _estimates(node, other, since):
    """The node's estimates of the path to another in kbit/s."""
    return [peer["estimateKbps"] for event in node.all("stats", since)
            for peer in event["peers"] if peer["member"] == other.id]


def _sent_by_second(node, since):
    """(kbit/s in all, kbit/s of retransmissions) of each second, in UDP payload."""
    events = node.all("stats", since)
    again = [event["counters"].get("video.packetsRepeated", 0) for event in events]
    return [(event["node"]["uplinkKbps"], (now - earlier) * _LONGEST_PACKET * 8 / 1000)
            for event, earlier, now in zip(events[1:], again, again[1:])]

"""Media quality: recordings compared with the footage and speech that was sent."""

import os
import subprocess

from check import check
from media import (
    Ivf, Likeness, complaints, correlation, duration, ffmpeg, luma_of, onsets, read_pattern, rms,
    samples)


@check(needs="ffmpeg", measures=True)
def real_footage_and_speech_arrive_whole_and_alike(t):
    media = {"video": t.footage.video, "audio": t.footage.speech}
    first = t.node("anna", "--video-bitrate", "1000", **media)
    first.ready()
    second = t.node("berta", "--video-bitrate", "1000", record=True, **media)
    ready = second.ready()["at"]
    t.figure("footage", "real" if t.footage.is_real else "generated")
    t.figure("first frame", t.meet(first, second) - ready, "s", at_most=0.5)
    t.pause(20 if t.is_long else 8)
    reported = second.peer_statistics(first)
    t.figure("frames lost", reported["in"]["framesLost"], at_most=0)
    t.figure("cpu", reported["node"]["cpu"], "cores")
    t.figure("memory", reported["node"]["rssMB"], "MB", at_most=80)
    second.send("quit")
    t.expect(second.ended(3) == 0, "it does not end well")
    _judge_video(t, second.recording(first, "ivf"))
    _judge_audio(t, second.recording(first, "wav"), 0.9)


def _judge_video(t, path):
    t.expect(not (said := complaints(path)), f"ffmpeg says of the recording: {said[:200]}")
    ivf = Ivf(path).from_first(*t.footage.size)
    whole = 100 * len(ivf.frames) / (ivf.span * t.footage.rate + 1)
    t.figure("delivered", whole, "% of frames", at_least=99.5)
    part = os.path.join(t.folder, "part.ivf")
    ivf.save(part)
    likeness = Likeness(t.footage)
    seen = likeness.of(ivf, part)
    t.figure("at", ivf.kilobits_per_second, "kbit/s")
    t.figure("luma PSNR", seen, "dB", at_least=30)
    alone = _libvpx_alone(t, ivf, likeness)
    t.figure("below libvpx alone", alone - seen, "dB", at_most=0.5)


def _libvpx_alone(t, ivf, likeness):
    """PSNR of the same footage encoded by ffmpeg's libvpx with real-time settings."""
    rate = round(ivf.kilobits_per_second)
    path = os.path.join(t.folder, "alone.ivf")
    shares = ",".join(str(round(rate * share)) for share in (0.4, 0.6, 1))
    ffmpeg("-v", "error", "-stream_loop", "-1", "-i", t.footage.video, "-t", f"{ivf.span:.2f}",
           "-c:v", "libvpx", "-deadline", "realtime", "-cpu-used", "-8", "-b:v", f"{rate}k",
           "-minrate", f"{rate}k", "-maxrate", f"{rate}k", "-bufsize", f"{rate}k",
           "-lag-in-frames", "0", "-error-resilient", "1", "-g", "3000", "-threads", "1",
           "-static-thresh", "1", "-noise-sensitivity", "0", "-undershoot-pct", "100",
           "-ts-parameters", f"ts_number_layers=3:ts_target_bitrate={shares}:"
           "ts_rate_decimator=4,2,1:ts_periodicity=4:ts_layer_id=0,2,1,2:ts_layering_mode=3",
           path)
    reference = Ivf(path)
    t.figure("alone at", reference.kilobits_per_second, "kbit/s")
    result = likeness.of(reference, path)
    t.figure("alone", result, "dB")
    return result


def _judge_audio(t, path, least):
    recorded = samples(path)
    t.figure("sound", duration(path), "s")
    t.figure("loudness", rms(recorded), at_least=100)
    t.figure("likeness", correlation(recorded, samples(t.footage.speech)), at_least=least)


@check(needs=("namespaces", "ffmpeg"), measures=True)
def five_percent_loss_freezes_nobody_and_breaks_no_frame(t):
    lan = t.lan(2, faulty=True)
    for host in lan.hosts:
        host.impair(up={"delay": 20, "loss": 5})
    media = {"video": t.footage.video, "audio": t.footage.speech}
    first = t.node("anna", "--video-bitrate", "1000", host=lan.hosts[0], **media)
    first.ready()
    second = t.node("berta", "--video-bitrate", "1000", host=lan.hosts[1], record=True, **media)
    ready = second.ready()["at"]
    # Each handshake message may be lost, and is retried after 250 ms.
    t.figure("first frame", t.meet(first, second) - ready, "s", at_most=3)
    t.pause(30 if t.is_long else 12)
    reported = second.peer_statistics(first)
    t.figure("freezes", reported["in"]["freezes"])
    # 1 % of the long run; in the short run a single freeze exceeds 1 %.
    t.figure("frozen", reported["in"]["frozenMs"], "ms", at_most=300)
    t.figure("sound lost after repair", reported["in"]["audioLostPercent"], "%", at_most=1)
    t.figure("round trip", reported["rttMs"] or 0.0, "ms")
    t.expect(not second.all("link.down"), "the link went down")
    second.send("quit")
    second.ended(3)
    path = second.recording(first, "ivf")
    t.expect(not (said := complaints(path)), f"broken pictures: {said[:200]}")
    ivf = Ivf(path)
    t.figure("longest gap", max(ivf.gaps) * 1000, "ms", at_most=500)
    frozen = sum(gap for gap in ivf.gaps if gap > 0.2) + 0.0
    t.figure("still", 100 * frozen / ivf.span, "% of the time", at_most=1)
    t.figure("frames", 100 * len(ivf.frames) / (ivf.span * t.footage.rate + 1), "%")
    _judge_audio(t, second.recording(first, "wav"), 0.8)


@check(needs=("namespaces", "ffmpeg"), measures=True)
def jitter_duplicates_and_reordering_break_no_frame(t):
    lan = t.lan(2, faulty=True)
    for host in lan.hosts:
        host.impair(up={"delay": 25, "jitter": 20, "duplicate": 10, "reorder": 3})
    first = t.node("anna", host=lan.hosts[0], video="test:320x180@30")
    first.ready()
    second = t.node("berta", host=lan.hosts[1], record=True)
    t.meet(first, second)
    t.pause(8 if t.is_long else 5)
    reported = second.peer_statistics(first)
    t.figure("frames lost", reported["in"]["framesLost"], at_most=1)
    t.figure("sound lost", reported["in"]["audioLostPercent"], "%", at_most=3)
    second.send("quit")
    second.ended(3)
    path = second.recording(first, "ivf")
    t.expect(not (said := complaints(path)), f"broken pictures: {said[:200]}")
    ivf = Ivf(path)
    t.figure("longest gap", max(ivf.gaps) * 1000, "ms", at_most=200)
    times = ivf.times
    t.expect(times == sorted(set(times)), "times of the recording do not grow")


@check(needs="ffmpeg", measures=True)
def video_and_audio_of_a_recording_are_in_sync(t):
    first = t.node("anna", video="test:320x180@30")
    first.ready()
    second = t.node("berta", record=True)
    t.meet(first, second)
    t.pause(10 if t.is_long else 5)
    second.send("quit")
    second.ended(3)
    path = second.recording(first, "ivf")
    ivf = Ivf(path).from_first(320, 180)
    part = os.path.join(t.folder, "part.ivf")
    ivf.save(part)
    seen = [read_pattern(luma, 320, 180) for luma in luma_of(part, 320 * 180)]
    t.require(seen and all(seen), f"{seen.count(None)} of {len(seen)} patterns cannot be read")
    numbers = [number for number, _ in seen]
    t.figure("pictures", len(numbers), at_least=120)
    t.figure("missing", numbers[-1] - numbers[0] + 1 - len(set(numbers)), at_most=0)
    t.expect(numbers == sorted(set(numbers)), "pictures are repeated or out of order")
    # The offset of the recording's clock from the sender's: by the frames' capture times...
    lags = sorted(at - captured for at, (_, captured) in zip(ivf.times, seen))
    pictures = lags[len(lags) // 2]
    t.figure("times within", (lags[-1] - lags[0]) * 1000, "ms", at_most=20)
    # ...and by the tone, which gets louder at every full second.
    swells = onsets(second.recording(first, "wav"))
    t.figure("swells", len(swells), at_least=4)
    apart = [(at - pictures + 0.5) % 1 - 0.5 for at in swells]
    t.figure("lips off by", max(map(abs, apart)) * 1000, "ms", at_most=50)


@check(needs="ffmpeg", measures=True)
def video_comes_from_ivf_files_and_fifos_too(t):
    clip = os.path.join(t.folder, "clip.ivf")
    ffmpeg("-v", "error", "-f", "lavfi", "-i", "testsrc2=size=320x240:rate=20", "-t", "3",
           "-c:v", "libvpx", "-b:v", "300k", "-deadline", "realtime", clip)
    fifo = os.path.join(t.folder, "pipe.y4m")
    os.mkfifo(fifo)
    writer = subprocess.Popen(
        ["ffmpeg", "-nostdin", "-v", "quiet", "-y", "-re", "-f", "lavfi", "-i",
         "testsrc2=size=176x144:rate=15", "-pix_fmt", "yuv420p", "-f", "yuv4mpegpipe", fifo])
    t.later(writer.wait)
    t.later(writer.terminate)
    heard = os.path.join(t.folder, "heard.wav")
    first = t.node("anna", video=clip, speaker=heard)
    second = t.node("berta", video=fifo, speaker=os.path.join(t.folder, "other.wav"))
    t.meet(first, second)
    frame = second.first_frame(first)
    t.figure("file", f"{frame['width']}x{frame['height']}")
    t.expect((frame["width"], frame["height"]) in ((320, 240), (160, 120)), "another size")
    frame = first.first_frame(second)
    t.expect((frame["width"], frame["height"]) == (176, 144), "another size from the FIFO")
    t.pause(4)  # longer than the file, so that it has begun again
    before = [second.peer_statistics(first), first.peer_statistics(second)]
    t.pause(1)
    after = [second.peer_statistics(first), first.peer_statistics(second)]
    for what, one, other, least in zip(("file", "FIFO"), before, after, (16, 11)):
        rate = (other["in"]["frames"] - one["in"]["frames"]) / (other["at"] - one["at"])
        t.figure(f"of the {what}", rate, "frames/s", at_least=least)
    for node in (first, second):
        node.send("quit")
        node.ended(3)
    t.figure("loudness of --speaker", rms(samples(heard)), at_least=100)


@check(needs="ffmpeg", measures=True)
def two_streams_of_one_node_arrive_apart(t):
    first = t.node("anna", "--share", "test:640x360@15", video="test:640x360@30")
    first.ready()
    second = t.node("berta", record=True)
    second.ready()
    camera = second.wait("media.first-frame", 20, member=first.id, stream="camera")
    screen = second.wait("media.first-frame", 20, member=first.id, stream="screen")
    t.expect((camera["width"], camera["height"]) == (640, 360), f"the camera is {camera}")
    t.expect((screen["width"], screen["height"]) == (640, 360), f"the screen is {screen}")
    t.expect(second.id not in first.roster() or first.first_frame(second)["stream"] == "camera",
             "the other's only stream is not its camera")
    t.pause(3)
    # One stream smaller, the other as it was.
    at = second.send("watch", member=first.id, stream="screen", width=320, height=180)
    change = second.wait("layer", 5, at, member=first.id, stream="screen", direction="in")
    t.expect(change["to"] == "320x180@15", f"the screen changes to {change['to']}")
    t.expect(change["why"] == "receiver-request", f"because of {change['why']}")
    t.pause(2)
    told = second.peer_statistics(first)
    t.expect(told["in"]["layer"] == "640x360@30", f"the camera is at {told['in']['layer']}")
    t.expect([one["stream"] for one in told["streams"]] == ["screen"], f"{told['streams']}")
    t.expect(told["streams"][0]["in"]["layer"] == "320x180@15", f"{told['streams'][0]}")
    at = second.send("watch", member=first.id, stream="camera", off=True)
    change = second.wait("layer", 5, at, member=first.id, stream="camera", direction="in")
    t.expect((change["to"], change["why"]) == ("off", "receiver-request"), f"{change}")
    t.expect(second.peer_statistics(first)["in"]["layer"] == "off", "the camera is not off")
    second.send("quit")
    t.expect(second.ended(3) == 0, "it does not end well")
    for stream, least in ((None, 60), ("screen", 40)):
        path = second.recording(first, "ivf", stream)
        t.expect(not (said := complaints(path)), f"ffmpeg says of {path}: {said[:200]}")
        t.figure(f"frames of {stream or 'camera'}", len(Ivf(path).frames), at_least=least)


@check()
def a_node_enters_muted(t):
    first = t.node("anna", "--muted", "both", "--share", "test:320x180@15")
    first.ready()
    second = t.node("berta")
    screen = second.wait("media.first-frame", 20, member=first.id)
    t.expect(screen["stream"] == "screen", f"the first frame is of {screen['stream']}")
    joined = second.wait("member.joined", 5, member=first.id)
    t.expect(joined["audioMuted"] and joined["videoMuted"], f"not muted: {joined}")
    at = first.send("unmute", media="video")
    change = second.wait("layer", 5, at, member=first.id, stream="camera", direction="in")
    t.expect(change["from"] == "off", f"the camera comes from {change['from']}")

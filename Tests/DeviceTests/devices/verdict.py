"""Evaluates the events and recordings of the nodes in the virtual machine."""

import glob
import json
import math
import os
import subprocess
import sys
import wave

from verdicts import Verdicts

found = Verdicts(sys.argv[1])
out, say, text, of = found.out, found.say, found.text, found.of


def share_of_tone(path, frequency):
    """The share of a recording's energy within 4 Hz of a frequency, in its best second."""
    with wave.open(path) as sound:
        rate = sound.getframerate()
        data = sound.readframes(sound.getnframes())
    samples = [
        int.from_bytes(data[place : place + 2], "little", signed=True)
        for place in range(0, len(data) - 1, 2)
    ]
    best = 0.0
    for start in range(rate, max(rate + 1, len(samples) - rate), 4 * rate):
        part = samples[start : start + rate]
        energy = sum(value * value for value in part)
        if energy < len(part) * 100:
            continue
        power = sum(goertzel(part, near, rate) for near in range(frequency - 4, frequency + 5))
        best = max(best, 2 * power / (energy * len(part)))
    return best


def goertzel(samples, frequency, rate):
    """The squared amplitude of one frequency."""
    turn = 2 * math.cos(2 * math.pi * frequency / rate)
    one = two = 0.0
    for value in samples:
        one, two = value + turn * one - two, one
    return one * one + two * two - turn * one * two


try:
    devices = json.loads(text("devices.json"))
except ValueError:
    devices = {"cameras": [], "sound": []}
say(
    "devices lists the cameras with what they deliver, and the sound card",
    len(devices["cameras"]) == 2
    and all(camera["modes"] for camera in devices["cameras"])
    and any("Loopback" in device["name"] for device in devices["sound"]),
    f"{len(devices['cameras'])} cameras, {len(devices['sound'])} sound devices",
)

line = text("absent.err").strip().splitlines()
say(
    "a camera that is not there is one clear line",
    text("absent.code").strip() == "1" and len(line) == 1 and line[0].startswith("muster: "),
    "; ".join(line[:2]),
)

listener = next((event["id"] for event in of("listener", "ready")), "?")
first = [event for event in of("recorder", "media.first-frame") if event["member"] == listener]
say("pictures of the real camera driver come through the call", bool(first))

videos = glob.glob(os.path.join(out, "record", "listener-*.ivf"))
if videos:
    probe = subprocess.run(
        ["ffmpeg", "-v", "error", "-i", videos[0], "-vf", "signalstats,metadata=print:file=-",
         "-f", "null", "-"], capture_output=True, text=True)
    # Timestamp warnings of ffmpeg's null muxer are not about the frames.
    faults = [row for row in probe.stderr.splitlines() if row and not row.startswith("[null @")]
    ranges = {}
    for row in probe.stdout.splitlines():
        if "signalstats.YMIN=" in row or "signalstats.YMAX=" in row:
            key, value = row.strip().split("=")
            ranges.setdefault(key[-4:], []).append(float(value))
    frames = len(ranges.get("YMAX", []))
    spread = max((high - low for low, high in zip(ranges.get("YMIN", []), ranges.get("YMAX", []))), default=0)
    say(
        "the recorded pictures decode without an error and show something",
        probe.returncode == 0 and not faults and frames >= 5 and spread > 100,
        f"{frames} pictures, luma spread {spread:.0f}{' '.join([''] + faults[:1])}",
    )
else:
    say("the recorded pictures decode without an error and show something", False, "no recording")

sounds = glob.glob(os.path.join(out, "record", "listener-*.wav"))
share = share_of_tone(sounds[0], 440) if sounds else 0
# A busy emulator interrupts the tone again and again; in noise, one frequency has a few thousandths
# of the energy.
say("a tone played by one ALSA device is captured by another", share > 0.1, f"share {share:.2f}")

warnings = of("listener", "warning", after=int(text("unplugged") or 0))
say(
    "a camera pulled in mid-call is said once, with what to do",
    len(warnings) == 1 and warnings[0]["hint"] != "",
    "; ".join(event["message"] for event in warnings),
)
last = max((event["t"] for event in of("listener", "stats")), default=0)
gone = warnings[0]["t"] if warnings else last
late = [event for event in of("recorder", "stats") if event["t"] > 0]
sound_after = [
    peer["in"]["kbps"]
    for event in late[-4:-1]
    for peer in event["peers"]
    if peer["member"] == listener and peer["in"]
]
say(
    "the node and its sound live on without the camera",
    last - gone >= 3 and any(rate > 5 for rate in sound_after),
    f"{last - gone:.1f} s more, {max(sound_after, default=0):.0f} kbit/s of sound",
)


def frames(events):
    return [peer["in"]["frames"] for event in events for peer in event["peers"]
            if peer["member"] == listener and peer["in"]]


back = frames(of("recorder", "stats", after=int(text("replugged") or 0)))
say(
    "a camera that is plugged in again is used again",
    len(back) > 0 and back[-1] - back[0] > 5,
    f"{back[-1] - back[0] if back else 0} pictures more",
)
found.end()

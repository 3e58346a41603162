"""Media for the checks: what the Python peer sends, and whether recordings show what was sent."""

import array
import math
import os
import subprocess
import threading
import wave

from peer.media.files import IVFFile

LAYERS = ((160, 90), (320, 180))   # of the camera, the smallest first
SCREEN = (480, 270)
RATE = 15
PEER_TONE, MUSTER_TONE = 440, 1000   # Hz
_SECONDS = 8
_SAMPLE_RATE = 48_000


class Footage:
    """Made by ffmpeg when first needed."""

    def __init__(self, folder):
        self._folder = folder
        self._making = threading.Lock()

    def arguments(self):
        """Options of a Python peer that sends video and audio."""
        self._make()
        videos = [part for path in self._videos for part in ("--video", path)]
        return [*videos, "--audio", self._path("tone.opus")]

    def share_arguments(self):
        """Options of a Python peer that sends a screen."""
        self._make()
        return ["--share", self._path("screen.ivf")]

    @property
    def muster_tone(self):
        """A WAV file for `muster` to send."""
        self._make()
        return self._path("tone.wav")

    def sent_frames(self):
        """All frames of the camera that the Python peer may send, of any layer."""
        return {frame for path in self._videos for frame in IVFFile(path).frames}

    def sent_screen_frames(self):
        return set(IVFFile(self._path("screen.ivf")).frames)

    @property
    def _videos(self):
        return [self._path(f"{width}x{height}.ivf") for width, height in LAYERS]

    def _path(self, name):
        return os.path.join(self._folder, name)

    def _make(self):
        with self._making:
            if os.path.exists(self._folder):
                return
            os.makedirs(self._folder)
            for size, path in zip(LAYERS, self._videos):
                _encode("testsrc2", size, path)
            _encode("testsrc", SCREEN, self._path("screen.ivf"))
            ffmpeg(*_sine(PEER_TONE), "-c:a", "libopus", "-b:a", "32k", "-vbr", "off",
                   "-application", "voip", "-frame_duration", "20", "-fec", "1",
                   "-packet_loss", "10", self._path("tone.opus"))
            ffmpeg(*_sine(MUSTER_TONE), self._path("tone.wav"))


def _encode(source, size, path):
    """Only the first frame is a keyframe. One thread: on a busy machine libvpx's threads wait for
    each other.
    """
    width, height = size
    ffmpeg("-f", "lavfi", "-i", f"{source}=size={width}x{height}:rate={RATE}:duration={_SECONDS}",
           "-c:v", "libvpx", "-threads", "1", "-b:v", f"{width}k",
           "-deadline", "realtime", "-cpu-used", "16", "-auto-alt-ref", "0",
           "-lag-in-frames", "0", "-g", "9999", path)


def _sine(frequency):
    source = f"sine=frequency={frequency}:sample_rate={_SAMPLE_RATE}:duration={_SECONDS}"
    return "-f", "lavfi", "-i", source, "-ac", "1"


def ffmpeg(*arguments):
    subprocess.run(["ffmpeg", "-v", "error", "-nostdin", "-y", *arguments], check=True, timeout=60)


def decoded_frames(path):
    """(number of frames of a video file that decode, the decoder's errors)"""
    done = subprocess.run(
        ["ffprobe", "-v", "error", "-count_frames", "-select_streams", "v:0", "-show_entries",
         "stream=nb_read_frames", "-of", "csv=p=0", path],
        capture_output=True, text=True, timeout=60)
    return int(done.stdout.strip().strip(",") or 0), done.stderr.strip()


def samples(path):
    """The samples of an audio file as 16-bit numbers, 48 kHz mono."""
    wav = path + ".decoded.wav"
    ffmpeg("-i", path, "-ar", str(_SAMPLE_RATE), "-ac", "1", "-c:a", "pcm_s16le", wav)
    with wave.open(wav, "rb") as file:
        return array.array("h", file.readframes(file.getnframes()))


def tone_share(values, frequency, seconds=0.5):
    """The part of the energy around the middle that is at this frequency (Goertzel), 0 to 1."""
    count = int(_SAMPLE_RATE * seconds)
    middle = max(0, len(values) // 2 - count // 2)
    window = values[middle:middle + count]
    energy = sum(value * value for value in window)
    if len(window) < count or energy == 0:
        return 0.0
    step = 2 * math.cos(2 * math.pi * frequency / _SAMPLE_RATE)
    before = earlier = 0.0
    for value in window:
        before, earlier = value + step * before - earlier, before
    power = before * before + earlier * earlier - step * before * earlier
    return 2 * power / (count * energy)

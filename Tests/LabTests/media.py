"""Footage to send, and measures of recordings: frames, gaps, similarity."""

import itertools
import math
import os
import struct
import subprocess
import threading
import wave
from array import array
from operator import mul

try:
    import numpy
except ImportError:
    numpy = None

from node import Unexpected

_here = os.path.dirname(os.path.abspath(__file__))
_repository = os.path.dirname(os.path.dirname(_here))


def ffmpeg(*arguments):
    """Runs ffmpeg and returns its standard error; raises if it fails."""
    command = ["ffmpeg", "-nostdin", "-hide_banner", "-y", *map(str, arguments)]
    done = subprocess.run(command, capture_output=True, text=True, errors="replace")
    if done.returncode != 0:
        raise Unexpected(f"{' '.join(command)}: {done.stderr.strip()[-300:]}")
    return done.stderr


def complaints(path):
    """ffmpeg's errors when it decodes a recording; empty if it plays."""
    # In the recording's time base: rounded to whole frames, two that a busy camera delivered close
    # together would share a timestamp, which ffmpeg reports.
    return ffmpeg("-v", "error", "-i", path, "-enc_time_base", "-1", "-f", "null", "-").strip()


class Footage:
    """Video of people and their speech, created once per run."""

    size = (640, 360)
    rate = 30
    # Played forwards and backwards, so that it loops without a cut.
    forwards = 150

    def __init__(self, folder):
        self._folder = folder
        self._made = {}
        self._making = threading.Lock()

    @property
    def is_real(self):
        return self._find("talk_foreman_cif.264") is not None

    @property
    def video(self):
        return self._once("talk.y4m", self._make_video)

    @property
    def speech(self):
        return self._once("speech.wav", self._make_speech)

    def _once(self, name, make):
        with self._making:
            if name not in self._made:
                os.makedirs(self._folder, exist_ok=True)
                path = os.path.join(self._folder, name)
                make(path)
                self._made[name] = path
            return self._made[name]

    def _find(self, name):
        for folder in (os.path.join(os.path.dirname(_repository), "shared", "media"),
                       os.path.join(_repository, "Tests", "Vectors", "media")):
            path = os.path.join(folder, name)
            if os.path.isfile(path):
                return path
        return None

    def _make_video(self, path):
        width, height = self.size
        clip = self._find("talk_foreman_cif.264")
        source = (["-r", self.rate, "-i", clip] if clip
                  else ["-f", "lavfi", "-i", f"testsrc2=size={width}x{height}:rate={self.rate}"])
        shape = (f"[0:v]scale={width}:{height}:force_original_aspect_ratio=increase:flags=bicubic,"
                 f"crop={width}:{height},trim=end_frame={self.forwards},split[a][b];"
                 f"[b]reverse,trim=start_frame=1:end_frame={self.forwards - 1}[r];"
                 f"[a][r]concat=n=2:v=1,setpts=N/{self.rate}/TB")
        ffmpeg("-v", "error", *source, "-an", "-filter_complex", shape, "-r", self.rate,
               "-pix_fmt", "yuv420p", "-f", "yuv4mpegpipe", path)

    def _make_speech(self, path):
        clip = self._find("speech_48k_mono.wav")
        # Without real speech: a synthetic voice whose syllables do not repeat within the file.
        pitch = "(2*PI*180*t+80*sin(2*PI*0.37*t)+25*sin(2*PI*1.13*t))"
        loud = "max(0,sin(2*PI*2.3*t)+sin(2*PI*3.1*t+1)+sin(2*PI*0.7*t))/3"
        voice = "+".join(f"{gain}*sin({overtone}*{pitch})" for overtone, gain in (
            (1, 0.2), (3, 0.2), (5, 0.1), (9, 0.05)))
        source = (["-i", clip] if clip
                  else ["-f", "lavfi", "-i", f"aevalsrc='({voice})*{loud}':s=48000:d=24"])
        ffmpeg("-v", "error", *source, "-ac", "1", "-ar", "48000", "-c:a", "pcm_s16le", path)


class Ivf:
    """An IVF recording; the frame count in its header may be stale if the writer was killed."""

    def __init__(self, path):
        with open(path, "rb") as file:
            data = file.read()
        if data[:4] != b"DKIF" or data[8:12] != b"VP80":
            raise Unexpected(f"{path} is no VP8 recording")
        length, = struct.unpack_from("<H", data, 6)
        rate, scale = struct.unpack_from("<II", data, 16)
        self.header = data[:length]
        self.tick = scale / rate
        self.frames = []
        while length + 12 <= len(data):
            size, pts = struct.unpack_from("<IQ", data, length)
            frame = data[length + 12:length + 12 + size]
            if len(frame) < size:
                break
            self.frames.append((pts, frame))
            length += 12 + size

    @property
    def times(self):
        """Frame times in seconds, by the file's time base."""
        return [pts * self.tick for pts, _ in self.frames]

    @property
    def span(self):
        times = self.times
        return times[-1] - times[0] if times else 0.0

    @property
    def gaps(self):
        times = self.times
        return [after - before for before, after in zip(times, times[1:])]

    @property
    def kilobits_per_second(self):
        return sum(len(frame) for _, frame in self.frames) * 8 / 1000 / max(self.span, 0.001)

    def from_first(self, width, height):
        """Keeps the part from the first keyframe of this size."""
        for index, (_, frame) in enumerate(self.frames):
            if keyframe_size(frame) == (width, height):
                self.frames = self.frames[index:]
                return self
        raise Unexpected(f"no keyframe of {width}x{height} in the recording")

    def save(self, path):
        with open(path, "wb") as file:
            file.write(self.header)
            for pts, frame in self.frames:
                file.write(struct.pack("<IQ", len(frame), pts) + frame)


def keyframe_size(frame):
    """The size of a keyframe (RFC 6386 section 9.1); None for other frames."""
    if len(frame) < 10 or frame[0] & 1 or frame[3:6] != b"\x9d\x01\x2a":
        return None
    width, height = struct.unpack_from("<HH", frame, 6)
    return width & 0x3FFF, height & 0x3FFF


def luma_of(path, size):
    """The luma plane of every frame; all must have this many pixels."""
    out = path + ".luma"
    ffmpeg("-v", "error", "-i", path, "-fps_mode", "passthrough", "-vf", "extractplanes=y",
           "-f", "rawvideo", "-pix_fmt", "gray", out)
    with open(out, "rb") as file:
        data = file.read()
    os.remove(out)
    return [data[at:at + size] for at in range(0, len(data) - size + 1, size)]


def read_pattern(luma, width, height):
    """The test pattern's frame number and capture time in seconds; None where unreadable.

    Of the 16 by 6 blocks in the top quarter, row by row: 32 bits of Gray code, 48 bits of 100 us,
    16 bits of checksum."""
    bits = 0
    for block in range(96):
        left, top = block % 16 * width / 16, block // 16 * height / 24
        x, y = int(left + width / 64), int(top + height / 96)
        spots = [luma[(y + down) * width + x + right]
                 for down in range(max(1, height // 48)) for right in range(width // 32)]
        bits = bits << 1 | (sum(spots) >= 128 * len(spots))
    check = 0xFFFF
    for byte in (bits >> 16).to_bytes(10, "big"):
        check ^= byte << 8
        for _ in range(8):
            check = (check << 1 ^ 0x1021 if check & 0x8000 else check << 1) & 0xFFFF
    if check != bits & 0xFFFF:
        return None
    number = bits >> 64
    for shift in (1, 2, 4, 8, 16):
        number ^= number >> shift
    return number, (bits >> 16 & (1 << 48) - 1) / 10_000


class Likeness:
    """Luma PSNR of a recording against the footage it was made from."""

    def __init__(self, footage):
        self.width, self.height = footage.size
        self.period = 2 * footage.forwards - 2
        self.rate = footage.rate
        self.source = luma_of(footage.video, self.width * self.height)

    def of(self, ivf, path):
        """PSNR in dB of the mean error, each frame against the footage's at its time."""
        frames = luma_of(path, self.width * self.height)
        # Without numpy a frame costs 50 ms, so every tenth is compared.
        step = 1 if numpy else 10
        indices = range(0, len(frames), step)
        times = ivf.times
        start = self._start(frames, times)
        errors = []
        for index in indices:
            due = start + round((times[index] - times[0]) * self.rate)
            near = [(due + shift) % self.period for shift in (-2, -1, 0, 1, 2)]
            best = min(near, key=lambda at: distance(frames[index], self.source[at], 41))
            start += (best - due + 3) % self.period - 3  # the clocks of the two may part slowly
            errors.append(distance(frames[index], self.source[best], 1))
        mean = sum(errors) / len(errors)
        return 10 * math.log10(255 * 255 / max(mean, 1e-9))

    def _start(self, frames, times):
        """The recording's start in the footage; several frames resolve the direction of play."""
        probes = [index for index in (0, 5, 10, 20, 40) if index < len(frames)]
        shifts = [round((times[index] - times[0]) * self.rate) for index in probes]
        return min(range(self.period), key=lambda at: sum(
            distance(frames[index], self.source[(at + shift) % self.period], 97)
            for index, shift in zip(probes, shifts)))


def distance(one, other, step):
    """Mean squared difference of every `step`th pixel."""
    one, other = one[::step], other[::step]
    if numpy is not None:
        one = numpy.frombuffer(one, numpy.uint8).astype(numpy.float32)
        other = numpy.frombuffer(other, numpy.uint8).astype(numpy.float32)
        return float(numpy.mean((one - other) ** 2))
    return sum((a - b) * (a - b) for a, b in zip(one, other)) / len(one)


# Audio

# Half the recorded rate. At 8 kHz a shift of half a sample would cost a tenth of the correlation.
AUDIO_RATE = 24_000
_COARSE = 3
_DECIMATION = 48000 // AUDIO_RATE


def samples(path):
    """A 48 kHz mono recording at half its rate, to the end of the file: its writer may be dead."""
    with open(path, "rb") as file:
        raw = file.read()
    at = raw.find(b"data")
    if raw[:4] != b"RIFF" or at < 0 or b"fmt " not in raw[:at]:
        raise Unexpected(f"{path} is no sound recording")
    layout = raw.find(b"fmt ") + 8
    kind, channels, rate = struct.unpack_from("<HHI", raw, layout)
    if (channels, rate) != (1, 48000) or kind not in (1, 0xFFFE):
        raise Unexpected(f"{path}: {channels} channels at {rate} Hz")
    body = raw[at + 8:]
    pcm = array("h")
    pcm.frombytes(body[:len(body) // 2 * 2])
    usable = len(pcm) // _DECIMATION * _DECIMATION
    if numpy is not None:
        all_of_it = numpy.asarray(pcm[:usable], dtype=numpy.float64)
        return all_of_it.reshape(-1, _DECIMATION).mean(axis=1).tolist()
    parts = [pcm[shift:usable:_DECIMATION] for shift in range(_DECIMATION)]
    return [sum(group) / _DECIMATION for group in zip(*parts)]


def onsets(path):
    """The times in seconds at which the tone of a recording gets louder."""
    step = AUDIO_RATE // 440 + 1  # a wave of the tone
    values = samples(path)
    levels = [max(map(abs, values[at:at + step])) for at in range(0, len(values) - step, step)]
    loud = 32767 * 0.29  # between the quiet tone and the swell
    found = [index * step / AUDIO_RATE for index in range(3, len(levels))
             if levels[index] >= loud > max(levels[index - 3:index])]
    # A gap within a loud phase does not split it.
    return [at for before, at in zip([-1.0, *found], found) if at - before > 0.5]


def duration(path):
    with wave.open(path) as file:
        return file.getnframes() / file.getframerate()


def rms(values):
    return math.sqrt(sum(map(mul, values, values)) / max(1, len(values)))


def correlation(recorded, source, segment_seconds=2.0):
    """The correlation of a recording with its looped source, 0 to 1: each segment at its best
    shift, weighted by energy, since a jitter buffer may shift audio by milliseconds.

    Only the band above 250 Hz counts: libopus shifts the phases below it in speech (its high-pass
    filter), which alone lowers the correlation of the whole band by 0.13."""
    recorded, source = _without_lows(recorded), _without_lows(source)
    looped = source + source
    start = _envelope_lag(recorded, source)
    length = int(segment_seconds * AUDIO_RATE)
    total = weight = 0.0
    for at in range(0, len(recorded) - length + 1, length):
        segment = recorded[at:at + length]
        energy = sum(map(mul, segment, segment))
        if energy / length < 100:
            continue  # a pause
        total += energy * _best(segment, looped, (start + at) % len(source))
        weight += energy
    return total / weight if weight else 0.0


def _without_lows(values, width=45, times=2):
    """A linear-phase high-pass filter: subtracts the moving average, twice."""
    for _ in range(times):
        sums = [0.0, *itertools.accumulate(values)]
        half = width // 2
        values = [value - (after - before) / width for value, before, after
                  in zip(values[half:], sums, sums[width:])]
    return values


def _envelope_lag(recorded, source):
    """The recording's start in the source, to 10 ms, from the loudness envelope."""
    step = AUDIO_RATE // 100
    one, other = _loudness(recorded, step), _loudness(source, step)
    other = other + other
    period = len(other) // 2
    one = one[:period]
    scores = [sum(map(mul, one, other[lag:lag + len(one)])) for lag in range(period)]
    return max(range(period), key=scores.__getitem__) * step


def _loudness(values, step):
    sums = [sum(map(abs, values[at:at + step])) for at in range(0, len(values) - step + 1, step)]
    mean = sum(sums) / max(1, len(sums))
    return [value - mean for value in sums]


def _best(segment, looped, around):
    """The best normalised correlation within 40 ms of an index: coarse, then to the sample."""
    reach = AUDIO_RATE // 25
    if around < 2 * reach:
        around += len(looped) // 2  # the same place, with sound before it
    # Averaging before decimation avoids aliasing.
    thin = _thinned(segment)
    place = around - reach
    rough = _thinned(looped[place:around + reach + len(segment)])
    _, lag = _peak(thin, rough, range(len(rough) - len(thin) + 1))
    place += lag * _COARSE - 2 * _COARSE
    return _peak(segment, looped[place:place + 4 * _COARSE + len(segment)],
                 range(4 * _COARSE + 1))[0]


def _thinned(values):
    whole = len(values) // _COARSE * _COARSE
    return [sum(group) for group in zip(*(values[at:whole:_COARSE] for at in range(_COARSE)))]


def _peak(segment, window, lags):
    """The highest normalised correlation, and its lag."""
    own = math.sqrt(sum(map(mul, segment, segment)))
    squares = [0.0, *itertools.accumulate(map(mul, window, window))]
    length = len(segment)

    def likeness(lag):
        energy = squares[min(lag + length, len(window))] - squares[lag]
        return sum(map(mul, segment, window[lag:lag + length])) / (own * math.sqrt(energy) + 1e-9)

    return max((likeness(lag), lag) for lag in lags)

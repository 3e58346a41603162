"""Sources of a peer: encoded files in place of a camera and a microphone.

Section 13 lists the duties of a sender. With files, "make a keyframe" is "restart the file": its
first frame is a keyframe, and no other frame of it is one.
"""

import random
import time

from ..presence import Layer
from .files import IVFFile, read_opus
from .vp8 import Descriptor, is_keyframe, packetize

_KEYFRAME_INTERVAL = 0.3  # at most one keyframe of a layer on request in so many seconds
AUDIO_INTERVAL = 0.02
AUDIO_SAMPLES = 960
AUDIO_LEVEL = 15  # -dBov; that of the tone that the tests send


class EncodedLayer:
    """One layer of the video: its frames, and the counters of its payload descriptor."""

    def __init__(self, path):
        file = IVFFile(path)
        self.layer = Layer(file.width, file.height, file.rate)
        self._frames = file.frames
        self._next = 0
        self._picture_id = random.getrandbits(15)
        self._tl0_index = random.getrandbits(8)
        self._key_index = random.getrandbits(5)
        self._wants_keyframe = True
        self._keyframe_at = float("-inf")

    def request_keyframe(self):
        self._wants_keyframe = True

    def next_frame(self):
        """(payloads, whether it is a keyframe) of the next frame."""
        now = time.monotonic()
        if self._wants_keyframe and now - self._keyframe_at >= _KEYFRAME_INTERVAL:
            self._next = 0
        frame = self._frames[self._next]
        self._next = (self._next + 1) % len(self._frames)
        self._picture_id += 1
        self._tl0_index += 1
        if is_keyframe(frame):
            self._key_index += 1
            self._wants_keyframe = False
            self._keyframe_at = now
        descriptor = Descriptor(True, self._picture_id, self._tl0_index, key_index=self._key_index)
        return packetize(frame, descriptor), is_keyframe(frame)


class VideoSource:
    """The layers of one video stream, the smallest first."""

    def __init__(self, paths):
        self.layers = [EncodedLayer(path) for path in paths]
        self.interval = 1 / max((one.layer.rate for one in self.layers), default=15)

    @property
    def announced(self):
        return tuple(one.layer for one in self.layers)


class AudioSource:
    """Opus packets of 20 ms, in a loop."""

    def __init__(self, path):
        self._packets = read_opus(path)
        self._next = 0

    def next_packet(self):
        packet = self._packets[self._next]
        self._next = (self._next + 1) % len(self._packets)
        return packet

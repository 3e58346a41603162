"""The media of one node: its sources, the clock that drives them, and a session for each link."""

import os
import time

from ..presence import Flag
from ..subscription import BEST
from . import streams
from .sender import boot_clock
from .session import MediaSession
from .sources import AUDIO_INTERVAL, AUDIO_LEVEL, AUDIO_SAMPLES, AudioSource, VideoSource

_REPAIR_INTERVAL = 0.01


class LocalMedia:
    def __init__(self, node, videos, audio, folder):
        self._node, self._folder = node, folder
        self._video = {streams.CAMERA: VideoSource(videos)} if videos else {}
        self._audio = AudioSource(audio) if audio else None
        self._audio_timestamp = None
        self._requested = {streams.CAMERA: BEST}
        if folder:
            os.makedirs(folder, exist_ok=True)

    @property
    def flags(self):
        """What a presence says of these sources."""
        flags = Flag(0)
        if not self._video:
            flags |= Flag.VIDEO_MUTED
        return flags | (Flag.HAS_AUDIO if self._audio else Flag.AUDIO_MUTED)

    @property
    def layers(self):
        """What a presence says of the video streams."""
        return self._video[streams.CAMERA].announced if self._video else ()

    def start(self):
        loop = self._node.loop
        if self._audio:
            self._repeat(AUDIO_INTERVAL, self._send_audio)
        for stream, source in self._video.items():
            self._repeat(source.interval, lambda one=stream: self._send_video(one))
        loop.every(_REPAIR_INTERVAL, lambda: [one.repair() for one in self._sessions()])
        loop.every(1.0, self._report)

    def _repeat(self, interval, action):
        """Unlike `Loop.every` this does not drift: media has a rate to keep."""
        due = time.monotonic()

        def run():
            nonlocal due
            action()
            due = max(due + interval, time.monotonic() - 1)
            self._node.loop.after(due - time.monotonic(), run)
        run()

    # What it asks of the others

    def request(self, subscription, stream=streams.CAMERA):
        """Asks all senders for another resolution of a stream, from the next ping on."""
        self._requested[stream] = subscription

    @property
    def requested(self):
        """The subscriptions that are sent to each sender, again with each ping."""
        return list(self._requested.values())

    # Sessions

    def begin(self, link):
        def send(payload):
            self._node.links.send(link, payload)
        link.media = MediaSession(link, self._video, send, self._folder)

    def end(self, link):
        link.media.emit_figures()
        link.media.close()
        link.media = None

    def close(self):
        """Ends what is being received, so that its recordings are complete."""
        for session in self._sessions():
            self.end(session.link)

    def _sessions(self):
        return [link.media for link in self._node.links.all_up() if link.media]

    # The clock

    @property
    def _may_send(self):
        return self._node.rights.may_send(self._node.document, self._node.id)

    def _send_audio(self):
        captured = int((boot_clock() - AUDIO_INTERVAL) * streams.AUDIO_CLOCK)
        # Timestamps jump only if the process stood still for longer than `_repeat` makes up for.
        if self._audio_timestamp is None or captured - self._audio_timestamp > streams.AUDIO_CLOCK:
            self._audio_timestamp = captured
        packet = self._audio.next_packet()
        sessions = self._sessions() if self._may_send else []
        for session in sessions:
            session.audio_out.send(packet, self._audio_timestamp, level=AUDIO_LEVEL)
        self._audio_timestamp += AUDIO_SAMPLES

    def _send_video(self, stream):
        sessions = self._sessions() if self._may_send else []
        senders = [session.video_out[stream] for session in sessions]
        for sender in senders:
            sender.choose()
        timestamp = int(boot_clock() * streams.VIDEO_CLOCK)
        # Only what somebody gets is made, once for all who get it.
        for layer in sorted(set().union(*(sender.needed for sender in senders))):
            payloads, is_keyframe = self._video[stream].layers[layer].next_frame()
            for sender in senders:
                sender.offer(layer, payloads, is_keyframe, timestamp)

    def _report(self):
        for session in self._sessions():
            session.report(self._audio_timestamp)
            session.emit_figures()

"""The media of one node: its sources, the clock that drives them, and a session for each link."""

import os
import time

from ..control import Type
from ..presence import Flag, Stream
from ..subscription import BEST, Subscription
from . import streams
from .sender import media_clock
from .session import Member, MediaSession
from .sources import AUDIO_INTERVAL, AUDIO_LEVEL, AUDIO_SAMPLES, AudioSource, VideoSource

_REPAIR_INTERVAL = 0.01


class LocalMedia:
    """`videos` has the files of each video stream that this node offers, by its number."""

    def __init__(self, node, videos, audio, folder):
        self._node, self._folder = node, folder
        self._video = {stream: VideoSource(paths) for stream, paths in sorted(videos.items())}
        self._audio = AudioSource(audio) if audio else None
        self._audio_timestamp = None
        self._requested = dict.fromkeys(streams.VIDEO_STREAMS, BEST)
        if folder:
            os.makedirs(folder, exist_ok=True)

    @property
    def flags(self):
        """The flags of a presence with these sources."""
        flags = Flag(0) if streams.CAMERA in self._video else Flag.VIDEO_MUTED
        if streams.SCREEN in self._video:
            flags |= Flag.SHARING
        return flags | (Flag.HAS_AUDIO if self._audio else Flag.AUDIO_MUTED)

    @property
    def offered(self):
        """The video streams as a presence lists them."""
        return tuple(Stream(number, streams.NAMES[number], layers=source.announced)
                     for number, source in self._video.items())

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

    # Requests to other members

    def request(self, subscription):
        """Asks all senders for more or less of a stream, from the next ping on."""
        self._requested[subscription.stream] = subscription.request

    @property
    def requested(self):
        """The subscriptions that are sent to each sender, again with each ping."""
        return [Subscription(stream, one) for stream, one in self._requested.items()]

    # Sessions

    def begin(self, link):
        def send(payload):
            self._node.links.send(link, payload)

        def tell(sent):
            self._node.links.control(link, Type.SENT_LAYER, sent.encode())
        member = Member(link.peer, lambda: self._node.roster.members.get(link.peer))
        link.media = MediaSession(link, member, self._video, send, tell, self._folder,
                                  self._node.settings.lost_audio)

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

    def _receiving(self, stream=None):
        """The sessions to send to: none if this node's role does not let it."""
        may_send = self._node.rights.may_send(self._node.document, self._node.id, stream)
        return self._sessions() if may_send else []

    def _send_audio(self):
        captured = int((media_clock() - AUDIO_INTERVAL) * streams.AUDIO_CLOCK)
        # Timestamps jump only if the process stood still for longer than `_repeat` makes up for.
        if self._audio_timestamp is None or captured - self._audio_timestamp > streams.AUDIO_CLOCK:
            self._audio_timestamp = captured
        packet = self._audio.next_packet()
        for session in self._receiving():
            session.audio_out.send(packet, self._audio_timestamp, level=AUDIO_LEVEL)
        self._audio_timestamp += AUDIO_SAMPLES

    def _send_video(self, stream):
        senders = [session.video_out[stream] for session in self._receiving(stream)]
        for sender in senders:
            sender.choose()
        timestamp = int(media_clock() * streams.VIDEO_CLOCK)
        # A layer is encoded only if a receiver needs it, and once for all its receivers.
        for layer in sorted(set().union(*(sender.needed for sender in senders))):
            payloads, is_keyframe = self._video[stream].layers[layer].next_frame()
            for sender in senders:
                sender.offer(layer, payloads, is_keyframe, timestamp)

    def _report(self):
        for session in self._sessions():
            session.report(self._audio_timestamp)
            session.emit_figures()

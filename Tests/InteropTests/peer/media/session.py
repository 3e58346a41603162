"""Media with one participant over the link to it, both ways (section 13)."""

import os
import random
import re
import time

from ..budget import Budget
from ..events import emit, short
from ..reader import Malformed
from . import long_audio, redundancy, rtcp, streams
from .files import IVFWriter, OpusWriter
from .receiver import LayerReceiver
from .reception import Reception
from .rtp import RTPPacket, is_rtcp, timestamp_difference
from .sender import RTPSender, VideoSender
from .vp8 import dimensions

_ASSUMED_ROUND_TRIP = 0.1
_MOST_BLOCKS = 31
_RECENT_PACKETS = 8
_MOST_SSRCS = 16   # of each kind from one member


class Member:
    """The member whose media it is; `presence` is a function, since presences change."""

    def __init__(self, member_id, presence):
        self.id, self._presence = member_id, presence

    def stream_name(self, number):
        presence = self._presence()
        return presence.name_of(number) if presence else streams.name(number)

    def recording(self, folder, ending):
        """A path for a recording; the name comes from another node, and is made safe."""
        presence = self._presence()
        name = re.sub(r"[^A-Za-z0-9-]", "_", presence.name if presence else "")
        return os.path.join(folder, f"{name}-{short(self.id)}{ending}")


class IncomingVideo:
    """One video stream of a member: which of its layers is shown, and the recording."""

    def __init__(self, member, stream, folder):
        self.member, self.stream, self._folder = member, stream, folder
        self.shown = None          # the LayerReceiver whose frames are shown
        self.frames = self.keyframes = self.skipped = 0
        self.size = None
        self._last = None
        self._file = None

    def show(self, receiver, frame):
        """Takes a frame that can be decoded, of any layer."""
        if receiver is not self.shown and not self._may_change_to(frame):
            return
        if self._last and receiver is self.shown and frame.first != self._last.last + 1:
            self.skipped += 1
        self.shown, self._last = receiver, frame
        self.frames += 1
        if frame.is_keyframe:
            self._on_keyframe(frame)
        if self._file:
            self._file.write(frame.timestamp, frame.data)

    def _may_change_to(self, frame):
        """Switches at a keyframe of another layer that was not captured earlier."""
        return frame.is_keyframe and (
            self._last is None or timestamp_difference(frame.timestamp, self._last.timestamp) >= 0)

    @property
    def name(self):
        return self.member.stream_name(self.stream)

    def _on_keyframe(self, frame):
        self.keyframes += 1
        size = dimensions(frame.data)
        if size != self.size:
            if self.size is None:
                emit("media.first-frame", member=short(self.member.id), stream=self.name,
                     width=size[0], height=size[1])
            self.size = size
            emit("layer", member=short(self.member.id), stream=self.name, direction="in",
                 to=f"{size[0]}x{size[1]}")
        if self._folder and self._file is None:
            suffix = "" if self.stream == streams.CAMERA else f"-{self.name}"
            path = self.member.recording(self._folder, f"{suffix}.ivf")
            self._file = IVFWriter(path, *size)

    @property
    def figures(self):
        return {"frames": self.frames, "keyframes": self.keyframes, "framesSkipped": self.skipped,
                "size": "x".join(map(str, self.size or ()))}

    def close(self):
        if self._file:
            self._file.close()


class IncomingAudio:
    """The audio of a member: its packets in order, and the recording."""

    def __init__(self, member, folder):
        self.receptions = {}
        self.packets = self.copies = self.wrong_copies = 0
        self._recent = {}   # timestamp -> payload, of the last packets
        self.level = None
        self._file = folder and OpusWriter(member.recording(folder, ".opus"))

    def add(self, packet):
        if packet.ssrc not in self.receptions and len(self.receptions) >= _MOST_SSRCS:
            return
        reception = self.receptions.setdefault(
            packet.ssrc, Reception(packet.ssrc, streams.AUDIO_CLOCK))
        sequence = reception.extend(packet.sequence)
        is_late = reception.highest is not None and sequence <= reception.highest
        reception.count(sequence, packet.timestamp)
        if is_late:
            return  # the recording is in order, and knows no second chance
        payload = packet.payload
        if packet.payload_type == streams.REDUNDANT_AUDIO_PAYLOAD_TYPE:
            try:
                copies, payload = redundancy.decode(payload)
            except Malformed:
                return
            self.copies += len(copies)
            for offset, copy in copies:
                original = self._recent.get((packet.timestamp - offset) % (1 << 32), copy)
                self.wrong_copies += original != copy
        try:
            frames = long_audio.frames(payload)
        except Malformed:
            return
        self._recent[packet.timestamp] = payload
        if len(self._recent) > _RECENT_PACKETS:
            del self._recent[next(iter(self._recent))]
        self.packets += 1
        self.level = packet.level
        for frame in frames if self._file else ():
            self._file.write(frame)

    def close(self):
        if self._file:
            self._file.close()


class MediaSession:
    """Begins when both are in the call and their link is up; draws its SSRCs anew."""

    def __init__(self, link, member, sources, send, tell, folder, lost_audio):
        self.link = link
        self._lost_audio = lost_audio
        self._send = send
        self._base = random.getrandbits(32)
        self._video_in = {one: IncomingVideo(member, one, folder)
                          for one in streams.VIDEO_STREAMS}
        self._audio_in = IncomingAudio(member, folder)
        self._receivers = {}       # SSRC -> LayerReceiver
        self._keyframe_asked = {}  # SSRC -> [how often, when it may be asked for again]
        self.audio_out = RTPSender(streams.audio_ssrc(self._base), streams.AUDIO_PAYLOAD_TYPE,
                                   send, is_repaired=False)
        self.video_out = {one: VideoSender(one, source, self._base, send, tell)
                          for one, source in sources.items()}
        self._subscription_changes = {one: Budget(8, 2) for one in sources}
        self._said = {}            # stream -> the SentLayer that the member said last
        self.nacks = self.picture_losses = 0

    def close(self):
        for incoming in (*self._video_in.values(), self._audio_in):
            incoming.close()

    # Receiving

    def receive(self, payload, may_send):
        """RTP or RTCP of the member; RTP counts only if its role lets it send that stream.

        `may_send` is a function of the video stream, or of None for audio.
        """
        if is_rtcp(payload):
            for message in rtcp.decode_all(payload):
                self._on_rtcp(message)
            return
        packet = RTPPacket.decode(payload)
        if packet is None:
            return
        if packet.payload_type in streams.AUDIO_PAYLOAD_TYPES:
            if may_send(None) and random.random() >= self._lost_audio:
                self._audio_in.add(packet)
            return
        kind = streams.video_stream_and_layer(packet.payload_type)
        if kind is not None and may_send(kind[0]):
            self._on_video(packet, kind[0])

    def _on_video(self, packet, stream):
        receiver = self._receivers.get(packet.ssrc)
        if receiver is None:
            if len(self._receivers) >= _MOST_SSRCS:
                return
            receiver = self._receivers[packet.ssrc] = LayerReceiver(packet.ssrc, stream)
        receiver.add(packet)
        self._show(receiver)

    def _show(self, receiver):
        for frame in receiver.frames(self.link.round_trip):
            self._video_in[receiver.stream].show(receiver, frame)

    def _on_rtcp(self, message):
        if isinstance(message, rtcp.SenderReport):
            for reception in self._receptions():
                if reception.ssrc == message.ssrc:
                    reception.on_sender_report(message)
        elif isinstance(message, rtcp.Nack):
            for video in self.video_out.values():
                video.on_nack(message.media, message.sequences, self.link.round_trip)
        elif isinstance(message, rtcp.PictureLoss):
            for video in self.video_out.values():
                video.on_picture_loss(message.media)

    def on_subscription(self, subscription):
        """The member asks for more or less of a stream; it may be one that is not sent."""
        stream, request = subscription
        video = self.video_out.get(stream)
        if video and video.requested != request and self._subscription_changes[stream].take():
            video.requested = request
            emit("subscription", member=short(self.link.peer), stream=streams.NAMES[stream],
                 width=request.width, height=request.height, rate=request.rate)

    @property
    def sent_layers(self):
        """What the member gets of each stream, said again with each ping."""
        return [video.sent for video in self.video_out.values()]

    def on_sent_layer(self, sent):
        """The member says what it sends of a stream."""
        if sent.stream in streams.VIDEO_STREAMS and self._said.get(sent.stream) != sent:
            self._said[sent.stream] = sent
            emit("sent-layer", member=short(self.link.peer), stream=streams.name(sent.stream),
                 width=sent.width, height=sent.height, rate=sent.rate, why=sent.why.name)

    def _receptions(self):
        yield from self._audio_in.receptions.values()
        for receiver in self._receivers.values():
            yield receiver.reception

    # Repair and reports, called again and again

    def repair(self):
        """Requests packets and keyframes, and releases frames that a gap has held up long enough.
        """
        for receiver in self._receivers.values():
            self._ask_for_packets(receiver)
            self._show(receiver)
            if self._video_in[receiver.stream].shown in (None, receiver):
                self._ask_for_keyframe(receiver)

    def _ask_for_packets(self, receiver):
        round_trip = self.link.round_trip or _ASSUMED_ROUND_TRIP
        due = receiver.missing.due(receiver.reception.highest, round_trip)
        if due:
            self.nacks += len(due)
            self._send(rtcp.Nack(self._base, receiver.ssrc, due).encode())

    def _ask_for_keyframe(self, receiver):
        now, round_trip = time.monotonic(), self.link.round_trip or _ASSUMED_ROUND_TRIP
        if not receiver.needs_keyframe(round_trip):
            self._keyframe_asked.pop(receiver.ssrc, None)
            return
        asked, due = self._keyframe_asked.get(receiver.ssrc, (0, now))
        if now < due or now - receiver.reception.last_at >= 1:
            return
        interval = 1.0 if asked >= 2 else min(1.0, max(0.2, 2 * round_trip))
        self._keyframe_asked[receiver.ssrc] = asked + 1, now + interval
        self.picture_losses += 1
        self._send(rtcp.PictureLoss(self._base, receiver.ssrc).encode())

    def report(self, audio_timestamp):
        """Sender and receiver reports, every second."""
        messages = [video.report() for video in self.video_out.values()]
        if self.audio_out.packets:
            messages.insert(0, self.audio_out.report(audio_timestamp))
        blocks = [one.block() for one in self._receptions()][:_MOST_BLOCKS]
        if blocks:
            messages.append(rtcp.ReceiverReport(self._base, blocks))
        payload = b"".join(one.encode() for one in messages if one is not None)
        if payload:
            self._send(payload)

    def emit_figures(self):
        """`in` and `out` have the video streams by name."""
        emit("media", member=short(self.link.peer), packetsAskedFor=self.nacks,
             keyframesAskedFor=self.picture_losses, audioPackets=self._audio_in.packets,
             audioCopies=self._audio_in.copies, wrongCopies=self._audio_in.wrong_copies,
             audioLevel=self._audio_in.level, audioPacketsSent=self.audio_out.packets,
             feedback=self.link.reported.figures,
             **{"in": {one.name: one.figures for one in self._video_in.values() if one.frames},
                "out": {streams.NAMES[stream]: one.figures
                        for stream, one in self.video_out.items()}})

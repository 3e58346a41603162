"""Numbers and names of streams (sections 9 and 13).

The one place that knows payload types and the layout of SSRCs. A member sends one audio stream and
up to four video streams, each in up to three layers.
"""

AUDIO_PAYLOAD_TYPE = 111
REDUNDANT_AUDIO_PAYLOAD_TYPE = 112
AUDIO_PAYLOAD_TYPES = (AUDIO_PAYLOAD_TYPE, REDUNDANT_AUDIO_PAYLOAD_TYPE)
_FIRST_VIDEO_PAYLOAD_TYPE = 96
LAYERS = 3

CAMERA, SCREEN = 0, 1
VIDEO_STREAMS = range(4)
NAMES = {CAMERA: "camera", SCREEN: "screen"}

AUDIO_CLOCK = 48_000
VIDEO_CLOCK = 90_000


def name(stream, announced=None):
    """The name of a stream; that of streams 2 and 3 is the one that their member announced."""
    return NAMES.get(stream) or announced or f"stream-{stream}"


def video_payload_type(stream, layer):
    return _FIRST_VIDEO_PAYLOAD_TYPE + LAYERS * stream + layer


def video_stream_and_layer(payload_type):
    """(stream, layer), or None if the payload type is not one of video."""
    offset = payload_type - _FIRST_VIDEO_PAYLOAD_TYPE
    if not 0 <= offset < LAYERS * len(VIDEO_STREAMS):
        return None
    return divmod(offset, LAYERS)


def audio_ssrc(base):
    """The SSRC of the audio stream, which is also that of its sender's RTCP."""
    return base


def video_ssrc(base, stream, layer):
    return (base + 1 + LAYERS * stream + layer) % (1 << 32)

"""How streams are numbered on the wire (section 13).

The one place that knows payload types and the layout of SSRCs. A member sends one audio stream and
one video stream, the camera's, in up to three layers.
"""

AUDIO_PAYLOAD_TYPE = 111
_FIRST_VIDEO_PAYLOAD_TYPE = 100
_LAYERS = 3

CAMERA = 0
VIDEO_STREAMS = (CAMERA,)

AUDIO_CLOCK = 48_000
VIDEO_CLOCK = 90_000


def video_payload_type(stream, layer):
    return _FIRST_VIDEO_PAYLOAD_TYPE + _LAYERS * stream + layer


def video_stream_and_layer(payload_type):
    """(stream, layer), or None if the payload type is not one of video."""
    offset = payload_type - _FIRST_VIDEO_PAYLOAD_TYPE
    if not 0 <= offset < _LAYERS * len(VIDEO_STREAMS):
        return None
    return divmod(offset, _LAYERS)


def audio_ssrc(base):
    """Also the SSRC under which its sender sends RTCP."""
    return base


def video_ssrc(base, stream, layer):
    return (base + 1 + _LAYERS * stream + layer) % (1 << 32)

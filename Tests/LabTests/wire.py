"""Checks of what an eavesdropper could learn."""

import socket

from netns import inside

DATA = 0x20
# Of a data datagram: kind, receiver index, counter.
_DATA_HEADER = 13


def judge_wire(t, capture, nodes, sizes, prove):
    """Stops the capture of a call with frames of these sizes, and searches it for plaintext.
    `prove` is the host on which the capture runs, and another's address: a planted datagram proves
    that the search would find it.
    """
    host, address = prove
    proof = f"proof of {t.channel[::-1]}".encode()
    with inside(host.namespace):
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sender:
            sender.sendto(proof, (address, 9))
    t.pause(0.3)
    capture.stop()
    everything = b"\n".join(frame for _, _, frame in capture.frames)
    secrets = {
        "a name": [node.name for node in nodes], "the channel": [t.channel],
        "the passphrase": [t.passphrase, t.passphrase[:13]], "Opus": ["OpusHead", "OpusTags"],
    }
    found = [what for what, texts in secrets.items() for text in texts
             for form in (text.encode(), text.encode("utf-16-le")) if form in everything]
    found += ["a public key" for node in nodes
              if bytes.fromhex(node.ready()["key"])[:12] in everything]
    # RFC 6386 9.1: the start code and the size; three bytes alone come about by chance.
    for width, height in sizes:
        code = b"\x9d\x01\x2a" + width.to_bytes(2, "little") + height.to_bytes(2, "little")
        found += ["a VP8 keyframe"] if code in everything else []
    t.expect(not found, f"the wire shows {found}")
    t.require(proof in everything, "the capture is blind")
    data = [one.payload for one in capture.datagrams if one.payload[:1] == bytes([DATA])]
    t.figure("captured", len(everything) // 1000, f"kB, {len(data)} of media", at_least=50)
    t.figure("chi-square of sealed bytes", _chi_square(b"".join(
        payload[_DATA_HEADER:] for payload in data)), "(255 expected)", at_most=400)
    longest = max(len(one.payload) for one in capture.datagrams)
    t.figure("longest datagram", longest, "bytes", at_most=1200)


def _chi_square(data):
    """The chi-squared statistic of the bytes: about 255 when random, above 400 less than once in
    10^7.
    """
    expected = len(data) / 256
    return sum((data.count(bytes([value])) - expected) ** 2 / expected for value in range(256))

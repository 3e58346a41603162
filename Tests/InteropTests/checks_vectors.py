"""The worked examples of the document."""

import vectors
from check import check


@check()
def every_hex_block_of_the_document_is_reproduced(t):
    reproduced, wrong = vectors.compare()
    for one in wrong:
        t.expect(False, one)
    t.figure("blocks", len(reproduced), at_least=50)


@check()
def what_was_built_is_read_back(t):
    """Every block that has a decoder goes through it and comes out as it went in."""
    given = vectors.blocks()
    for name in given:
        if name.startswith("control-"):
            decoded = vectors.control.decode(given[name])
            t.expect(decoded, f"{name}: expected messages, saw {decoded}")
    for name in ("rtp-audio", "rtp-video"):
        packet = vectors.RTPPacket.decode(given[name])
        t.expect(packet.encode() == given[name], f"{name}: expected the same, saw {packet}")
    for name in ("rtcp-sender-report", "rtcp-receiver-report", "rtcp-nack", "rtcp-picture-loss"):
        messages = vectors.rtcp.decode_all(given[name])
        again = b"".join(one.encode() for one in messages)
        t.expect(again == given[name], f"{name}: expected the same, saw {messages}")
    for name in ("presence", "claim", "hearing", "message", "grant", "redemption", "epoch"):
        raw = given[f"entry-{name}"] + bytes(64)
        body = vectors.Entry.decode(raw).body
        t.expect(body.encode() == raw[vectors.ENTRY_HEADER:-64],
                 f"entry-{name}: expected the same body, saw {body}")
    invite = vectors.Invite.parse(given["invite"].decode())
    t.expect(invite.name == vectors.NAME, f"invite: expected {vectors.NAME}, saw {invite.name}")

"""Relaying (section 7, "Relayed paths").

One node is on IPv4 only and one on IPv6 only: on loopback, too, these two cannot reach each other.
"""

from check import check
from context import has_ipv6, seed_of_id

ONLY_4, ONLY_6 = "127.0.0.1:0", "[::1]:0"
VIDEO = {"video": "test:320x180@15", "audio": "tone"}


def _need_both_families(t):
    if not has_ipv6():
        t.skip("loopback has no IPv6")


@check()
def python_relays_between_two_nodes_of_muster(t):
    _need_both_families(t)
    python = t.start_peer(listen=[ONLY_4, ONLY_6], call=True)
    on_4, on_6 = python.ready()["listen"]
    anna = t.start_muster("--listen", ONLY_4, knows=[on_4], call=True, **VIDEO)
    berta = t.start_muster("--listen", ONLY_6, name="berta", knows=[on_6], call=True, **VIDEO)
    for one, other in ((anna, berta), (berta, anna)):
        up = one.wait("link.up", member=other.id)
        t.expect(up["via"] == python.id,
                 f"{one.name}: expected a link via {python.id}, saw via {up['via']}")
        one.wait("media.first-frame", member=other.id)
    relaying = python.wait("relaying")
    t.expect(relaying["members"] == sorted([anna.id, berta.id]),
             f"expected to relay for anna and berta, saw {relaying['members']}")


def _reached_through_muster(t, python_begins):
    """Python and `far` share no address family; `relay` is linked to both."""
    _need_both_families(t)
    relay = t.start_muster(name="relay", call=True)
    far = t.start_muster("--listen", ONLY_6, name="far", knows=[f"[::1]:{relay.port}"], call=True,
                         **VIDEO)
    key = far.ready()["key"]
    seed = seed_of_id(lambda own: (own < key) == python_begins)
    python = t.start_peer("--seed", seed, listen=[ONLY_4], knows=[relay], call=True, sends=True)
    done = python.wait("handshake", member=far.id)
    role = "initiator" if python_begins else "responder"
    t.expect(done["role"] == role, f"expected to be the {role}, saw {done['role']}")
    for one, other in ((python, far), (far, python)):
        up = one.wait("link.up", member=other.id)
        t.expect(up["via"] == relay.id,
                 f"{one.name}: expected a link via {relay.id}, saw via {up['via']}")
        one.wait("media.first-frame", member=other.id)


@check(needs="ffmpeg", gate=True)
def python_reaches_a_member_through_muster(t):
    """Python has the smaller id: it begins the handshake through the neighbour."""
    _reached_through_muster(t, python_begins=True)


@check(needs="ffmpeg")
def python_is_reached_through_muster(t):
    """Python has the larger id: it answers the handshake through the neighbour."""
    _reached_through_muster(t, python_begins=False)

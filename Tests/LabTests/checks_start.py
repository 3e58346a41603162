"""Starts: nodes that start together on a LAN with IPv4 and IPv6 keep one path each, and the first
node starts a call once no other member could know of one.
"""

from check import check
from checks_rights import created, guest, invite

# Seconds after the first frames, in which paths used to be exchanged.
AFTERWARDS = 6


@check(needs="namespaces", measures=True)
def two_nodes_that_start_together_keep_their_path(t):
    _start(t, 2)


@check(needs="namespaces", measures=True)
def four_nodes_that_start_together_keep_their_paths(t):
    _start(t, 4)


@check(needs="namespaces", measures=True)
def nine_nodes_that_start_together_keep_their_paths(t):
    _start(t, 9)


@check(measures=True)
def the_first_one_waits_for_answers_from_beyond_the_lan(t):
    nobody = "127.0.0.1:9"
    created(t)
    url = invite(t, "presenter", "owner", "--rendezvous", nobody)
    for name, node, waits in (
            ("a LAN alone", t.node("anna"), 1),
            ("a silent peer", t.node("berta", "--peer", nobody, channels=["apart"]), 5),
            ("a silent rendezvous", t.node("cilla", "--rendezvous", nobody, channels=["off"]), 5),
            ("a silent rendezvous of an invite", guest(t, "dora", url, call=True), 5)):
        started = node.wait("call.started", 30)["at"] - node.ready()["at"]
        t.figure(f"{name}: waited", started, "s", at_least=0.9 * waits, at_most=waits + 1)
        t.expect(node.all("call.state")[0]["state"] == "connecting", "it did not say connecting")


def _start(t, count):
    lan = t.lan(count)
    nodes = [t.node(f"node{host.number}", host=host) for host in lan.hosts]
    met = t.meet(*nodes)
    t.pause(AFTERWARDS)
    changes, frozen = [], []
    for node in nodes:
        last = node.wait("stats", 10, met + AFTERWARDS)
        counters = last["counters"]
        changes.append(counters.get("link.pathsChanged", 0))
        relayed = {name: value for name, value in counters.items() if name.startswith("relay.")}
        t.expect(not relayed, f"{node.name} had to do with relays: {relayed}")
        t.expect(all(peer["via"] is None for peer in last["peers"]), f"{node.name} is relayed")
        frozen += [peer["in"]["frozenMs"] for peer in last["peers"] if peer["in"]]
    t.figure("path changes of one node", max(changes), f"with {count - 1} links",
             at_most=count - 1)
    t.figure("longest time frozen", max(frozen), "ms", at_most=200)

"""Starts: nodes that start together on a LAN with IPv4 and IPv6 settle on one path each."""

from check import check

# Seconds after the first frames, in which paths used to be exchanged.
AFTERWARDS = 6


@check(needs="namespaces")
def two_nodes_that_start_together_keep_their_path(t):
    _start(t, 2)


@check(needs="namespaces")
def four_nodes_that_start_together_keep_their_paths(t):
    _start(t, 4)


@check(needs="namespaces")
def nine_nodes_that_start_together_keep_their_paths(t):
    _start(t, 9)


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

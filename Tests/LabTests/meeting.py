"""Helpers for checks with members that connect through a rendezvous."""

import os

from rendezvous import Rendezvous

PORT = 47_400

# One-way delay in ms; without any, the first datagrams of hole punching never cross in flight.
AWAY = 20

# Options of members without media and call.
QUIET = {"video": "none", "audio": "none", "call": False}


def rendezvous(t, host):
    name = f"rendezvous-{len(t.nodes)}"
    made = Rendezvous(t.muster, name, place(host), os.path.join(t.folder, name), host)
    t.nodes.append(made)
    return made


def place(host):
    """The address at which a host's rendezvous listens."""
    return f"[{host.address}]:{PORT}" if ":" in host.address else f"{host.address}:{PORT}"


def through(*hosts):
    return ["--no-lan", *(part for host in hosts for part in ("--rendezvous", place(host)))]


def member(t, name, host, mark, more, **arguments):
    """Starts a member of the channel with this mark."""
    node = t.node(f"{name}-{mark}", *more, host=host, channels=[f"{t.channel}-{mark}"],
                  **arguments)
    node.ready()
    return node


def pair(t, homes, mark, more, **arguments):
    """Starts two members of a channel of their own, one after the other."""
    return [member(t, name, home.hosts[0], mark, more, **arguments)
            for name, home in zip(("anna", "berta"), homes)]


def both_directions(nodes):
    """Both ordered pairs of two nodes."""
    return tuple(nodes), tuple(reversed(nodes))


def links(nodes, via=None):
    """The first `link.up` of each of two nodes for the other, over this path."""
    return [one.wait("link.up", 10, member=other.id, via=via) for one, other in both_directions(nodes)]


def after_ready(nodes, found):
    return max(max(link["at"] for link in found) - nodes[1].ready()["at"], 0.0)


def first_frames_after(nodes, found):
    return max(0.0, *(one.first_frame(other, 10)["at"] - link["at"]
                      for (one, other), link in zip(both_directions(nodes), found)))


def report(t, what, nodes, via=None, linked_within=3):
    """Reports the times of the link and of the first frames over it; returns the links."""
    found = links(nodes, via)
    t.figure(f"{what}: linked after", after_ready(nodes, found), "s", at_most=linked_within)
    t.figure("pictures", first_frames_after(nodes, found), "s later", at_most=1)
    return found


def end(nodes):
    for node in nodes:
        node.send("quit")
    for node in nodes:
        node.ended(5)

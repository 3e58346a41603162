"""Members who meet through a rendezvous, and what checks of that have in common."""

import os

from rendezvous import Rendezvous

PORT = 47_400

# One way, in ms: without any, the first datagrams of a punch never pass each other.
AWAY = 20

# What is needed to meet and no more.
QUIET = {"video": "none", "audio": "none", "call": False}


def rendezvous(t, host):
    name = f"rendezvous-{len(t.nodes)}"
    made = Rendezvous(t.muster, name, place(host), os.path.join(t.folder, name), host)
    t.nodes.append(made)
    return made


def place(host):
    """Where the rendezvous of a host listens."""
    return f"[{host.address}]:{PORT}" if ":" in host.address else f"{host.address}:{PORT}"


def through(*hosts):
    return ["--no-lan", *(part for host in hosts for part in ("--rendezvous", place(host)))]


def member(t, name, host, mark, more, **arguments):
    """A member of a channel of this mark."""
    node = t.node(f"{name}-{mark}", *more, host=host, channels=[f"{t.channel}-{mark}"],
                  **arguments)
    node.ready()
    return node


def pair(t, homes, mark, more, **arguments):
    """Two members of a channel of their own, one after the other."""
    return [member(t, name, home.hosts[0], mark, more, **arguments)
            for name, home in zip(("anna", "berta"), homes)]


def each_way(nodes):
    """Both orders of two."""
    return tuple(nodes), tuple(reversed(nodes))


def links(nodes, via=None):
    """How each of two has the other for the first time, by this way."""
    return [one.wait("link.up", 10, member=other.id, via=via) for one, other in each_way(nodes)]


def after_ready(nodes, found):
    return max(max(link["at"] for link in found) - nodes[1].ready()["at"], 0.0)


def pictures_after(nodes, found):
    return max(0.0, *(one.first_frame(other, 10)["at"] - link["at"]
                      for (one, other), link in zip(each_way(nodes), found)))


def report(t, what, nodes, via=None):
    """Figures of the link and of the first pictures over it; returns the links."""
    found = links(nodes, via)
    t.figure(f"{what}: linked after", after_ready(nodes, found), "s", at_most=3)
    t.figure("pictures", pictures_after(nodes, found), "s later", at_most=1)
    return found


def end(nodes):
    for node in nodes:
        node.send("quit")
    for node in nodes:
        node.ended(5)

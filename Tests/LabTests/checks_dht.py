"""Members without known addresses and without a rendezvous discover each other through a DHT."""

import os
import shutil
import signal
import subprocess
import time

from check import check
from dht import PORT, Dht, tag

NODES = 10

# Further options of members: they must not discover each other on the local network.
QUIET = {"video": "none", "audio": "none", "call": False}


@check(needs=("namespaces", "dht"), measures=True)
def members_meet_through_a_dht_in_ten_seconds(t):
    lan = t.lan(NODES + 2)
    _dht(t, lan.hosts[:NODES])
    # Time for the DHT to form before the members start.
    t.pause(2)
    nodes = [
        t.node(name, "--no-lan", "--dht", f"{address}:{PORT}", host=host, video="test:320x180@15")
        for name, address, host in zip(
            ("anna", "berta"), (lan.hosts[3].address, f"[{lan.hosts[7].address6}]"),
            lan.hosts[NODES:])]
    t.figure("linked", _links(nodes, 10), "s after the start of both", at_most=10)
    t.meet(*nodes)
    for node in nodes:
        began = node.send("quit")
        node.ended(5)
        t.figure(f"{node.name} ended after", node.exited_at - began, "s", at_most=1.5)
        t.expect(not node.errors, f"{node.name}: {node.errors[-200:]}")


@check(needs=("namespaces", "dht"), measures=True)
def a_dht_that_comes_later_is_found_then(t):
    lan = t.lan(NODES + 2)
    nodes = [t.node(name, *_through(lan.hosts[0], lan.hosts[1]), host=host, **QUIET)
             for name, host in zip(("anna", "berta"), lan.hosts[NODES:])]
    for node in nodes:
        node.ready()
    t.pause(4)
    t.expect(not any(node.all("link.up") for node in nodes), "linked without a DHT")
    _dht(t, lan.hosts[:NODES])
    began = t.now()
    for one, other in (nodes, nodes[::-1]):
        one.wait("link.up", 60, member=other.id)
    t.figure("linked", t.now() - began, "s after the DHT came", at_most=45)


@check(needs=("namespaces", "dht"), measures=True)
def members_meet_while_half_of_the_dht_dies_and_its_tag_is_full_of_junk(t):
    lan = t.lan(NODES + 2)
    dht = _dht(t, lan.hosts[:NODES])
    t.pause(2)
    # A channel without a passphrase: anyone can compute its DHT keys.
    for days in (-1, 0, 1):
        dht.put(tag(t.channel, days), [f"junk-{number}" for number in range(200)])
    t.pause(2)
    # It prints while it reads, so that some of these lines are interleaved.
    t.figure("junk in the DHT", dht.output(-1).count("Put: success"), "values", at_least=500)
    first = t.node("anna", *_through(*lan.hosts[:NODES:3]), host=lan.hosts[NODES],
                   passphrase=False, **QUIET)
    first.ready()
    t.pause(2)
    dht.signal(signal.SIGKILL, *range(1, NODES - 1, 2))
    second = t.node("berta", *_through(*lan.hosts[:NODES:3]), host=lan.hosts[NODES + 1],
                    passphrase=False, **QUIET)
    t.figure("linked", _links((first, second), 30), "s after the start of the second",
             at_most=30)


@check(needs=("namespaces", "dht"), measures=True)
def members_behind_routers_that_keep_ports_meet_through_a_dht(t):
    internet = t.internet(delay=20)
    hosts = [internet.host(f"dht{number}") for number in range(NODES)]
    _dht(t, hosts)
    t.pause(2)
    homes = [internet.home("preserving") for _ in range(2)]
    nodes = [t.node(name, *_through(hosts[place]), host=home.hosts[0], **QUIET)
             for name, place, home in zip(("anna", "berta"), (3, 7), homes)]
    t.figure("linked", _links(nodes, 30), "s after the start of both", at_most=30)
    for node, home in zip(nodes, reversed(homes)):
        address = node.all("link.up")[0]["address"]
        t.expect(address.startswith(f"{home.outside}:"), f"linked to {address}")


@check(needs=("namespaces", "dht"), measures=True)
def members_meet_across_midnight(t):
    lan = t.lan(NODES + 3)
    _dht(t, lan.hosts[:NODES])
    t.pause(2)
    shim = _wall_clock(t)
    to_midnight = 86_400 - int(time.time()) % 86_400
    # Midnight passes for Anna; Berta starts on the next day, and Carl's clock is a day ahead.
    nodes = []
    for name, seconds, place in (("anna", -5, 0), ("berta", 5, 1), ("carl", 86_400, 2)):
        nodes.append(t.node(
            name, *_through(lan.hosts[place]), host=lan.hosts[NODES + place],
            environment={"LD_PRELOAD": shim, "WALL_CLOCK_OFFSET": str(to_midnight + seconds)},
            **QUIET))
        nodes[-1].ready()
        if name == "anna":
            t.pause(8)
    first, second, third = nodes
    t.figure("linked with the next day", _links((first, second), 10), "s", at_most=10)
    t.figure("linked with the day after", _links((second, third), 10), "s", at_most=10)
    first.wait("link.up", 10, member=third.id)


def _dht(t, hosts):
    dht = Dht(hosts, os.path.join(t.folder, "dht"))
    t.later(dht.close)
    return dht


def _through(*hosts):
    return ["--no-lan", *(part for host in hosts for part in ("--dht", f"{host.address}:{PORT}"))]


def _links(nodes, limit):
    """The time from the start of the later node until both links were up."""
    up = [one.wait("link.up", limit + 5, member=other.id)["at"]
          for one, other in (nodes, nodes[::-1])]
    return max(up) - max(node.started_at for node in nodes)


def _wall_clock(t):
    """A preloaded library that shifts a node's wall clock."""
    if not shutil.which("cc"):
        t.skip("no cc")
    made = os.path.join(t.folder, "wall_clock.so")
    source = os.path.join(os.path.dirname(os.path.abspath(__file__)), "wall_clock.c")
    subprocess.run(["cc", "-O2", "-fPIC", "-shared", "-o", made, source], check=True)
    return made

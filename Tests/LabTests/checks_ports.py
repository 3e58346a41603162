"""Port mapping: gateways map ports for nodes that connect beyond their network, and no others."""

import os
import time

from check import check
from gateway import Gateway, reason_against_gateways
from rendezvous import Rendezvous

PORT = 47_400

# One-way delay in ms, as in checks_nat.py; two routers of kind "random" defeat hole punching.
AWAY = 20


@check(needs="namespaces", measures=True)
def a_port_mapped_by_nat_pmp_links_homes_that_cannot_punch(t):
    _a_mapped_port_links(t, natpmp=True, upnp=False)


@check(needs="namespaces", measures=True)
def a_port_mapped_by_upnp_links_homes_that_cannot_punch(t):
    _a_mapped_port_links(t, natpmp=False, upnp=True)


@check(needs="namespaces")
def a_node_that_stays_on_the_lan_opens_no_port(t):
    internet, public = _internet(t)
    home = internet.home("random", hosts=2)
    gateway = _gateway(t, home)
    cases = {"lan": [], "unmapped": [*_through(public), "--no-port-mapping"]}
    for (name, more), host in zip(cases.items(), home.hosts):
        t.node(name, *more, host=host, video="none", audio="none", call=False).ready()
    # The pause exceeds the duration of a request by both protocols.
    t.pause(3.5)
    t.expect(not gateway.mappings(), f"mapped: {gateway.mappings()}")


@check(needs="namespaces", measures=True)
def a_rendezvous_at_home_is_reached_through_its_mapped_port(t):
    internet = t.internet(delay=AWAY)
    homes = [internet.home(kind) for kind in ("preserving", "full", "preserving")]
    gateway = _gateway(t, homes[0])
    rendezvous = _rendezvous(t, homes[0].hosts[0])
    _until(t, 3, lambda: gateway.mappings() == [(PORT, homes[0].hosts[0].address, PORT)])
    there = ["--no-lan", "--rendezvous", f"{homes[0].outside}:{PORT}"]
    nodes = [t.node(name, *there, host=home.hosts[0], video="none", audio="none")
             for name, home in zip(("anna", "berta"), homes[1:])]
    for one, other in (nodes, nodes[::-1]):
        one.wait("link.up", 10, member=other.id, via=None)
    rendezvous.close()
    t.expect(not gateway.mappings(), f"still mapped: {gateway.mappings()}")


def _a_mapped_port_links(t, natpmp, upnp):
    internet, public = _internet(t)
    # The later member's mapping has to be made and announced within the time limit for links.
    for place in (1, 0) if t.is_long else (1,):
        homes = [internet.home("random") for _ in range(2)]
        gateway = _gateway(t, homes[place], natpmp, upnp)
        nodes = []
        for name, home in zip(("anna", "berta"), homes):
            node = t.node(f"{name}-{place}", *_through(public), host=home.hosts[0],
                          channels=[f"{t.channel}-{place}"])
            node.ready()
            nodes.append(node)
        links = [one.wait("link.up", 10, member=other.id, via=None)
                 for one, other in (nodes, nodes[::-1])]
        ready = nodes[1].ready()["at"]
        t.figure(f"mapped for the {('first', 'later')[place]}: linked after",
                 max(max(link["at"] for link in links) - ready, 0.0), "s", at_most=3)
        # The other end's port is unpredictable; the mapped one is known beforehand.
        reported = links[1 - place]["address"]
        inside = homes[place].hosts[0].address
        mapped = [outer for outer, address, port in gateway.mappings()
                  if (address, port) == (inside, nodes[place].port)]
        t.expect([f"{homes[place].outside}:{port}" for port in mapped] == [reported],
                 f"linked to {reported}, mapped: {gateway.mappings()}")
        t.meet(*nodes)
        asked = nodes[place].send("quit")
        nodes[place].ended(5)
        t.figure("ended after", nodes[place].exited_at - asked, "s", at_most=1)
        t.expect(not gateway.mappings(), f"still mapped: {gateway.mappings()}")
        nodes[1 - place].send("quit")
        nodes[1 - place].ended(5)


def _internet(t):
    internet = t.internet(delay=AWAY)
    public = internet.host("public")
    _rendezvous(t, public)
    return internet, public


def _gateway(t, home, natpmp=True, upnp=True):
    reason = reason_against_gateways()
    if reason:
        t.skip(reason)
    gateway = Gateway(home, os.path.join(t.folder, f"gateway-{home.outside}"), natpmp, upnp)
    t.later(gateway.close)
    return gateway


def _rendezvous(t, host):
    name = f"rendezvous-{len(t.nodes)}"
    made = Rendezvous(t.muster, name, f"{host.address}:{PORT}", os.path.join(t.folder, name), host)
    t.nodes.append(made)
    return made


def _through(host):
    return ["--no-lan", "--rendezvous", f"{host.address}:{PORT}"]


def _until(t, limit, holds):
    end = time.monotonic() + limit
    while not holds():
        t.require(time.monotonic() < end, f"not so within {limit:g} s")
        time.sleep(0.05)

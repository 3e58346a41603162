"""Members behind NATs connect through a rendezvous, which they need for discovery only."""

import os
import signal

from check import check
from meeting import (
    AWAY, PORT, QUIET, after_ready, both_directions, end, first_frames_after, links, member, pair,
    rendezvous, report, through)
from nat import KINDS, Host
from netns import ip

# Pairs of nat.py's kinds. Hole punching needs endpoint-independent mapping at one end,
# and at the other end a predictable port or endpoint-independent filtering.
PUNCHABLE = [("full", "full"), ("full", "preserving"), ("full", "random"),
             ("preserving", "preserving")]
HOPELESS = [("preserving", "random"), ("random", "random")]
# Pairs in which one router blocks all UDP.
BLOCKED = [("preserving", "blocked"), ("blocked", "blocked")]


@check(needs="namespaces", measures=True)
def every_pair_of_routers_is_linked_relayed_or_left_in_peace(t):
    internet = t.internet(delay=AWAY)
    public = internet.host("public")
    rendezvous(t, public)
    between = internet.host("between")
    reported = {}
    pairs = ([(one, other) for one in KINDS for other in KINDS] if t.is_long
             else PUNCHABLE + HOPELESS + BLOCKED)
    for kinds in pairs:
        homes = [internet.home(kind) for kind in kinds]
        if "blocked" in kinds:
            reported[kinds] = _judge_blocked(t, kinds, homes, public, between)
        elif tuple(sorted(kinds)) in HOPELESS:
            reported[kinds] = _judge_relayed(t, kinds, homes, public, between)
        else:
            reported[kinds] = _judge_direct(t, kinds, homes, public)
    if t.is_long:
        t.table(["", *KINDS], [
            [f"**{one}**", *(reported[one, other] for other in KINDS)] for one in KINDS])


def _judge_direct(t, kinds, homes, public):
    """No third member can relay."""
    nodes = pair(t, homes, "-".join(kinds), through(public))
    found = report(t, "/".join(kinds), nodes)
    # Both members announce 192.168.1.2, so only the external address can work.
    for link, home in zip(found, reversed(homes)):
        t.expect(link["address"].startswith(f"{home.outside}:"), f"linked to {link['address']}")
    cell = _cell("direct", nodes, found)
    end(nodes)
    return cell


def _judge_relayed(t, kinds, homes, public, between):
    mark = "-".join(kinds)
    third = member(t, "carl", between, mark, through(public), video="none", audio="none")
    nodes = pair(t, homes, mark, through(public))
    found = report(t, "/".join(kinds), nodes, via=third.id)
    for one, other in both_directions(nodes):
        reported = one.peer_statistics(other)["via"]
        t.expect(reported == third.id, f"{one.name}'s statistics: via {reported}")
        t.expect(not one.all("link.up", member=other.id, via=None), f"{one.name}: a hole")
    cell = _cell("relayed", nodes, found)
    end([*nodes, third])
    return cell


def _judge_blocked(t, kinds, homes, public, between):
    """No link is established, at no cost for either side."""
    mark = "-".join(kinds)
    third = member(t, "carl", between, mark, through(public), video="none", audio="none")
    nodes = pair(t, homes, mark, through(public))
    open_ones = [third, *(node for node, kind in zip(nodes, kinds) if kind != "blocked")]
    for node in open_ones[1:]:
        node.wait("link.up", 10, member=third.id)
    # Far longer than other pairs need; the blocked member gets a warning.
    for node, kind in zip(nodes, kinds):
        if kind == "blocked":
            node.wait("warning", 20, where=_is_of_silence)
        else:
            t.expect(not any(map(_is_of_silence, node.all("warning"))), f"{node.name} is warned")
    for node, kind in zip(nodes, kinds):
        wanted = 0 if kind == "blocked" else len(open_ones) - 1
        t.expect(len(node.roster()) == wanted, f"{node.name} in {mark}: {node.roster()}")
        t.expect(len(node.all("link.up")) == wanted, f"{node.name} in {mark}: a link")
        # The node keeps working: statistics every second, and commands are executed.
        at = node.send("leave-call")
        node.wait("call.state", 3, at, state="disconnected")
        node.wait("stats", 3, at)
    asked = t.now()
    end([*nodes, third])
    t.figure(f"{'/'.join(kinds)}: no link; all ended after", t.now() - asked, "s", at_most=2)
    return "no"


def _is_of_silence(warning):
    return "no rendezvous answers" in warning["message"]


def _cell(how, nodes, found):
    return (f"{how}, {after_ready(nodes, found):.1f} s,"
            f" pictures {first_frames_after(nodes, found):.1f} s later")


@check(needs="namespaces")
def a_pair_that_nothing_can_link_hears_so(t):
    internet = t.internet(delay=AWAY)
    public = internet.host("public")
    rendezvous(t, public)
    homes = [internet.home(kind) for kind in ("random", "random")]
    nodes = pair(t, homes, "alone", through(public))
    for node, other, home in zip(nodes, reversed(nodes), reversed(homes)):
        told = node.wait("warning", 30, where=lambda one: "answers at none" in one["message"])
        t.expect(other.id in told["message"] and home.outside in told["message"], told)
        t.expect("relay" in told["hint"], told)
    for node in nodes:
        t.expect(not node.all("link.up"), f"{node.name} has a link")
    end(nodes)


@check(needs="namespaces")
def a_rendezvous_that_worked_is_remembered(t):
    internet = t.internet()
    public = internet.host("public")
    rendezvous(t, public)
    homes = [internet.home("preserving") for _ in range(2)]
    first = t.node("anna", *through(public), host=homes[0].hosts[0], **QUIET)
    first.ready()
    # The node stores every ten seconds which rendezvous have answered.
    t.pause(11)
    end([first])
    again = t.node("anna", "--no-lan", host=homes[0].hosts[0], **QUIET)
    other = t.node("berta", *through(public), host=homes[1].hosts[0], **QUIET)
    again.wait("link.up", 10, member=other.id)


@check(needs="namespaces")
def a_member_may_be_the_rendezvous(t):
    internet = t.internet()
    public = internet.host("public")
    host = t.node("carl", "--no-lan", "--offer-rendezvous", "--listen", f"0.0.0.0:{PORT}",
                  host=public, **QUIET)
    host.ready()
    homes = [internet.home("preserving") for _ in range(2)]
    others = [t.node(name, *through(public), host=home.hosts[0], **QUIET)
              for name, home in zip(("anna", "berta"), homes)]
    everyone = [host, *others]
    for one in everyone:
        for other in everyone:
            if one is not other:
                one.wait("link.up", 10, member=other.id, via=None)


@check(needs="namespaces", measures=True)
def a_rendezvous_that_dies_is_missed_by_newcomers_only(t):
    internet = t.internet()
    public = internet.host("public")
    serving = rendezvous(t, public)
    homes = [internet.home("preserving") for _ in range(3)]
    nodes = pair(t, homes[:2], "pair", through(public))
    t.meet(*nodes)
    killed = serving.signal(signal.SIGKILL)
    t.pause(10)
    for name in ("member.left", "link.down"):
        reported = [event for node in nodes for event in node.all(name, since=killed)]
        t.figure(name, len(reported), "in 10 s", at_most=0)
    t.figure("pictures go on within", t.video_continues(*nodes), "s")
    again = rendezvous(t, public)
    third = member(t, "cilla", homes[2].hosts[0], "pair", through(public))
    # Relayed by the first peer it finds, if necessary: existing members return to the
    # rendezvous every 20 s, or later while it was dead.
    linked = [third.wait("link.up", 60, member=node.id)["at"] for node in nodes]
    t.figure("a newcomer is linked", max(linked) - third.ready()["at"], "s", at_most=35)
    t.meet(*nodes, third)
    again.signal(signal.SIGTERM)
    t.figure("exit code of the rendezvous", again.ended(3), at_most=0, at_least=0)


@check(needs="namespaces", measures=True)
def a_dead_rendezvous_beside_a_live_one_costs_a_second_at_most(t):
    internet = t.internet()
    live, dead = internet.host("live"), internet.host("dead")
    rendezvous(t, live)
    homes = [internet.home("preserving") for _ in range(2)]
    for home in homes:
        # No answer is a harder case than the ICMP error of a closed port.
        internet.cut(home, dead)
    times = []
    for mark, hosts in (("live", [live]), ("both", [dead, live])):
        nodes = pair(t, homes, mark, through(*hosts))
        times.append(after_ready(nodes, links(nodes)))
        end(nodes)
    t.figure("one live: linked after", times[0], "s", at_most=3)
    t.figure("one dead besides", times[1], "s", at_most=times[0] + 1)


@check(needs="namespaces")
def members_meet_where_there_is_ipv6_only(t):
    lan = t.lan(3)
    for host in lan.hosts:
        ip("addr", "flush", "dev", "eth0", "scope", "global", namespace=host.namespace)
        ip("addr", "add", f"{host.address6}/64", "dev", "eth0", "nodad", namespace=host.namespace)
    *hosts, public = [Host(host.namespace, host.address6, host.address6) for host in lan.hosts]
    rendezvous(t, public)
    nodes = [member(t, name, host, "six", through(public))
             for name, host in zip(("anna", "berta"), hosts)]
    for link, host in zip(report(t, "IPv6", nodes), reversed(hosts)):
        t.expect(link["address"].startswith(f"[{host.address}]:"), f"linked to {link['address']}")


@check(needs="namespaces", measures=True)
def a_rendezvous_with_two_addresses_is_reached_at_the_one_that_works(t):
    lan = t.lan(3)
    *hosts, public = lan.hosts
    # Ranked behind an unused address by the order in which addresses are tried
    # (RFC 6724, rule 9). No answer is a harder case than the ICMP error of a closed port.
    serving, silent = "10.77.0.200", "10.77.0.99"
    ip("addr", "add", f"{serving}/24", "dev", "eth0", namespace=public.namespace)
    rendezvous(t, Host(public.namespace, serving, serving))
    more = ["--no-lan", "--rendezvous", f"meet.lab.example:{PORT}"]
    # The rendezvous also has the IPv6 address, but serves on the other one only.
    for what, addresses in (("one silent", [silent, serving]),
                            ("two families", [public.address6, serving])):
        wrap = _knowing(t, addresses)
        mark = what.replace(" ", "-")
        nodes = [member(t, name, host, mark, more, wrap=wrap, **QUIET)
                 for name, host in zip(("anna", "berta"), hosts)]
        t.figure(f"{what}: linked after", after_ready(nodes, links(nodes)), "s", at_most=3)
        end(nodes)


def _knowing(t, addresses):
    """A command prefix under which a host name resolves to these addresses."""
    path = os.path.join(t.folder, "hosts")
    with open(path, "w", encoding="ascii") as file:
        file.writelines(f"{address} meet.lab.example\n" for address in addresses)
    # In a separate mount namespace, which ends with the process.
    script = f"mount --bind {path} /etc/hosts && exec \"$@\""
    return ["unshare", "--mount", "sh", "-c", script, "sh"]

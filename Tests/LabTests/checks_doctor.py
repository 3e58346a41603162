"""`muster doctor` on connectivity: the kind of NAT, the rendezvous, and the advice; `muster ping`, and
`muster doctor --node` on the links of a running node."""

import json
import os
import subprocess
import sys
import time

from check import check
from gateway import Gateway, reason_against_gateways
from netns import inside
from node import clean_environment
from rendezvous import Rendezvous

PORT = 47_400
SUCCESS, FAILURE = 0, 1

# Unused: an address that the default route does not forward to, and a name that does not resolve.
_NOWHERE = f"203.0.113.7:{PORT}"
_NO_NAME = f"nobody.invalid:{PORT}"

# Kinds of nat.py, each with the mapping that two rendezvous show and the verdict on hole punching.
# Rendezvous cannot observe filtering, so `full` looks like `preserving`.
_SEEN_AS = [("full", "port-kept", "good"), ("preserving", "port-kept", "good"),
            ("random", "port-per-destination", "note")]


@check(needs="namespaces", measures=True)
def the_doctor_reports_which_nat_it_is(t):
    internet = t.internet()
    meeting = _meeting_places(t, internet, 2)
    for kind, seen_as, punching in _SEEN_AS:
        home = internet.home(kind)
        answer = _doctor(t, home.hosts[0], meeting)
        _expect_kind(t, answer, kind, seen_as, True, [home.outside])
        t.expect(_verdicts(answer, "punching (IPv4)") == [punching], f"{kind}: punching: {answer}")
        t.expect(_verdicts(answer, "rendezvous") == ["good", "good"], f"{kind}: rendezvous: {answer}")
        t.expect(_verdicts(answer, "gateway") == ["note"], f"{kind}: the gateway was not asked")
        seen = {one["seen"].rsplit(":", 1)[0] for one in answer["nat"]["rendezvous"]}
        t.expect(seen == {home.outside}, f"{kind}: seen at {seen}")
        slowest = max(one["rttMs"] for one in answer["nat"]["rendezvous"])
        t.expect(0 < slowest < 1000, f"{kind}: answers took {slowest} ms")
        t.expect(answer["code"] == SUCCESS, f"{kind}: exit code {answer['code']}")
    t.figure("kinds distinguished", len(_SEEN_AS))


@check(needs="namespaces", measures=True)
def the_doctor_finds_no_nat_where_there_is_none(t):
    internet = t.internet()
    host = internet.host("here")
    answer = _doctor(t, host, _meeting_places(t, internet, 1))
    _expect_kind(t, answer, "a public host", "none", True, [host.address])
    t.expect(_verdicts(answer, "punching (IPv4)") == ["good"], f"punching: {answer}")
    t.expect(not _verdicts(answer, "gateway"), "a gateway was asked that nobody needs")
    t.expect(answer["code"] == SUCCESS, f"exit code {answer['code']}")


@check(needs="namespaces", measures=True)
def the_doctor_says_that_udp_does_not_get_out(t):
    internet = t.internet()
    meeting = _meeting_places(t, internet, 2)
    host = internet.home("blocked").hosts[0]
    answer = _doctor(t, host, meeting)
    _expect_kind(t, answer, "blocked", "blocked", False, [])
    t.expect(_verdicts(answer, "UDP") == ["bad"], f"UDP: {answer}")
    t.expect(not _verdicts(answer, "gateway"), "a gateway was asked that helps nobody")
    t.expect(answer["code"] == FAILURE, f"exit code {answer['code']}")
    # A single silent rendezvous may be down.
    answer = _doctor(t, host, meeting[:1])
    _expect_kind(t, answer, "blocked, one asked", None, False, [])
    t.expect(_verdicts(answer, "UDP") == ["bad"], f"UDP: {answer}")


@check(needs="namespaces", measures=True)
def the_doctor_does_not_guess_what_one_rendezvous_cannot_show(t):
    internet = t.internet()
    meeting = _meeting_places(t, internet, 1)
    for kind, seen_as in (("preserving", "port-kept"), ("random", "unknown")):
        home = internet.home(kind)
        answer = _doctor(t, home.hosts[0], meeting)
        _expect_kind(t, answer, kind, seen_as, False, [home.outside])
        t.expect(_verdicts(answer, "punching (IPv4)") == ["note"], f"{kind}: {answer}")


@check(needs="namespaces", measures=True)
def the_doctor_says_which_rendezvous_is_dead_and_why(t):
    internet = t.internet()
    good = _meeting_places(t, internet, 1)
    empty = f"{internet.host('empty').address}:{PORT}"
    other = internet.host("other")
    with inside(other.namespace):
        _babble(t, other.address)
    stranger = f"{other.address}:{PORT}"
    host = internet.home("preserving").hosts[0]
    answer = _doctor(t, host, [*good, empty, stranger, _NOWHERE, _NO_NAME])
    outcomes = {one["name"]: one["outcome"] for one in answer["nat"]["rendezvous"]}
    wanted = {good[0]: "answered", empty: "refused", stranger: "invalid-response",
              _NOWHERE: "silent", _NO_NAME: "unresolved"}
    t.expect(outcomes == wanted, f"{outcomes}")
    t.expect([one["answers"] for one in answer["nat"]["rendezvous"]] == [True] + 4 * [False],
             f"{answer['nat']}")
    t.expect(sorted(_verdicts(answer, "rendezvous")) == ["good"] + 4 * ["note"], f"{answer}")
    for name in wanted:
        facts = [one["fact"] for one in _findings(answer, "rendezvous") if one["fact"].startswith(name)]
        t.expect(len(facts) == 1, f"{name}: {facts}")
    t.expect(answer["code"] == SUCCESS, f"exit code {answer['code']}")
    # Three seconds for name resolution, two for the answers, three for the gateway.
    t.figure("took", answer["took"], "s", at_most=10)
    answer = _doctor(t, host, [_NO_NAME])
    t.expect(_verdicts(answer, "UDP") == ["bad"], f"nothing resolves: {answer}")
    t.expect(answer["code"] == FAILURE, f"exit code {answer['code']}")


@check(needs="namespaces", measures=True)
def the_doctor_says_that_the_gateway_opens_ports_and_leaves_none_open(t):
    reason = reason_against_gateways()
    if reason:
        t.skip(reason)
    internet = t.internet()
    meeting = _meeting_places(t, internet, 1)
    for way, natpmp in (("NAT-PMP", True), ("UPnP", False)):
        home = internet.home("random")
        gateway = Gateway(home, os.path.join(t.folder, way), natpmp=natpmp, upnp=not natpmp)
        try:
            answer = _doctor(t, home.hosts[0], meeting)
            left = gateway.mappings()
        finally:
            gateway.close()
        t.expect(_verdicts(answer, "gateway") == ["good"], f"{way}: {answer}")
        fact = "".join(one["fact"] for one in _findings(answer, "gateway"))
        t.expect(way in fact and home.outside in fact, f"{way}: {fact}")
        t.expect(not left, f"{way}: left open: {left}")
        _expect_kind(t, answer, way, "unknown", False, [home.outside])
        t.figure(f"{way}: took", answer["took"], "s")


@check(needs="namespaces", measures=True)
def the_doctor_asks_the_rendezvous_remembered_beside_a_running_node(t):
    internet = t.internet()
    meeting = _meeting_places(t, internet, 2)
    home = internet.home("random")
    host = home.hosts[0]
    data = os.path.join(t.folder, "kept")
    answer = _doctor(t, host, [], "--data", data)
    t.expect(answer["nat"] is None and not _verdicts(answer, "gateway"),
             f"somebody was asked unasked: {answer}")
    through = [part for one in meeting for part in ("--rendezvous", one)]
    node = t.node("anna", *through, "--no-lan", host=host, data=data, video="none", audio="none",
                  call=False)
    node.ready()
    # The node stores every ten seconds which rendezvous have answered.
    t.pause(12)
    answer = _doctor(t, host, [], "--data", data)
    _expect_kind(t, answer, "random", "port-per-destination", True, [home.outside])
    t.expect(_verdicts(answer, "data directory") == ["note"], f"the node has ended: {answer}")
    t.expect(node.is_running, "the node did not survive the doctor")


@check(measures=True)
def ping_and_the_doctor_show_the_path_to_a_member(t):
    quiet = {"video": "none", "audio": "none", "call": False}
    data = os.path.join(t.folder, "asked")
    anna = t.node("anna", data=data, **quiet)
    anna.ready()
    berta = t.node("berta", **quiet)
    anna.wait("member.joined", member=berta.id)
    answer = _ask(t, "ping", "berta", "--count", "2", "--data", data)
    t.expect((answer["member"], answer["name"]) == (berta.id, "berta"), f"another: {answer}")
    t.require(len(answer["paths"]) == 1, f"one link has {len(answer['paths'])} paths: {answer}")
    path = answer["paths"][0]
    t.expect(path["channel"] == t.channel and path["via"] is None and path["address"],
             f"not a direct path: {path}")
    t.expect((path["sent"], path["received"], path["lossPercent"]) == (2, 2, 0), f"lost: {path}")
    t.expect(0 < path["minMs"] <= path["avgMs"] <= path["maxMs"] < 1000, f"round trips: {path}")

    report = _ask(t, "doctor", "--node", "--data", data)
    t.expect(report["id"] == anna.id and report["uptime"] > 0, f"another node: {report}")
    t.require(len(report["links"]) == 1, f"not one link: {report['links']}")
    link = report["links"][0]
    t.expect((link["channel"], link["member"]) == (t.channel, berta.id), f"another link: {link}")
    t.expect((link["phase"], link["via"]) == ("active", None), f"not in use: {link}")
    t.expect(link["address"] == path["address"], f"{link['address']}, not {path['address']}")
    used = [one for one in report["paths"] if one["inUse"]]
    t.require(len(used) == 1, f"not one path in use: {report['paths']}")
    t.expect((used[0]["member"], used[0]["address"], used[0]["validation"])
             == (berta.id, path["address"], "validated"), f"another path: {used[0]}")
    t.expect(min(used[0]["datagramsOut"], used[0]["datagramsIn"]) > 0
             and used[0]["bytesOut"] > used[0]["datagramsOut"], f"no traffic: {used[0]}")
    t.expect(report["counters"].get("wake.channel", 0) > 0, f"never woken: {report['counters']}")
    t.expect("store" in {queue["name"] for queue in report["queues"]}, f"queues: {report['queues']}")
    t.figure("round trip", path["avgMs"], "ms")


def _ask(t, *arguments):
    """Runs a command of `muster` that asks a running node; returns its JSON output."""
    done = subprocess.run(
        [t.muster, *arguments, "--json"], stdin=subprocess.DEVNULL, capture_output=True, text=True,
        timeout=30, env=clean_environment(t.folder))
    t.require(done.returncode == 0 and done.stdout.startswith("{"),
              f"{arguments}: {done.returncode}: {done.stdout[:300]} {done.stderr[:300]}")
    return json.loads(done.stdout)


def _meeting_places(t, internet, count):
    """Starts `count` rendezvous, each on a public host; returns their addresses."""
    places = []
    for _ in range(count):
        name = f"rendezvous-{len(t.nodes)}"
        host = internet.host(name)
        place = f"{host.address}:{PORT}"
        t.nodes.append(Rendezvous(t.muster, name, place, os.path.join(t.folder, name), host))
        places.append(place)
    return places


def _doctor(t, host, meeting, *more):
    """Runs `muster doctor`; returns its JSON output with `code` and `took`."""
    asked = [part for one in meeting for part in ("--rendezvous", one)]
    started = time.monotonic()
    done = subprocess.run(
        ["ip", "netns", "exec", host.namespace, t.muster, "doctor", "--json", *asked, *more],
        stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=30,
        env=clean_environment(t.folder))
    t.require(done.stdout.startswith("{"), f"{done.stdout[:300]} {done.stderr[:300]}")
    return {**json.loads(done.stdout), "code": done.returncode, "took": time.monotonic() - started}


def _findings(answer, subject):
    return [one for one in answer["findings"] if one["subject"] == subject]


def _verdicts(answer, subject):
    return [one["verdict"] for one in _findings(answer, subject)]


def _expect_kind(t, answer, what, kind, is_certain, outside):
    nat = (answer["nat"] or {}).get("ipv4")
    wanted = {"kind": kind, "certain": is_certain, "publicAddresses": outside}
    t.expect(nat == wanted, f"{what}: {nat} rather than {wanted}")


def _babble(t, address):
    """Answers every datagram with junk until the check ends."""
    babbler = subprocess.Popen(
        [sys.executable, "-c",
         "import socket, sys\n"
         "own = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)\n"
         "own.bind((sys.argv[1], int(sys.argv[2])))\n"
         "print('ready', flush=True)\n"
         "while True: own.sendto(b'HTTP/1.1 400 Bad Request', own.recvfrom(2048)[1])\n",
         address, str(PORT)], stdout=subprocess.PIPE, text=True)
    t.later(lambda: (babbler.kill(), babbler.wait(), babbler.stdout.close()))
    t.require(babbler.stdout.readline() == "ready\n", "the babbler does not start")

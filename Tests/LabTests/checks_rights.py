"""Created channels: roles, removal, and persistence across crashes."""

import json
import os
import random
import signal
import subprocess
import time

from check import check
from node import Node, clean_environment

# Seconds; none of the waits takes one on an idle machine.
LIMIT = 60

QUIET = {"video": "none", "audio": "none", "passphrase": False}


def data(t, name):
    return os.path.join(t.folder, name + ".data")


def run(t, *arguments, code=0):
    """Runs a command and returns its output; an exit code other than `code` fails the check."""
    done = subprocess.run([t.muster, *arguments], capture_output=True, text=True, timeout=60,
                          env=clean_environment(t.folder), stdin=subprocess.DEVNULL)
    t.expect(done.returncode == code,
             f"muster {' '.join(arguments[:3])}: {done.returncode}, {done.stderr.strip()[:200]}")
    return done.stdout if code == 0 else done.stderr


def created(t, owner="owner", *more):
    run(t, "channel", "create", t.channel, "--data", data(t, owner), *more)


def invite(t, role, owner="owner", *more):
    text = run(t, "invite", t.channel, "--role", role, "--data", data(t, owner), *more)
    return text.splitlines()[0].strip()


def guest(t, name, url, **options):
    options = {**QUIET, **options}
    return t.node(name, "--invite", url, channels=[t.channel], **options)


def participants(node):
    """Who is in the call by the node's latest event about it; empty without one."""
    events = [event for kind in ("call.started", "call.joined", "call.left")
              for event in node.all(kind)]
    return max(events, key=lambda event: event["at"])["participants"] if events else []


@check(gate=True)
def invites_give_roles_and_roles_are_kept_to(t):
    created(t)
    urls = {role: invite(t, role) for role in ("presenter", "attendee", "consumer")}
    owner = t.node("owner", call=False, **QUIET)
    owner.ready()
    picture = {"video": "test:320x180@10", "audio": "tone"}
    presenter = guest(t, "presenter", urls["presenter"], call=False, **picture)
    attendee = guest(t, "attendee", urls["attendee"], call=False, **picture)
    consumer = guest(t, "consumer", urls["consumer"], call=False, **picture)
    nodes = [owner, presenter, attendee, consumer]
    for one in nodes:
        for other in nodes[1:]:
            if one is not other:
                seen = one.wait("member.joined", LIMIT, member=other.id)
                t.expect(seen["role"] == other.name, f"{other.name} is {seen['role']}")
    # A member without the right to start a call gets an error, and no call appears.
    for one in (attendee, consumer):
        sent = one.send("start-call")
        refused = one.wait("error", LIMIT, sent)
        t.expect("role" in refused["message"], refused["message"])
    t.pause(0.5)
    t.expect(not owner.all("call.started"), "a call by someone who may not")
    sent = presenter.send("start-call")
    for node in nodes:
        node.wait("call.started", LIMIT, sent)
    for node in (owner, attendee, consumer):
        node.send("join-call")
    owner.first_frame(presenter)
    owner.first_frame(attendee)
    consumer.first_frame(presenter)
    consumer.first_frame(attendee)
    t.pause(1)
    for node in (owner, presenter, attendee):
        t.expect(not node.all("media.first-frame", member=consumer.id),
                 f"{node.name} sees a consumer")
    # Roles change while all members are present.
    run(t, "channel", "grant", t.channel, consumer.id, "presenter", "--data", data(t, "owner"))
    for node in (owner, presenter, attendee):
        node.wait("member.updated", LIMIT, member=consumer.id, role="presenter")
    # A role starts nothing: the user does.
    consumer.wait("warning", LIMIT, where=lambda event: "off until" in event["message"])
    consumer.send("unmute", media="video")
    owner.first_frame(consumer)
    run(t, "channel", "grant", t.channel, presenter.id, "consumer", "--data", data(t, "owner"))
    for node in (owner, attendee):
        node.wait("member.updated", LIMIT, member=presenter.id, role="consumer")


@check()
def members_are_muted_for_everyone_and_removed_from_a_call(t):
    created(t)
    urls = {role: invite(t, role) for role in ("presenter", "attendee", "consumer")}
    picture = {"video": "test:320x180@10", "audio": "tone"}
    owner = t.node("owner", call=True, **QUIET)
    owner.wait("call.started", LIMIT)
    presenter = guest(t, "presenter", urls["presenter"], call=True)
    attendee = guest(t, "attendee", urls["attendee"], call=True, **picture)
    consumer = guest(t, "consumer", urls["consumer"], call=True)
    nodes = [owner, presenter, attendee, consumer]
    # What the owner sees is not yet known to all: a member is refused by its name until it is.
    everyone = sorted(node.id for node in nodes)
    for node in nodes:
        t.until(lambda: participants(node) == everyone, f"{node.name} knows of all in the call", LIMIT)
    owner.first_frame(attendee)
    # Not by equals or lower roles, and not by anyone outside of the call.
    for by, member, word in ((attendee, consumer, "role"), (presenter, owner, "owner"),
                             (consumer, attendee, "role"), (owner, owner, "owner")):
        sent = by.send("remove-from-call", member=member.id)
        refused = by.wait("error", LIMIT, sent)
        t.expect(word in refused["message"] and "remove-from-call" in refused["command"], refused)
    sent = presenter.send("mute-member", member=attendee.id, media="audio")
    for node in nodes:
        event = node.wait("call.moderated", LIMIT, sent, member=attendee.id)
        t.expect(event["by"] == presenter.id and event["muted"] == ["audio"]
                 and not event["removed"], event)
        node.wait("member.updated", LIMIT, sent, member=attendee.id, audioMuted=True)
    sent = attendee.send("unmute", media="audio")
    owner.wait("member.updated", LIMIT, sent, member=attendee.id, audioMuted=False)
    sent = presenter.send("remove-from-call", member=attendee.id)
    for node in nodes:
        left = node.wait("call.left", LIMIT, sent, member=attendee.id)
        t.expect(left["reason"] == "removed" and len(left["participants"]) == 3, left)
        t.expect(node.wait("call.moderated", LIMIT, sent)["removed"], "it is no removal")
    attendee.wait("call.state", LIMIT, sent, state="disconnected")
    # Neither at once nor as another process, but it is still a member.
    sent = attendee.send("join-call")
    refused = attendee.wait("error", LIMIT, sent)
    t.expect(f"removed from this call by {presenter.id}" in refused["message"], refused)
    attendee.send("quit")
    attendee.ended(LIMIT)
    again = t.node("attendee", call=True, **{**QUIET, **picture})
    refused = again.wait("error", LIMIT)
    t.expect("removed from this call" in refused["message"], refused)
    sent = again.send("say", text="may I come back?")
    owner.wait("message", LIMIT, sent, text="may I come back?")
    t.expect(not owner.all("call.joined", left["at"], member=again.id), "it is back in the call")
    # The owner removes the presenter, and ends the call; the next one is open to all.
    sent = owner.send("remove-from-call", member=presenter.id)
    presenter.wait("call.left", LIMIT, sent, member=presenter.id, reason="removed")
    sent = owner.send("leave-call")
    for node in (presenter, again):
        node.wait("call.ended", LIMIT, sent, reason="ended")
    sent = presenter.send("start-call")
    again.wait("call.started", LIMIT, sent, initiator=presenter.id)
    again.send("join-call")
    presenter.wait("call.joined", LIMIT, sent, member=again.id)


@check(gate=True)
def a_removed_member_is_out_and_stays_out(t):
    created(t)
    url = invite(t, "presenter", "owner", "--uses", "4")
    owner = t.node("owner", call=False, **QUIET)
    owner.ready()
    stays = guest(t, "stays", url, call=False)
    goes = guest(t, "goes", url, call=False)
    away = guest(t, "away", url, call=False)
    for node in (stays, goes, away):
        owner.wait("member.joined", LIMIT, member=node.id)
    # This event must not be mistaken later for a return of the member.
    stays.wait("member.joined", LIMIT, member=goes.id)
    goes_id, away_id = goes.id, away.id
    away.send("quit")
    owner.wait("member.left", LIMIT, member=away_id)
    removed = time.monotonic()
    run(t, "channel", "revoke", t.channel, goes_id, "--data", data(t, "owner"))
    for node in (owner, stays):
        left = node.wait("member.left", LIMIT, removed, member=goes_id)
        t.expect(left["reason"] == "removed", left["reason"])
    reported = goes.wait("error", LIMIT, removed)
    t.expect("removed" in reported["message"], reported["message"])
    sent = owner.send("say", text="among ourselves")
    stays.wait("message", LIMIT, sent, text="among ourselves")
    t.pause(1)
    t.expect(not goes.all("message"), "the removed one still reads")
    # An absent member gets the new key later; a removed one and an old invite do not.
    back = t.node("away", call=False, **QUIET)
    returned = back.wait("message", LIMIT, text="among ourselves")
    t.duration("back with the new key after", returned["at"] - back.ready()["at"], at_most=5)
    goes.send("quit")
    goes.ended(LIMIT)
    again = t.node("goes", call=False, **QUIET)
    reported = again.wait("error", LIMIT)
    t.expect("removed" in reported["message"], reported["message"])
    sent = again.send("join-call")
    reported = again.wait("error", LIMIT, sent)
    t.expect("removed" in reported["message"], reported["message"])
    late = guest(t, "late", url, call=False)
    reported = late.wait("error", LIMIT)
    t.expect("invite" in reported["message"], reported["message"])
    t.pause(1)
    for node in (again, late):
        t.expect(not node.all("message"), f"{node.name} reads")
        t.expect(not stays.all("member.joined", removed, member=node.id), f"{node.name} is in")
    t.expect(not again.all("link.up") and not again.all("member.joined"), "it sees the others")


def shown(t, owner="owner"):
    text = run(t, "channel", "show", t.channel, "--json", "--data", data(t, owner))
    return json.loads(text)["channels"][0]


@check()
def an_invite_is_for_as_many_as_it_says(t):
    created(t)
    url = invite(t, "presenter")
    owner = t.node("owner", call=False, **QUIET)
    owner.ready()
    first = guest(t, "first", url, call=False)
    owner.wait("member.joined", LIMIT, member=first.id)
    second = guest(t, "second", url, call=False)
    reported = second.wait("error", LIMIT)
    t.expect("invite" in reported["message"], reported["message"])
    entry = t.until(lambda: next(
        (one for one in shown(t)["invites"] if one["confirmed"] == [first.id]), None),
        "the owner confirms the one that came")
    t.expect(entry["uses"] == 1 and not entry["usable"], entry)
    # The owner removes the one that it knows: the other key of the same invite gets nothing either.
    run(t, "channel", "revoke", t.channel, first.id, "--data", data(t, "owner"))
    owner.wait("member.left", LIMIT, member=first.id)
    second.send("quit")
    second.ended(LIMIT)
    again = t.node("second", call=False, **QUIET)
    again.wait("error", LIMIT)
    t.expect(not owner.all("member.joined", member=second.id), "a second use of the invite")


@check()
def an_invite_goes_with_all_who_came_by_it(t):
    created(t)
    owner = t.node("owner", call=False, **QUIET)
    owner.ready()
    shared = invite(t, "attendee", "owner", "--uses", "2")
    one, other = (guest(t, name, shared, call=False) for name in ("one", "other"))
    stays = guest(t, "stays", invite(t, "attendee"), call=False)
    for node in (one, other, stays):
        owner.wait("member.joined", LIMIT, member=node.id)
    entry = t.until(lambda: next(
        (one for one in shown(t)["invites"] if len(one["confirmed"]) == 2), None),
        "the owner confirms both")
    listed = run(t, "channel", "revoke", t.channel, one.id, "--dry-run", "--data", data(t, "owner"))
    t.expect(other.id in listed and entry["invite"] in listed and stays.id not in listed, listed)
    unknown = run(t, "channel", "revoke", t.channel, "nobody", "--dry-run", "--data",
                  data(t, "owner"), code=1)
    t.expect("nobody" in unknown, unknown)
    told = run(t, "channel", "revoke", t.channel, entry["invite"], "--data", data(t, "owner"))
    t.expect(one.id in told and other.id in told and stays.id not in told, told)
    for node in (one, other):
        left = owner.wait("member.left", LIMIT, member=node.id)
        t.expect(left["reason"] == "removed", left["reason"])
        reported = node.wait("error", LIMIT)
        t.expect("removed" in reported["message"], reported["message"])
    sent = owner.send("say", text="among ourselves")
    stays.wait("message", LIMIT, sent, text="among ourselves")
    t.expect(not one.all("message") and not other.all("message"), "they still read")


@check()
def the_fault_of_an_invite_is_reported(t):
    created(t)
    url = invite(t, "attendee", "owner", "--uses", "2")
    for bad in ("nonsense", url[:-7], url.replace("muster://", "http://")):
        reported = run(t, "join", "--invite", bad, "--json", "--no-view", "--interface", "lo",
                   "--data", data(t, "nobody"), code=2)
        t.expect("invite" in reported and reported.count("\n") <= 1, reported)
    reported = run(t, "channel", "revoke", "nowhere", "somebody", "--data", data(t, "owner"), code=1)
    t.expect("nowhere" in reported, reported)
    # Open channels have no owner who could remove a member.
    node = t.node("open", call=False, video="none", audio="none")
    node.ready()
    reported = run(t, "channel", "revoke", t.channel, "0123456789abcdef", "--data", data(t, "open"),
               code=1)
    t.expect("open" in reported, reported)
    # From a file and from standard input.
    path = os.path.join(t.folder, "invite.txt")
    with open(path, "w", encoding="utf-8") as file:
        file.write(url + "\n")
    one = guest(t, "from-file", path, call=False)
    t.expect(one.ready()["channels"] == [t.channel], "from a file")
    other = guest(t, "from-input", "-", call=False)
    other.send((url + "\n").encode())
    t.expect(other.ready()["channels"] == [t.channel], "from standard input")


@check()
def a_patched_node_gets_nowhere(t):
    lawless = t.built("muster-lawless")
    created(t)
    url = invite(t, "consumer")
    owner = t.node("owner", call=False, **QUIET)
    owner.ready()
    honest = guest(t, "honest", invite(t, "presenter"), call=False)
    honest.wait("member.joined", 10, member=owner.id)
    rogue = Node(lawless, "rogue", [
        "--invite", url, "--data", data(t, "rogue"), "--interface", "lo"],
        os.path.join(t.folder, "rogue"))
    t.nodes.append(rogue)
    for node in (owner, honest):
        node.wait("member.joined", 10, member=rogue.id)
    # It starts a call and sends video and audio regardless of its role.
    rogue.send("start-call")
    rogue.wait("call.state", 10, state="connecting")
    t.pause(2)
    for node in (owner, honest):
        t.expect(not node.all("call.started"), f"{node.name} sees a consumer's call")
    sent = honest.send("start-call")
    owner.wait("call.started", 5, sent)
    rogue.wait("call.started", 5, sent)
    owner.send("join-call")
    rogue.send("join-call")
    owner.wait("call.joined", 10, member=rogue.id)
    rogue.wait("stats", 10, where=lambda event: any(
        peer["out"] and peer["out"]["frames"] > 10 for peer in event["peers"]))
    t.pause(1)
    for node in (owner, honest):
        t.expect(not node.all("media.first-frame", member=rogue.id), f"{node.name} sees it")


@check(measures=True)
def acknowledged_messages_survive_every_kill(t):
    kills = 200 if t.is_long else 12
    generator = random.Random(11)
    said, acknowledged = 0, set()
    slowest = 0.0
    for _ in range(kills):
        node = t.node("writer", call=False, video="none", audio="none")
        slowest = max(slowest, node.ready(30)["at"] - node.started_at)
        for _ in range(generator.randrange(3, 12)):
            node.send("say", text=f"word {said}")
            said += 1
        t.pause(generator.random() * 0.05)
        node.signal(signal.SIGKILL)
        node.ended(5)
        acknowledged |= {event["text"] for event in node.all("message")}
    reader = t.node("reader", call=False, video="none", audio="none")
    writer = t.node("writer", call=False, video="none", audio="none")
    writer.ready()
    reader.wait("member.joined", 20, member=writer.id)
    end = time.monotonic() + 30
    while time.monotonic() < end:
        known = [event["text"] for event in reader.all("message")]
        if acknowledged <= set(known):
            break
        time.sleep(0.1)
    t.figure("kills", kills)
    t.figure("acknowledged", len(acknowledged), "messages", at_least=kills)
    t.figure("lost", len(acknowledged - set(known)), at_most=0)
    t.figure("doubled", len(known) - len(set(known)), at_most=0)
    t.figure("slowest start", slowest, "s", at_most=5)


@check()
def two_processes_never_share_a_data_directory(t):
    first = t.node("anna", call=False, video="none", audio="none")
    first.ready()
    reported = run(t, "join", t.channel, "--json", "--no-view", "--interface", "lo",
               "--data", data(t, "anna"), code=1)
    t.expect(f"in use by a node (process {first.process.pid})" in reported, reported)
    # Its data can still be queried while it runs.
    shown = json.loads(run(t, "channel", "list", "--json", "--data", data(t, "anna")))
    t.expect(t.channel in json.dumps(shown), shown)
    t.expect(first.is_running, "the running node ended")

"""What members keep, whatever somebody with one invite does."""

import json
import os

from check import check
from checks_created import run


# Seconds; floods keep a slow machine busy.
_LIMIT = 120


def _channel(t, *invite):
    """An owner in a call with a presenter, and an invite for the attacker."""
    run(t, "channel", "create", t.channel)
    urls = [run(t, "invite", t.channel, *options).splitlines()[0].strip()
            for options in (("--role", "presenter"), invite)]
    owner = t.start_muster(name="owner", passphrase=False, call=True)
    owner.wait("call.state", state="connected")
    member = t.start_muster("--invite", urls[0], name="member", knows=[owner], passphrase=False,
                            call=True)
    owner.wait("call.joined", member=member.id)
    return owner, member, urls[1]


def _talk(one, other, text):
    sent = one.send("say", text=text)
    other.wait("message", _LIMIT, since=sent, text=text)


def _flooded(attacker, kind, count):
    sent = attacker.send("flood", kind=kind, count=count)
    attacker.wait("flooded", 5 * _LIMIT, since=sent)


@check()
def a_consumer_ends_no_call_and_silences_nobody(t):
    """Under five keys, with the highest counters, against calls and messages."""
    owner, member, url = _channel(t, "--role", "consumer", "--uses", "5")
    attacker = t.start_peer(invite=url, knows=[owner, member], call=True)
    owner.wait("member.joined", member=attacker.id)
    attacker.send("redeem", count=4)
    for kind, count in (("claims", 320), ("ends", 320), ("messages", 5000 if t.is_long else 500)):
        _flooded(attacker, kind, count)
        t.expect(not owner.all("call.ended") and not member.all("call.ended"),
                 f"{kind} end the call")
        _talk(member, owner, f"after {kind}")
        _talk(owner, member, f"and back after {kind}")
    # Another call can be started, and the attacker goes with its invite.
    sent = owner.send("leave-call")
    member.wait("call.ended", since=sent)
    sent = member.send("start-call")
    owner.wait("call.started", since=sent, initiator=member.id)
    shown = json.loads(run(t, "channel", "show", t.channel, "--json"))["channels"][0]
    used = next(one for one in shown["invites"] if attacker.id in one["confirmed"])
    run(t, "channel", "revoke", t.channel, used["invite"])
    owner.wait("member.left", _LIMIT, member=attacker.id, reason="removed")
    _talk(member, owner, "among ourselves")
    t.expect(not owner.all("warning") and not member.all("warning"),
             (owner.all("warning"), member.all("warning")))


def _cpu(node):
    """The time that a process has computed, in seconds."""
    with open(f"/proc/{node.process.pid}/stat", encoding="ascii") as file:
        fields = file.read().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


@check()
def many_uses_of_an_invite_cost_nobody_a_role(t):
    owner, member, url = _channel(t, "--role", "consumer", "--uses", "unlimited")
    granted = t.start_muster(
        "--invite", run(t, "invite", t.channel).splitlines()[0].strip(), name="granted",
        knows=[owner, member], passphrase=False)
    owner.wait("member.joined", member=granted.id)
    run(t, "channel", "grant", t.channel, granted.id, "presenter")
    attacker = t.start_peer(invite=url, knows=[owner, member])
    owner.wait("member.joined", member=attacker.id)
    count, before = 2000 if t.is_long else 200, _cpu(owner)
    sent = attacker.send("redeem", count=count)
    attacker.wait("flooded", 5 * _LIMIT, since=sent)
    # The owner confirms what it has taken.
    _talk(member, owner, "all of them came")
    t.pause(5)
    t.figure("owner's CPU for each redemption", 1000 * (_cpu(owner) - before) / count, "ms")
    shown = json.loads(run(t, "channel", "show", t.channel, "--json"))["channels"][0]
    roles = {one["member"]: one["role"] for one in shown["members"]}
    for node in (member, granted):
        t.expect(roles.get(node.id) == "presenter", f"{node.name} is {roles.get(node.id)}")
    # Their roles outlast a change of the key, which the invented keys do not get.
    used = next(one for one in shown["invites"] if attacker.id in one["confirmed"])
    run(t, "channel", "revoke", t.channel, used["invite"])
    owner.wait("member.left", _LIMIT, member=attacker.id, reason="removed")
    _talk(member, owner, "still here")
    _talk(granted, member, "still here, too")
    for node in (owner, member, granted):
        t.expect(len(node.roster()) == 2, f"{node.name} sees {len(node.roster())} members")


@check()
def a_key_without_a_role_reads_nothing(t):
    owner, member, url = _channel(t, "--role", "presenter")
    _talk(member, owner, "among ourselves")
    outsider = t.start_peer("--no-redemption", invite=url, knows=[owner, member])
    outsider.wait("refused", 60, member=owner.id, reason="no role")
    _talk(owner, member, "still among ourselves")
    t.pause(2)
    for kind in ("message", "member.joined", "call.started"):
        t.expect(not outsider.all(kind), f"an outsider gets {outsider.all(kind)}")

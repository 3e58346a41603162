"""Consent and clarity: what members learn of their roles, and which channel a name means."""

import json
import os
import shutil
import subprocess
import time

from check import check
from checks_rights import LIMIT, QUIET, created, data, guest, invite, run, shown
from node import clean_environment


def removals(node):
    return [event for event in node.all("error") if "removed" in event["message"]]


def removed_while_away(t, owner):
    """The removal of a member that has left, and then comes back."""
    member = guest(t, "member", invite(t, "presenter"), call=False)
    owner.wait("member.joined", LIMIT, member=member.id)
    member_id = member.id
    member.send("quit")
    owner.wait("member.left", LIMIT, member=member_id)
    member.ended(LIMIT)
    run(t, "channel", "revoke", t.channel, member_id, "--data", data(t, "owner"))
    return member_id


@check()
def a_removed_member_learns_it_once_in_each_run(t):
    created(t)
    owner = t.node("owner", call=False, **QUIET)
    owner.ready()
    removed_while_away(t, owner)
    again = t.node("member", call=False, **QUIET)
    again.wait("error", LIMIT)
    # Refusals last for 20 s, so two more attempts to connect follow.
    t.pause(45)
    t.expect(len(removals(again)) == 1, again.all("error"))
    again.send("quit")
    again.ended(LIMIT)
    owner.send("quit")
    owner.ended(LIMIT)
    # Nobody is there to tell it.
    alone = t.node("member", call=False, **QUIET)
    reported = alone.wait("error", LIMIT)
    t.expect("removed" in reported["message"], reported)
    t.pause(2)
    t.expect(len(removals(alone)) == 1, alone.all("error"))


@check()
def a_new_invite_brings_a_removed_member_back_without_a_complaint(t):
    created(t)
    owner = t.node("owner", call=False, **QUIET)
    owner.ready()
    member_id = removed_while_away(t, owner)
    # With and without having heard of the removal.
    for hears in (False, True):
        if hears:
            run(t, "channel", "revoke", t.channel, member_id, "--data", data(t, "owner"))
            told = t.node("member", call=False, **QUIET)
            told.wait("error", LIMIT)
            told.send("quit")
            told.ended(LIMIT)
        url = invite(t, "presenter")
        back = guest(t, "member", url, call=False)
        owner.wait("member.joined", LIMIT, back.started_at, member=member_id)
        back.wait("member.joined", LIMIT, member=owner.id)
        t.pause(5)
        t.expect(not back.all("error"), back.all("error"))
        back.send("quit")
        back.ended(LIMIT)
        owner.wait("member.left", LIMIT, back.started_at, member=member_id)


@check()
def an_expired_invite_opens_nothing(t):
    created(t)
    url = invite(t, "presenter", "owner", "--expires", "2s")
    owner = t.node("owner", video="none", audio="none", passphrase=False)
    owner.wait("call.state", LIMIT, state="connected")
    owner.send("say", text="among ourselves")
    owner.wait("message", LIMIT, text="among ourselves")
    t.pause(3)
    for name in ("one", "other"):
        late = guest(t, name, url, call=False)
        reported = late.wait("error", LIMIT)
        t.expect("expired" in reported["message"], reported)
        t.pause(1)
        for kind in ("message", "member.joined", "call.started"):
            t.expect(not late.all(kind), f"{name} gets {late.all(kind)}")


@check()
def a_name_without_a_secret_is_the_remembered_channel(t):
    secret = {"video": "none", "audio": "none", "call": False}
    here = t.node("here", **secret)
    other = t.node("other", **secret)
    here.wait("member.joined", LIMIT, member=other.id)
    other.send("leave-channel")
    here.wait("member.left", LIMIT, member=other.id)
    other.send("join-channel", channel=t.channel)
    here.wait("member.joined", LIMIT, member=other.id, since=here.wait("member.left")["at"])
    t.expect(not [one for one in other.all("warning") if "passphrase" in one["message"]],
             other.all("warning"))
    # A name that is not remembered says that anyone may join.
    sent = other.send("join-channel", channel=t.channel + "-public")
    other.wait("warning", LIMIT, sent, where=lambda event: "passphrase" in event["message"])


@check()
def a_promotion_turns_nothing_on(t):
    created(t)
    picture = {"video": "test:320x180@10", "audio": "tone", "passphrase": False}
    url = invite(t, "consumer")
    owner = t.node("owner", **picture)
    member = guest(t, "member", url, **picture)
    owner.wait("call.joined", LIMIT, member=member.id)
    member.first_frame(owner)
    sent = owner.send("say", text="marks the time")
    run(t, "channel", "grant", t.channel, member.id, "attendee", "--data", data(t, "owner"))
    seen = owner.wait("member.updated", LIMIT, sent, member=member.id, role="attendee")
    warned = member.wait("warning", LIMIT, sent, where=lambda one: "off until" in one["message"])
    t.expect("microphone" in warned["message"] and "camera" in warned["message"], warned)
    owner.wait("member.updated", LIMIT, sent, member=member.id, audioMuted=True, videoMuted=True)
    t.pause(3)
    t.expect(not owner.all("media.first-frame", member=member.id), "it sends unasked")
    member.send("unmute", media="video")
    member.send("unmute", media="audio")
    owner.first_frame(member, LIMIT)
    owner.wait("member.updated", LIMIT, seen["at"], member=member.id, audioMuted=False)


@check()
def the_end_of_a_role_is_announced_and_not_that_of_its_invite(t):
    created(t)
    url = invite(t, "presenter", "owner", "--expires", "4s", "--role-expires", "12s")
    owner = t.node("owner", video="none", audio="none", passphrase=False)
    owner.wait("call.state", LIMIT, state="connected")
    member = guest(t, "member", url)
    joined = owner.wait("call.joined", LIMIT, member=member.id)
    warned = member.wait("warning", LIMIT, where=lambda one: " ends in " in one["message"])
    t.expect(warned["at"] - joined["at"] < 3, "announced late")
    # The role outlasts the invite.
    t.pause(5)
    t.expect(not owner.all("member.left") and not owner.all("call.left"), "it went too early")
    owner.wait("call.left", LIMIT, member=member.id)
    reported = member.wait("error", LIMIT)
    t.expect("expired" in reported["message"], reported)
    # The owner says that the key changed, since the member could still find the others.
    owner.wait("warning", LIMIT, where=lambda one: "key" in one["message"])


@check()
def channels_of_one_name_are_told_apart(t):
    created(t, "here")
    created(t, "elsewhere")
    own = listed(t)[0]["id"]
    url = invite(t, "attendee", "elsewhere")
    # A link must not stand for the channel that its user has under the name.
    refused = run(t, "join", "--invite", url, "--data", data(t, "here"), "--interface", "lo",
                  "--no-view", "--video", "none", "--audio", "none", "--speaker", "none", code=2)
    t.expect(own[:16] in refused and "rename" in refused, refused)
    run(t, "channel", "rename", own, "mine", "--data", data(t, "here"))
    visit = guest(t, "here", url, call=False)
    joined = visit.ready()["joined"]
    t.expect([one["channel"] for one in joined] == [t.channel] and joined[0]["id"] != own[:16]
             and joined[0]["kind"] == "created", joined)
    visit.send("quit")
    visit.ended(LIMIT)
    refused = run(t, "channel", "rename", "mine", t.channel, "--data", data(t, "here"), code=1)
    t.expect("already" in refused, refused)
    run(t, "invite", own[:16], "--data", data(t, "here"))
    node = t.node("here", channels=["mine"], call=False, **QUIET)
    t.expect(node.ready()["channels"] == ["mine"], node.ready())
    sent = node.send("join-channel", channel=t.channel)
    t.expect("in use" not in run(t, "channel", "list", "--data", data(t, "here")), "the list")
    refused = run(t, "channel", "forget", t.channel, "--data", data(t, "here"), code=1)
    t.expect("leave" in refused, refused)
    node.send("leave-channel", channel=t.channel)
    t.until(lambda: succeeds(t, "channel", "forget", t.channel, "--data", data(t, "here")),
            "it is forgotten")
    t.expect([one["id"] for one in listed(t)] == [own] and not node.all("error", sent), listed(t))


def succeeds(t, *arguments):
    done = subprocess.run([t.muster, *arguments], capture_output=True, timeout=60,
                          env=clean_environment(t.folder), stdin=subprocess.DEVNULL)
    return done.returncode == 0


def listed(t):
    return json.loads(run(t, "channel", "list", "--json", "--data", data(t, "here")))["channels"]


@check()
def secrets_that_keep_nobody_out_bring_a_warning(t):
    path = os.path.join(t.folder, "key")
    with open(path, "w", encoding="utf-8") as file:
        file.write("0123456789abcdef" * 4)
    os.chmod(path, 0o644)
    node = t.node("file", "--key-file", path, call=False, **QUIET)
    warned = node.wait("warning", LIMIT, where=lambda one: "key file" in one["message"])
    t.expect(path in warned["message"] and "chmod" in warned["hint"], warned)
    os.chmod(path, 0o600)
    again = t.node("private", "--key-file", path, call=False, **QUIET)
    weak = t.node("weak", "--passphrase", "abc", call=False, **QUIET)
    weak.wait("warning", LIMIT, where=lambda one: "guessed" in one["message"])
    again.ready()
    t.expect(not [one for one in again.all("warning") if "key file" in one["message"]], "private")


@check(measures=True)
def a_second_owner_keeps_the_channel_when_the_first_is_gone(t):
    created(t)
    url = invite(t, "attendee", "owner", "--uses", "2")
    owner = t.node("owner", call=False, **QUIET)
    owner.ready()
    second = guest(t, "second", url, call=False)
    away = guest(t, "away", url, call=False)
    for node in (second, away):
        owner.wait("member.joined", LIMIT, member=node.id)
        t.until(lambda node=node: node.id in confirmed(t), "it is confirmed")
    run(t, "channel", "grant", t.channel, second.id, "owner", "--data", data(t, "owner"))
    second.wait("member.updated", LIMIT, member=second.id, role="owner")
    away.wait("member.updated", LIMIT, member=second.id, role="owner")
    second_id, away_id = second.id, away.id
    away.send("quit")
    away.ended(LIMIT)
    # More key changes than an absent member can follow.
    for _ in range(5):
        invite(t, "attendee")
        newest = next(one["invite"] for one in shown(t)["invites"] if one["usable"])
        run(t, "channel", "revoke", t.channel, newest, "--data", data(t, "owner"))
    t.until(lambda: shown(t, "second")["epoch"] == 5, "the second owner has the newest key")
    owner.send("quit")
    second.send("quit")
    owner.ended(LIMIT)
    second.ended(LIMIT)
    shutil.rmtree(data(t, "owner"))

    url = invite(t, "attendee", "second", "--uses", "2")
    second = t.node("second", call=False, **QUIET)
    third = guest(t, "third", url, call=False)
    fourth = guest(t, "fourth", url, call=False)
    nodes = [second, third, fourth]
    for one in nodes:
        for other in nodes:
            if one is not other:
                one.wait("member.joined", LIMIT, member=other.id)
    run(t, "channel", "grant", t.channel, third.id, "presenter", "--data", data(t, "second"))
    fourth.wait("member.updated", LIMIT, member=third.id, role="presenter")
    third.wait("member.updated", LIMIT, member=third.id, role="presenter")
    sent = third.send("start-call")
    for node in (second, fourth):
        node.wait("call.started", LIMIT, sent)
    removed = time.monotonic()
    answer = run(t, "channel", "revoke", t.channel, fourth.id, "--data", data(t, "second"))
    t.expect("new key" not in answer and "creator" in answer, answer)
    for node in (second, third):
        left = node.wait("member.left", LIMIT, removed, member=fourth.id)
        t.expect(left["reason"] == "removed", left)
    refused = fourth.wait("error", LIMIT, removed)
    t.expect("removed" in refused["message"], refused)
    # Only the channel's creator makes owners.
    refused = run(t, "channel", "grant", t.channel, third.id, "owner", "--data",
                  data(t, "second"), code=1)
    t.expect("owner" in refused, refused)
    t.expect(second.id == second_id, "another identity")
    back = guest(t, "away", invite(t, "attendee", "second"), call=False)
    second.wait("member.joined", LIMIT, back.started_at, member=away_id)


@check()
def members_go_on_without_any_owner(t):
    created(t)
    url = invite(t, "presenter", "owner", "--uses", "2")
    late = invite(t, "presenter", "owner", "--uses", "2")
    owner = t.node("owner", call=False, **QUIET)
    owner.ready()
    one = guest(t, "one", url, call=False)
    other = guest(t, "other", url, call=False)
    for node in (one, other):
        owner.wait("member.joined", LIMIT, member=node.id)
        t.until(lambda node=node: node.id in confirmed(t), "it is confirmed")
    owner.send("quit")
    owner.ended(LIMIT)
    shutil.rmtree(data(t, "owner"))
    # Roles outlast the owner, and its invites still work, until they end.
    newcomer = guest(t, "newcomer", late, call=False)
    sent = newcomer.send("start-call")
    for node in (one, other):
        node.wait("member.joined", LIMIT, member=newcomer.id)
        node.wait("call.started", LIMIT, sent)
    # Nobody else can invite, grant or remove.
    for words in (("invite", t.channel), ("channel", "grant", t.channel, other.id, "consumer"),
                  ("channel", "revoke", t.channel, other.id)):
        refused = run(t, *words, "--data", data(t, "one"), code=1)
        t.expect("owner" in refused, refused)


def confirmed(t):
    return [member for one in shown(t)["invites"] for member in one["confirmed"]]


@check()
def an_identity_is_backed_up_and_moved(t):
    created(t)
    url = invite(t, "presenter")
    owner = t.node("owner", call=False, **QUIET)
    member = guest(t, "member", url, call=False)
    owner.wait("member.joined", LIMIT, member=member.id)
    owner_id = owner.id
    backup = os.path.join(t.folder, "backup")
    words = ("--passphrase", "correct horse battery staple")
    refused = run(t, "identity", "export", backup, *words, "--data", data(t, "owner"), code=1)
    t.expect("node" in refused and not os.path.exists(backup), refused)
    owner.send("quit")
    owner.ended(LIMIT)
    run(t, "identity", "export", backup, *words, "--data", data(t, "owner"))
    t.expect(os.stat(backup).st_mode & 0o777 == 0o600, oct(os.stat(backup).st_mode))
    refused = run(t, "identity", "export", backup, *words, "--data", data(t, "owner"), code=1)
    t.expect("exists" in refused, refused)
    before = shown(t)
    shutil.rmtree(data(t, "owner"))
    refused = run(t, "identity", "import", backup, "--passphrase", "another one", "--data",
                  data(t, "moved"), code=1)
    t.expect("passphrase" in refused and not os.path.exists(data(t, "moved")), refused)
    run(t, "identity", "import", backup, *words, "--data", data(t, "moved"))
    after = shown(t, "moved")
    t.expect([after[name] for name in ("id", "isOwner", "epoch", "invites")]
             == [before[name] for name in ("id", "isOwner", "epoch", "invites")], after)
    moved = t.node("moved", call=False, **QUIET)
    seen = member.wait("member.joined", LIMIT, moved.started_at, member=owner_id)
    t.expect(seen["role"] == "owner", seen)
    removes_when_compared(t, member)
    refused = member.wait("error", LIMIT)
    t.expect("removed" in refused["message"], refused)
    # A directory with another identity is left alone.
    refused = run(t, "identity", "import", backup, *words, "--data", data(t, "member"), code=1)
    t.expect("in use" in refused or "another identity" in refused, refused)


def removes_when_compared(t, member):
    """Removes a member; the moved owner does so once it and a member know the same."""
    member_id = member.id
    t.until(lambda: succeeds(t, "channel", "revoke", t.channel, member_id, "--data",
                             data(t, "moved")), "the member is removed")


@check()
def an_older_backup_catches_up_with_the_channels_key(t):
    created(t)
    url = invite(t, "presenter", "owner", "--uses", "2")
    backup = os.path.join(t.folder, "backup")
    words = ("--passphrase", "correct horse battery staple")
    run(t, "identity", "export", backup, *words, "--data", data(t, "owner"))
    owner = t.node("owner", call=False, **QUIET)
    member = guest(t, "member", url, call=False)
    goes = guest(t, "goes", url, call=False)
    for node in (member, goes):
        owner.wait("member.joined", LIMIT, member=node.id)
    owner_id, goes_id = owner.id, goes.id
    run(t, "channel", "revoke", t.channel, goes_id, "--data", data(t, "owner"))
    member.wait("member.left", LIMIT, member=goes_id, reason="removed")
    owner.send("quit")
    owner.ended(LIMIT)
    shutil.rmtree(data(t, "owner"))

    run(t, "identity", "import", backup, *words, "--data", data(t, "moved"))
    t.expect(shown(t, "moved")["epoch"] == 0, shown(t, "moved"))
    # It would have another key than the members, and not find them any more.
    refused = run(t, "channel", "revoke", t.channel, "07" * 32, "--data", data(t, "moved"), code=1)
    t.expect("--force" in refused and shown(t, "moved")["epoch"] == 0, refused)
    moved = t.node("moved", call=False, **QUIET)
    member.wait("member.joined", LIMIT, moved.started_at, member=owner_id)
    t.until(lambda: shown(t, "moved")["epoch"] == 1, "it has the key in force")
    roles = {one["member"]: one["role"] for one in shown(t, "moved")["members"]}
    t.expect(roles.get(goes_id, "none") == "none" and roles[member.id] == "presenter", roles)
    sent = moved.send("say", text="back again")
    member.wait("message", LIMIT, sent, text="back again")
    removes_when_compared(t, member)
    t.expect("removed" in member.wait("error", LIMIT, sent)["message"], member.all("error"))

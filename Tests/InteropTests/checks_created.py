"""Created channels: invite, grant, epoch, refusal (section 12)."""

import os
import subprocess

from check import check
from context import latest
from frames import FRAMES, frames_received
from node import clean_environment
from peer.entries import Moderation

ATTENDEE, PRESENTER = 2, 3


def _data(t, name):
    return os.path.join(t.folder, name + ".data")


def run(t, *arguments):
    """Runs a `muster` command on the owner's directory; returns its standard output."""
    done = subprocess.run(
        [t.muster, *arguments, "--data", _data(t, "owner")], capture_output=True, text=True,
        timeout=60, env=clean_environment(t.folder), stdin=subprocess.DEVNULL)
    t.require(done.returncode == 0,
              f"muster {' '.join(arguments)}: expected exit code 0, saw {done.returncode}:"
              f" {done.stderr.strip()[:200]}")
    return done.stdout


def _owner_and_python(t, role="attendee", **options):
    run(t, "channel", "create", t.channel)
    invite = run(t, "invite", t.channel, "--role", role, "--uses", "3").splitlines()[0].strip()
    owner = t.start_muster(name="owner", passphrase=False)
    python = t.start_peer(invite=invite, knows=[owner], **options)
    joined = owner.wait("member.joined", member=python.id)
    t.expect(joined["role"] == role, f"expected the role {role}, saw {joined['role']}")
    return owner, python, invite


def talk(one, other, text):
    """Sends a text from one to the other, and waits for it."""
    sent = one.send("say", text=text)
    other.wait("message", since=sent, text=text, **{"from": one.id})


@check(gate=True)
def an_invite_is_redeemed(t):
    owner, python, _ = _owner_and_python(t)
    python.wait("role", role=ATTENDEE)
    python.wait("member.joined", member=owner.id)
    talk(owner, python, "welcome")
    talk(python, owner, "thank you")


@check()
def a_grant_changes_what_python_may_do(t):
    """An attendee may not start a call; as a presenter it may."""
    owner, python, _ = _owner_and_python(t, call=True)
    python.wait("role", role=ATTENDEE)
    talk(python, owner, "may I?")
    t.expect(not owner.all("call.started"), "expected no call by an attendee, saw call.started")
    run(t, "channel", "grant", t.channel, python.id, "presenter")
    python.wait("role", role=PRESENTER)
    owner.wait("member.updated", member=python.id, role="presenter")
    owner.wait("call.started", initiator=python.id)


@check(needs="ffmpeg")
def only_a_presenter_shares_a_screen(t):
    """An attendee may send its camera alone."""
    owner, python, _ = _owner_and_python(t, call=True, sends=True, shares=True)
    owner.send("start-call")
    frames_received(owner, python, FRAMES)
    shared = latest(python, "media", member=owner.id)["out"]["screen"]["frames"]
    t.expect(shared == 0, f"expected no frame of an attendee's screen, saw {shared}")
    run(t, "channel", "grant", t.channel, python.id, "presenter")
    frames_received(owner, python, FRAMES, "screen")


@check(gate=True)
def an_epoch_brings_a_new_key(t):
    owner, python, invite = _owner_and_python(t)
    guest = t.start_muster("--invite", invite, name="guest", knows=[owner], passphrase=False)
    owner.wait("member.joined", member=guest.id)
    python.wait("member.joined", member=guest.id)
    run(t, "channel", "revoke", t.channel, guest.id)
    epoch = python.wait("epoch", number=1)
    python.wait("handshake", member=owner.id, key=epoch["key"])
    left = owner.wait("member.left", member=guest.id)
    t.expect(left["reason"] == "removed", f"expected the reason removed, saw {left['reason']}")
    python.wait("member.left", member=guest.id)
    talk(owner, python, "among ourselves")
    talk(python, owner, "so we are")
    role = latest(python, "role")["role"]
    t.expect(role == ATTENDEE, f"expected to stay an attendee, saw role {role}")


@check()
def a_member_that_was_away_gets_the_new_key_from_python(t):
    """The owner is away as well when it returns: only Python can give it the key."""
    owner, python, invite = _owner_and_python(t)
    options = {"passphrase": False, "knows": [python]}
    away = t.start_muster("--invite", invite, name="away", **options)
    removed = t.start_muster("--invite", invite, name="removed", **options)
    for member in (away, removed):
        python.wait("member.joined", member=member.id)
        owner.wait("member.joined", member=member.id)
    away.send("quit")
    away.ended(10)
    python.wait("member.left", member=away.id)
    run(t, "channel", "revoke", t.channel, removed.id)
    epoch = python.wait("epoch", number=1)
    talk(owner, python, "under the new key")
    for one in (removed, owner):
        one.send("quit")
        one.ended(10)
    back = t.start_muster(name="away", **options)
    back.wait("message", text="under the new key")
    python.wait("handshake", since=back.ready()["at"], member=back.id, key=epoch["key"])


@check()
def a_member_is_removed_from_the_call(t):
    """By muster, by Python, and each of the two itself; the channel goes on."""
    owner, python, invite = _owner_and_python(t, "presenter")
    guest = t.start_muster("--invite", invite, name="guest", knows=[owner, python],
                           passphrase=False)
    python.wait("member.joined", member=guest.id)
    run(t, "channel", "grant", t.channel, guest.id, "attendee")
    guest.wait("member.updated", member=guest.id, role="attendee")
    owner.send("start-call")
    for one in (python, guest):
        one.wait("call.started", initiator=owner.id)
        one.send("join-call")
        owner.wait("call.joined", member=one.id)
    python.wait("call.joined", member=guest.id)
    sent = python.send("moderate", member=guest.id, actions=Moderation.MUTE_AUDIO)
    for one in (owner, guest):
        muted = one.wait("call.moderated", since=sent, member=guest.id, by=python.id)
        t.expect(muted["muted"] == ["audio"] and not muted["removed"], muted)
    sent = python.send("moderate", member=guest.id, actions=Moderation.REMOVE)
    for one in (owner, guest):
        one.wait("call.left", since=sent, member=guest.id, reason="removed")
    python.wait("call.left", since=sent, member=guest.id)
    sent = owner.send("remove-from-call", member=python.id)
    left = owner.wait("call.left", since=sent, member=python.id, reason="removed")
    t.expect(left["participants"] == [owner.id], left)
    python.wait("call.left", since=sent, member=python.id)
    talk(python, owner, "I am still here")
    # It does not come back to this call.
    python.send("join-call")
    talk(owner, python, "good bye")
    t.expect(not owner.all("call.joined", since=left["at"]), "expected nobody to come back")


@check(gate=True)
def a_removed_peer_is_refused(t):
    owner, python, _ = _owner_and_python(t)
    run(t, "channel", "revoke", t.channel, python.id)
    left = owner.wait("member.left", member=python.id)
    t.expect(left["reason"] == "removed", f"expected the reason removed, saw {left['reason']}")
    refused = python.wait("refused", member=owner.id)
    t.expect(refused["reason"] == "removed",
             f"expected to be refused because removed, saw {refused['reason']}")
    python.wait("role", role=0)

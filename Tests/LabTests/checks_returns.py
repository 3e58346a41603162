"""Nodes that come back: beside a short command, after a crash, and after leaving a channel."""

import signal
import time

from check import check
from checks_rights import LIMIT, QUIET, created, data, guest, invite, run


@check()
def a_node_waits_for_a_short_command_and_the_other_way_round(t):
    created(t)
    for number in range(25 if t.is_long else 5):
        node = t.node("owner", call=False, **QUIET)
        time.sleep(0.001 * (number % 5))
        invite(t, "presenter")
        node.ready()
        node.send("quit")
        # A command that runs while the node ends.
        invite(t, "presenter")
        t.expect(node.ended(LIMIT) == 0, "the node failed")


@check()
def an_owner_that_returns_joins_once(t):
    created(t)
    url = invite(t, "attendee", "owner", "--uses", "2")
    owner = t.node("owner", call=False, **QUIET)
    stays = guest(t, "stays", url, call=False)
    goes = guest(t, "goes", url, call=False)
    for node in (stays, goes):
        owner.wait("member.joined", LIMIT, member=node.id)
    stays.wait("member.joined", LIMIT, member=goes.id)
    owner_id = owner.id
    # The owner confirms new members within half a second; a key change removes unconfirmed ones.
    t.pause(2)
    owner.process.send_signal(signal.SIGKILL)
    owner.ended(LIMIT)
    run(t, "channel", "revoke", t.channel, goes.id, "--data", data(t, "owner"))
    run(t, "channel", "grant", t.channel, stays.id, "presenter", "--data", data(t, "owner"))
    stays.wait("member.left", LIMIT, member=owner_id, reason="crashed")
    back = t.node("owner", call=False, **QUIET)
    stays.wait("member.left", LIMIT, member=goes.id, reason="removed")
    back.wait("member.joined", LIMIT, member=stays.id)
    t.pause(1)
    joined, left = (stays.all(name, back.started_at, member=owner_id)
                    for name in ("member.joined", "member.left"))
    t.expect((len(joined), len(left)) == (1, 0), joined + left)


@check()
def a_channel_that_is_left_says_so_of_its_links(t):
    first, second = (t.node(name, call=False, **QUIET) for name in ("first", "second"))
    first.wait("link.up", LIMIT, member=second.id)
    sent = first.send("leave-channel")
    down = first.wait("link.down", LIMIT, sent, member=second.id)
    for name in ("member.left", "call.left", "call.ended"):
        t.expect(not first.all(name, since=sent), f"{name}: the others have not left")
    t.expect((down["channel"], down["reason"]) == (t.channel, "local"), down)

"""What the page shows of the node's states, and what its user can do then."""

import json
import time

from fake_node import member, message, room, snapshot

# Seconds within which the page says that the node does not respond.
NOTICED = 3

FOCUS = "document.activeElement.title || document.activeElement.tagName"
TABS = "[...document.querySelectorAll('#channels button')].map((tab) => tab.title)"
UNREAD = "document.querySelector('#unread:not([hidden])')?.textContent ?? ''"
TOASTS = "[...document.querySelectorAll('.toast')].map((toast) => toast.textContent)"
CLEAR = "document.querySelector('#toasts').replaceChildren()"


def show(browser, node, *rooms):
    """Shows a state, and waits until the page has applied it."""
    state = snapshot(*rooms)
    state["notices"] = []
    node.show(state)
    first = json.dumps(rooms[0]["self"]["inCall"])
    people = json.dumps([one["members"] for one in rooms])
    browser.wait(
        f"JSON.stringify(snapshot.rooms.map((one) => one.members)) === JSON.stringify({people})"
        f" && snapshot.rooms[0].self.inCall === {first}"
        f" && snapshot.rooms.map((one) => one.messages.length).join()"
        f" === '{','.join(str(len(one['messages'])) for one in rooms)}'", "the state")


def choose(browser, index):
    """Clicks the button of a channel."""
    browser.click(f"#channels button:nth-child({index})")
    browser.wait(
        f"document.querySelector('#channels button:nth-child({index})').ariaPressed === 'true'",
        "the channel")


def expect(found, wanted, what):
    assert found == wanted, f"{what}: {found!r} instead of {wanted!r}"


def becomes(browser, expression, wanted, what):
    """Waits for the value, since some browsers act on a key a little later."""
    deadline = time.monotonic() + 2
    while (found := browser.run(expression)) != wanted and time.monotonic() < deadline:
        time.sleep(0.02)
    expect(found, wanted, what)


def check_unread(browser, node):
    """Unread messages are counted in their channel, and shown at its button."""
    old = [message(i, f"Old {i}") for i in range(10)]
    people = [member(1), member(2)]
    attic = room("attic", people, old)
    quiet = [{**one, "inCall": False} for one in people]
    garage = room("garage", quiet, old, in_call=False)
    show(browser, node, attic, garage)
    browser.run(CLEAR)
    for index in (2, 1, 2, 1):
        choose(browser, index)
    expect(browser.run(UNREAD), "", "old messages are unread")
    expect(browser.run(TOASTS), [], "old messages are announced")
    expect(browser.run(TABS), ["attic, call going on", "garage"], "the channels")
    garage = room("garage", people, [*old, message(20, "New")], in_call=False)
    show(browser, node, attic, garage)
    expect(browser.run(TABS), ["attic, call going on", "garage, call going on, 1 unread"],
           "the channels after a message")
    expect(browser.run(TOASTS), ["Member 1 in garage: New"], "the notice of a message")
    expect(browser.run(UNREAD), "", "the message of another channel")
    choose(browser, 2)
    expect(browser.run(UNREAD), "1", "the message of the channel")
    browser.click("#talk")
    expect(browser.run(UNREAD), "", "a message that is read")
    choose(browser, 1)
    expect(browser.run(TABS)[1], "garage, call going on", "the channel after reading")
    browser.run("openChat(false)")


def check_drafts(browser, node):
    """A draft and its recipient stay in their channel."""
    show(browser, node, room("kitchen", [member(1)]), room("garage", [member(2)]))
    node.commands.clear()
    browser.run("openChat(true)")
    browser.run("document.querySelector('#to').value = '0000000000000001'")
    type_text(browser, "for the kitchen")
    choose(browser, 2)
    field = "[document.querySelector('#text').value, document.querySelector('#to').value]"
    expect(browser.run(field), ["", ""], "the draft of the other channel")
    type_text(browser, "for the garage")
    browser.key("Enter")
    choose(browser, 1)
    expect(browser.run(field), ["for the kitchen", "0000000000000001"], "the draft")
    node.refuse("no")
    browser.wait("!!document.querySelector('.toast.bad')", "the error")
    browser.run("document.querySelector('#text').focus()")
    browser.key("Enter")
    wait_for(lambda: len(node.commands) == 2, "the messages")
    said = [(one["channel"], one["text"], one.get("to")) for one in node.commands]
    expect(said, [("garage", "for the garage", None),
                  ("kitchen", "for the kitchen", "0000000000000001")], "the messages")
    choose(browser, 2)
    expect(browser.run(field), ["for the garage", ""], "the text that was refused")
    browser.run("openChat(false)")
    choose(browser, 1)


def type_text(browser, text):
    browser.run("document.querySelector('#text').focus()")
    for letter in text:
        browser.key(letter)


def wait_for(holds, what, timeout=10):
    deadline = time.monotonic() + timeout
    while not holds():
        assert time.monotonic() < deadline, f"waited {timeout} s in vain for {what}"
        time.sleep(0.02)


def check_last_frame(browser, node):
    """The own last picture goes with the call, however it ends."""
    inside = room("kitchen", [member(1)])
    people = [{**member(1), "inCall": False}]
    removed = room("kitchen", [member(1)], in_call=False)
    removed["call"]["removedBy"] = "Member 1"
    for name, outside in (("left", room("kitchen", [member(1)], in_call=False)),
                          ("ended", room("kitchen", people, in_call=False)),
                          ("removed", removed)):
        show(browser, node, inside)
        expect(browser.run("document.querySelectorAll('#me .tile.live').length"), 0,
               f"the picture before the first frame ({name})")
        node.send_frame(0)
        browser.wait("document.querySelectorAll('#me .tile.live').length === 1", "the picture")
        show(browser, node, outside)
        expect(browser.run("document.querySelector('#me .tile').hidden"), True, f"hidden ({name})")
        expect(browser.run("document.querySelectorAll('#me canvas').length"), 0,
               f"pictures ({name})")


def check_leaving(browser, node):
    """An initiator that leaves is asked what becomes of the others; who ended a call is shown."""
    is_open = "document.querySelector('#leaving').open"
    choices = ("[...document.querySelectorAll('#leaving button:not([hidden])')]"
               ".map((button) => button.textContent)")
    kitchen = room("kitchen", [member(1), member(2)])
    for button, sent in (("#hand-over", {"handOver": True}), ("#end-call", {}), ("#stay", None)):
        show(browser, node, kitchen)
        node.commands.clear()
        browser.click("#leave")
        expect(browser.run(choices), ["Hand over to Member 1 and leave", "End it for all", "Stay"],
               "the choices")
        # A key that is held on "Leave" answers nothing.
        expect(browser.run("document.activeElement.id"), "stay", "the focus")
        browser.click(button)
        expect(browser.run(is_open), False, f"the question after {button}")
        if sent is not None:
            wait_for(lambda: node.commands, f"the command of {button}")
        found = [{**one, "channel": None} for one in node.commands]
        expect(found, [] if sent is None else [{"do": "leave-call", "channel": None, **sent}],
               f"the command of {button}")
    browser.click("#leave")
    browser.key("Escape")
    becomes(browser, is_open, False, "the question after Escape")
    kitchen["call"]["successor"] = None
    show(browser, node, room("kitchen"))
    show(browser, node, kitchen)
    browser.click("#leave")
    expect(browser.run(choices), ["End it for all", "Stay"], "the choices without a successor")
    others = room("kitchen", [member(1)])
    others["call"]["initiator"] = member(1)["id"]
    show(browser, node, others)
    becomes(browser, is_open, False, "the question once another leads")
    for state in (others, room("kitchen")):
        show(browser, node, state)
        node.commands.clear()
        browser.click("#leave")
        wait_for(lambda: node.commands, "the command without a question")
        expect(browser.run(is_open), False, "a question of no use")
    quiet = room("kitchen", [{**member(1), "inCall": False}], in_call=False)
    show(browser, node, {**quiet, "endedBy": "Member 1"})
    becomes(browser, "document.querySelector('#lobby-text').textContent.split('.')[0]",
            "Member 1 ended the last call for all", "the lobby")


def check_removal(browser, node):
    """A member is removed from the call by keyboard, while others come, go and mute."""
    people = [member(1), member(2), member(3)]
    show(browser, node, room("kitchen", people))
    node.commands.clear()
    browser.click("#people > summary")
    for _ in range(12):
        browser.key("Tab")
        if browser.run(FOCUS) == "Remove Member 2 from the call":
            break
    becomes(browser, FOCUS, "Remove Member 2 from the call", "the focus")
    browser.key("Enter")
    becomes(browser, FOCUS, "Really remove Member 2?", "the focus after Enter")
    becomes(browser, "document.activeElement.ariaLabel", "Really remove Member 2?", "the name")
    people = [{**member(2), "audioMuted": True, "name": "Member 2"}, member(3), member(4)]
    show(browser, node, room("kitchen", people))
    becomes(browser, FOCUS, "Really remove Member 2?", "the focus after changes")
    browser.key("Enter")
    wait_for(lambda: node.commands, "the command")
    expect([(one["do"], one["member"]) for one in node.commands],
           [("remove-from-call", "0000000000000002")], "the commands")
    show(browser, node, room("kitchen", [{**member(2), "inCall": False}, *people[1:]]))
    becomes(browser, FOCUS, "People in this channel", "the focus after the removal")
    browser.key("Escape")
    becomes(browser, "document.querySelector('#people').open", False, "the list")


def check_silence(browser, node):
    """A node that has stopped is noticed, and so is its return."""
    show(browser, node, room("kitchen", [member(1)]))
    state = ("[document.querySelector('#gone').hidden, document.querySelector('#link').textContent,"
             " document.querySelector('#gone-title').textContent]")
    expect(browser.run(state)[:2], [True, "Connected"], "the node")
    clock = "document.querySelector('#clock').textContent"
    node.is_stopped = True
    stopped = time.monotonic()
    browser.wait("!document.querySelector('#gone').hidden", "the page to notice", NOTICED)
    seconds = time.monotonic() - stopped
    assert seconds < NOTICED, f"noticed after {seconds:.1f} s"
    expect(browser.run(state)[1:], ["Not responding", "Muster does not respond"], "the page")
    before = browser.run(clock)
    time.sleep(1.1)
    expect(browser.run(clock), before, "the clock")
    node.is_stopped = False
    browser.wait("document.querySelector('#gone').hidden", "the page to recover", 2)
    expect(browser.run(state)[1], "Connected", "the page afterwards")
    return {"noticed": round(seconds, 2)}


def check_bars(browser, node):
    """The bars follow what is seen and heard, and give the worst reason."""
    good = {"rttMs": 20, "lossPercent": 0, "fps": 30}
    for change, word in (
            ({}, "Good"),
            ({"why": "bandwidth"}, "Fair: the path has no room for more"),
            ({"why": "bandwidth", "fps": 0}, "Poor: the path has no room for more"),
            ({"why": "bandwidth", "fps": None}, "Poor: the path has no room for more"),
            ({"why": "uplink-share"}, "Fair: their uplink is shared"),
            ({"frozenMs": 300}, "Fair: the video freezes"),
            ({"frozenMs": 3000, "why": "bandwidth"}, "Poor: the video freezes"),
            ({"audioLostPercent": 2}, "Fair: sound is lost"),
            ({"audioLostPercent": 7, "frozenMs": 300}, "Poor: sound is lost"),
            ({"lossPercent": 1}, "Fair: packets are lost"),
            ({"rttMs": 450}, "Poor: long delay"),
            ({"rttMs": None, "lossPercent": None}, "")):
        found = browser.run(f"quality({json.dumps({**good, **change})}).word")
        expect(found, word, str(change))
    word = "document.querySelector('#grid .word').textContent"
    show(browser, node, room("kitchen", [member(5, **good, frozenMs=5000)]))
    expect(browser.run(word), "Good", "freezes of long ago")
    show(browser, node, room("kitchen", [member(5, **good, frozenMs=7000)]))
    expect(browser.run(word), "Poor: the video freezes", "a freeze")
    screen = {"stream": "screen", "tile": 9, "outranked": False}
    show(browser, node, room(
        "kitchen", [member(5, **good, why="bandwidth", layer="320x180@30", streams=[screen])]))
    words = browser.run("[...document.querySelectorAll('#grid .word')].map((one) => one.innerHTML)")
    expect(words, ["Fair: the path has no room for more", "Good"], "two streams of a member")

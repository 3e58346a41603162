"""The document: entries both ways, comparison, texts (sections 8, 9 and 11)."""

from check import check


def _agree(t, python, at_least):
    """Waits until muster's digest equals Python's."""
    equal = python.wait("digest", equal=True, where=lambda event: event["items"] >= at_least)
    t.expect(equal["items"] == equal["theirs"],
             f"expected equal counts, saw {equal['items']} and {equal['theirs']}")
    t.figure("items", equal["items"])


@check(gate=True)
def entries_travel_both_ways_and_digests_agree(t):
    python = t.start_peer()
    muster = t.start_muster(knows=[python])
    t.linked(python, muster)
    muster.send("say", text="from Swift")
    python.send("say", text="from Python")
    python.wait("message", text="from Swift", to=None, **{"from": muster.id})
    muster.wait("message", text="from Python", to=None, **{"from": python.id})
    # A presence and a neighbour report of each, and the two messages.
    _agree(t, python, 6)


@check()
def texts_to_one_member_open_on_both_sides(t):
    python = t.start_peer()
    muster = t.start_muster(knows=[python])
    t.linked(python, muster)
    muster.send("say", text="only for Python", to=python.id)
    python.wait("message", text="only for Python", to=python.id, **{"from": muster.id})
    python.send("say", text="only for Swift", to=muster.ready()["key"])
    muster.wait("message", text="only for Swift", to=muster.id, **{"from": python.id})


@check(gate=True)
def long_documents_are_compared_by_ranges(t):
    """Both have more than 32 items before they meet: fingerprints, lists, wants."""
    python = t.start_peer()
    for number in range(40):
        python.send("say", text=f"Python {number}")
    muster = t.start_muster()
    for number in range(60):
        muster.send("say", text=f"Swift {number}")
    muster.wait("message", text="Swift 59")
    bridge = t.start_peer(name="bridge", knows=[python, muster])
    bridge.wait("message", text="Swift 59")
    bridge.wait("message", text="Python 39")
    for number in range(60):
        python.wait("message", text=f"Swift {number}")
    for number in range(40):
        muster.wait("message", text=f"Python {number}")
    _agree(t, bridge, 100)


@check()
def an_author_who_equivocates_is_quarantined(t):
    """Two entries under one sequence: muster and a Python witness replace them by the same item.

    A third entry is acknowledged, and nothing more.
    """
    witness = t.start_peer(name="witness")
    muster = t.start_muster(knows=[witness])
    culprit = t.start_peer(name="culprit", knows=[muster, witness])
    t.linked(witness, muster, culprit)
    sent = culprit.send("equivocate")
    witness.wait("quarantined", member=culprit.id)
    muster.wait("member.left", since=sent, member=culprit.id)
    third = culprit.send("say", text="a third one")
    culprit.wait("acknowledged", since=third, member=muster.id)
    equal = witness.wait("digest", since=third, member=muster.id, equal=True)
    t.figure("items", equal["items"])
    t.expect(not muster.all("message", text="a third one"),
             "expected nothing more of the culprit, saw its text")


@check()
def entries_of_others_are_passed_on(t):
    """A newcomer gets a member's text from Python after the member has left."""
    python = t.start_peer()
    first = t.start_muster(knows=[python])
    t.linked(python, first)
    first.send("say", text="before I go")
    python.wait("message", text="before I go")
    first.send("quit")
    first.ended(10)
    python.wait("member.left", member=first.id)
    second = t.start_muster(name="berta", knows=[python])
    second.wait("message", text="before I go", **{"from": first.id})

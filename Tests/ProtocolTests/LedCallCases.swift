import MusterWire

// Calls that are led or not, calls in which a member has waited, and removals (section 10).

/// Calls that somebody may lead, and calls that nobody may.
let ledCalls: [Case] = [
  callCase(
    "led-before-older", "A call with its initiator displaces an older one that nobody may lead.",
    [.claim(.anna, 5), .claim(.carl, 9, blue)],
    present: [(.bert, red, 6), (.carl, blue, 9)],
    roles: [(.bert, .consumer)],
    expected: found(blue, by: .carl, order: 9, standing: 0, [.carl])),
  callCase(
    "led-before-lasting", "It displaces a better established one, too.",
    [
      .claim(.anna, 5), .joining(.bert, 7, stage: 2), .joining(.dora, 8, stage: 2),
      .claim(.carl, 9, blue),
    ],
    present: [(.bert, red, 6), (.dora, red, 6), (.carl, blue, 9)],
    roles: [(.bert, .consumer), (.dora, .consumer)],
    expected: found(blue, by: .carl, order: 9, standing: 0, [.carl])),
  callCase(
    "led-before-own", "Participants of a call that nobody may lead move to one that is led.",
    [
      .claim(.anna, 5), .joining(.bert, 7, stage: 2), .joining(.dora, 8, stage: 2),
      .claim(.carl, 9, blue),
    ],
    present: [(.bert, red, 6), (.carl, blue, 9)],
    roles: [(.bert, .consumer), (.dora, .consumer)], viewer: .bert,
    expected: found(blue, by: .carl, order: 9, standing: 0, [.carl])),
  callCase(
    "led-keeps-its-own",
    "Participants of a call that is led do not move to one that nobody may lead.",
    [
      .claim(.anna, 5), .joining(.bert, 7, stage: 2), .joining(.dora, 8, stage: 2),
      .claim(.carl, 9, blue),
    ],
    present: [(.bert, red, 6), (.dora, red, 6), (.carl, blue, 9)],
    roles: [(.bert, .consumer), (.dora, .consumer)], viewer: .carl,
    expected: found(blue, by: .carl, order: 9, standing: 0, [.carl])),
  callCase(
    "led-without-initiator", "One who may take a call over leads it well enough.",
    [.claim(.anna, 5), .claim(.carl, 9, blue)],
    present: [(.dora, red, 6), (.carl, blue, 9)],
    expected: found(standing: 0, [.dora])),
  callCase(
    "led-by-attendee", "An attendee leads no call.",
    [.claim(.anna, 5), .claim(.carl, 9, blue)],
    present: [(.bert, red, 6), (.carl, blue, 9)],
    roles: [(.bert, .attendee)],
    expected: found(blue, by: .carl, order: 9, standing: 0, [.carl])),
  callCase(
    "led-from-elsewhere", "An initiator leads the call in which it is present only.",
    [.claim(.anna, 5), .claim(.carl, 9, blue)],
    present: [(.bert, red, 6), (.carl, blue, 9), (.anna, blue, 10)],
    roles: [(.bert, .consumer)],
    expected: found(blue, by: .carl, order: 9, standing: 0, [.carl, .anna])),
  callCase(
    "led-by-removed", "Somebody who was removed from a call does not lead it.",
    [.claim(.anna, 5), .moderation(.anna, 7, of: .dora), .claim(.carl, 9, blue)],
    present: [(.bert, red, 6), (.dora, red, 6), (.carl, blue, 9)],
    roles: [(.anna, .owner), (.bert, .consumer)],
    expected: found(blue, by: .carl, order: 9, standing: 0, [.carl])),
  callCase(
    "led-by-successor", "The author of the leading claim leads.",
    [.claim(.anna, 5), .claim(.dora, 8, term: 2, order: 5), .claim(.carl, 9, blue)],
    present: [(.dora, red, 6), (.carl, blue, 9)],
    roles: [(.bert, .consumer)],
    expected: found(by: .dora, term: 2, standing: 3, [.dora])),
  callCase(
    "led-by-first-initiator", "The first initiator may take the call over again.",
    [.claim(.anna, 5), .claim(.dora, 8, term: 2, order: 5), .claim(.carl, 9, blue)],
    present: [(.anna, red, 5), (.carl, blue, 9)],
    expected: found(by: .dora, term: 2, standing: 3)),
  callCase(
    "both-led", "Of two calls that are led the better established one stays.",
    [.claim(.anna, 50), .joining(.dora, 60), .claim(.carl, 9, blue)],
    present: [(.dora, red, 51), (.carl, blue, 9)],
    expected: found(order: 50, standing: 2, [.dora])),
  callCase(
    "leaderless", "A call that nobody may lead is the channel's if there is no other.",
    [.claim(.anna, 5)],
    present: [(.bert, red, 6)],
    roles: [(.bert, .consumer)],
    expected: found(standing: 0, [.bert])),
  callCase(
    "leaderless-for-newcomers", "Where calls are handed over, it takes newcomers.",
    [.claim(.anna, 5)],
    present: [(.bert, red, 6)],
    roles: [(.bert, .consumer), (.dora, .consumer)], viewer: .dora,
    expected: found(standing: 0, [.bert])),
  callCase(
    "both-leaderless", "Of two such calls, someone who is in none sees the better established one.",
    [.claim(.anna, 50), .joining(.bert, 60), .claim(.carl, 9, blue)],
    present: [(.bert, red, 51), (.dora, blue, 9)],
    roles: [(.bert, .consumer), (.dora, .consumer)],
    expected: found(order: 50, standing: 2, [.bert])),
  callCase(
    "both-leaderless-in-better", "Somebody in the better established one stays there.",
    [.claim(.anna, 50), .joining(.bert, 60), .claim(.carl, 9, blue)],
    present: [(.bert, red, 51), (.dora, blue, 9)],
    roles: [(.bert, .consumer), (.dora, .consumer)], viewer: .bert,
    expected: found(order: 50, standing: 2, [.bert])),
  callCase(
    "both-leaderless-in-other", "Somebody in the other one stays there.",
    [.claim(.anna, 50), .joining(.bert, 60), .claim(.carl, 9, blue)],
    present: [(.bert, red, 51), (.dora, blue, 9)],
    roles: [(.bert, .consumer), (.dora, .consumer)], viewer: .dora,
    expected: found(blue, by: .carl, order: 9, standing: 0, [.dora])),
  callCase(
    "leaderless-beside-unknown", "A presence in a call without a claim changes nothing.",
    [.claim(.anna, 5)],
    present: [(.bert, red, 6), (.dora, blue, 7)],
    roles: [(.bert, .consumer), (.dora, .consumer)],
    expected: found(standing: 0, [.bert])),
]

/// Calls that end with their initiators.
let endingCalls: [Case] = [
  callCase(
    "ending", "A call that ends with its initiator, who is there.",
    [.claim(.anna, 5)],
    present: [(.anna, red, 5), (.bert, red, 6)],
    endsWithInitiator: true,
    expected: found(standing: 0, [.anna, .bert])),
  callCase(
    "ending-left", "Without its initiator it takes no newcomers, whoever is there.",
    [.claim(.anna, 5)],
    present: [(.bert, red, 6), (.dora, red, 7)],
    endsWithInitiator: true,
    expected: .null),
  callCase(
    "ending-left-for-presenter", "It stays for a presenter who is in it.",
    [.claim(.anna, 5)],
    present: [(.bert, red, 6), (.dora, red, 7)],
    viewer: .dora, endsWithInitiator: true,
    expected: found(standing: 0, [.bert, .dora])),
  callCase(
    "ending-left-for-consumer", "It stays for a consumer who is in it.",
    [.claim(.anna, 5)],
    present: [(.bert, red, 6), (.dora, red, 7)],
    roles: [(.bert, .consumer)], viewer: .bert, endsWithInitiator: true,
    expected: found(standing: 0, [.bert, .dora])),
  callCase(
    "ending-left-for-initiator", "Its initiator may come back.",
    [.claim(.anna, 5)],
    present: [(.bert, red, 6)],
    viewer: .anna, endsWithInitiator: true,
    expected: found(standing: 0, [.bert])),
  callCase(
    "ending-left-for-another", "Another who is in no call does not see it.",
    [.claim(.anna, 5)],
    present: [(.bert, red, 6)],
    viewer: .carl, endsWithInitiator: true,
    expected: .null),
  callCase(
    "ending-left-beside-led", "A newer call that is led displaces it.",
    [.claim(.anna, 5), .claim(.carl, 9, blue)],
    present: [(.dora, red, 6), (.carl, blue, 9)],
    endsWithInitiator: true,
    expected: found(blue, by: .carl, order: 9, standing: 0, [.carl])),
  callCase(
    "ending-left-for-own-beside-led", "Also for those who are in it.",
    [.claim(.anna, 5), .claim(.carl, 9, blue)],
    present: [(.dora, red, 6), (.carl, blue, 9)],
    viewer: .dora, endsWithInitiator: true,
    expected: found(blue, by: .carl, order: 9, standing: 0, [.carl])),
  callCase(
    "ending-left-lasting", "It displaces no other, however well it is established.",
    [
      .claim(.anna, 5), .joining(.bert, 7, stage: 2), .joining(.dora, 8, stage: 2),
      .claim(.carl, 9, blue),
    ],
    present: [(.bert, red, 6), (.dora, red, 7), (.carl, blue, 9)],
    viewer: .carl, endsWithInitiator: true,
    expected: found(blue, by: .carl, order: 9, standing: 0, [.carl])),
  callCase(
    "ending-both-left", "Of two such calls each stays for its participants.",
    [.claim(.anna, 5), .claim(.carl, 9, blue)],
    present: [(.bert, red, 6), (.dora, blue, 10)],
    viewer: .dora, endsWithInitiator: true,
    expected: found(blue, by: .carl, order: 9, standing: 0, [.dora])),
  callCase(
    "ending-both-left-for-newcomers", "Someone who is in neither sees none.",
    [.claim(.anna, 5), .claim(.carl, 9, blue)],
    present: [(.bert, red, 6), (.dora, blue, 10)],
    endsWithInitiator: true,
    expected: .null),
  callCase(
    "ending-both-left-for-one-initiator", "The initiator of one sees that one.",
    [.claim(.anna, 5), .claim(.carl, 9, blue)],
    present: [(.bert, red, 6), (.dora, blue, 10)],
    viewer: .carl, endsWithInitiator: true,
    expected: found(blue, by: .carl, order: 9, standing: 0, [.dora])),
  callCase(
    "ending-both-left-initiator-in-other", "The initiator of one who is in the other stays there.",
    [.claim(.anna, 5), .claim(.carl, 9, blue)],
    present: [(.bert, red, 6), (.dora, blue, 9), (.anna, blue, 10)],
    viewer: .anna, endsWithInitiator: true,
    expected: found(blue, by: .carl, order: 9, standing: 0, [.dora, .anna])),
  callCase(
    "ending-two-of-one-initiator",
    "Of two calls that it has started, the initiator sees the first.",
    [.claim(.anna, 5), .claim(.anna, 9, blue)],
    present: [(.bert, red, 6), (.dora, blue, 10)],
    viewer: .anna, endsWithInitiator: true,
    expected: found(standing: 0, [.bert])),
  callCase(
    "ending-taken-over", "The author of the leading claim is the initiator.",
    [.claim(.anna, 5), .claim(.dora, 8, term: 2, order: 5)],
    present: [(.dora, red, 6)],
    endsWithInitiator: true,
    expected: found(by: .dora, term: 2, standing: 3, [.dora])),
  callCase(
    "ending-taken-over-left", "The first initiator does not count in its place.",
    [.claim(.anna, 5), .claim(.dora, 8, term: 2, order: 5)],
    present: [(.anna, red, 5)],
    endsWithInitiator: true,
    expected: .null),
  callCase(
    "ending-initiator-removed", "An initiator that was removed from the call is not there.",
    [.claim(.anna, 5), .moderation(.dora, 7, of: .anna)],
    present: [(.anna, red, 5), (.bert, red, 6)],
    roles: [(.dora, .owner)], endsWithInitiator: true,
    expected: .null),
  callCase(
    "ending-ended", "An end is an end for those who are in the call, too.",
    [.claim(.anna, 5), .end(.anna, 8)],
    present: [(.bert, red, 6)],
    viewer: .bert, endsWithInitiator: true,
    expected: .null),
]

/// Members who have waited alone in a call.
let waitingCalls: [Case] = [
  callCase(
    "waited",
    "The author of the first claim has waited in the call, and a newcomer had not compared.",
    [.claim(.anna, 50), .joining(.anna, 51), .claim(.carl, 1, blue)],
    present: [(.anna, red, 50), (.carl, blue, 1)],
    expected: found(order: 50, standing: 1)),
  callCase(
    "waited-beside-compared", "Beside a call whose author had compared the order decides.",
    [.claim(.anna, 50), .joining(.anna, 51), .claim(.carl, 1, blue, compared: 1)],
    present: [(.anna, red, 50), (.carl, blue, 1)],
    expected: found(blue, by: .carl, order: 1, standing: 1, [.carl])),
  callCase(
    "both-waited", "The order decides between two who have waited.",
    [
      .claim(.anna, 50), .joining(.anna, 51), .claim(.carl, 1, blue), .joining(.carl, 2, blue),
    ],
    present: [(.anna, red, 50), (.carl, blue, 1)],
    expected: found(blue, by: .carl, order: 1, standing: 1, [.carl])),
  callCase(
    "waited-elsewhere", "The word of the author about another call does not count.",
    [.claim(.anna, 50), .joining(.anna, 51, blue), .claim(.carl, 1, blue)],
    present: [(.anna, red, 50)],
    expected: found(order: 50, standing: 0)),
  callCase(
    "waited-and-joined", "One member alone establishes no call above that.",
    [
      .claim(.anna, 50), .joining(.anna, 51, stage: 2), .claim(.carl, 1, blue),
      .joining(.dora, 2, blue),
    ],
    present: [(.anna, red, 50), (.carl, blue, 1)],
    expected: found(blue, by: .carl, order: 1, standing: 2, [.carl])),
]

/// For which calls and keys a removal holds.
let removals: [Case] = [
  callCase(
    "removed-from-older", "A removal from a call holds for those that had been started by then.",
    [.claim(.anna, 5), .claim(.anna, 20, blue), .moderation(.anna, 30, blue, of: .bert)],
    present: [(.anna, red, 5), (.bert, red, 6)],
    roles: [(.anna, .owner), (.bert, .attendee), (.carl, .attendee)],
    expected: found(standing: 0)),
  callCase(
    "removed-from-younger", "It does not hold for a call that was started later.",
    [.claim(.anna, 5), .moderation(.anna, 9, of: .bert), .claim(.anna, 20, blue)],
    present: [(.anna, blue, 20), (.bert, blue, 21)],
    roles: [(.anna, .owner), (.bert, .attendee), (.carl, .attendee)],
    expected: found(blue, order: 20, standing: 0, [.anna, .bert])),
  callCase(
    "removed-at-once", "Nor for one whose order is the Lamport counter of the removal.",
    [.claim(.dora, 20), .moderation(.anna, 20, blue, of: .bert)],
    present: [(.dora, red, 20), (.bert, red, 21)],
    roles: [(.anna, .owner), (.bert, .attendee), (.carl, .attendee)],
    expected: found(by: .dora, order: 20, standing: 0, [.dora, .bert])),
  callCase(
    "removed-alone", "A call with nobody but a removed member is none.",
    [.claim(.anna, 5), .claim(.anna, 20, blue), .moderation(.anna, 30, blue, of: .bert)],
    present: [(.bert, red, 6)],
    roles: [(.anna, .owner), (.bert, .attendee), (.carl, .attendee)],
    expected: .null),
  callCase(
    "removed-from-older-end",
    "The ends of a removed member count in calls that the removal does not name.",
    [
      .claim(.bert, 5), .end(.bert, 9), .claim(.anna, 20, blue),
      .moderation(.anna, 30, blue, of: .bert),
    ],
    present: [(.anna, blue, 20), (.carl, red, 8)],
    roles: [(.anna, .owner), (.carl, .attendee)],
    expected: found(blue, order: 20, standing: 0)),
  callCase(
    "removed-from-older-claim", "And so do its claims of later terms.",
    [
      .claim(.anna, 5), .claim(.bert, 8, term: 2, order: 5), .claim(.anna, 20, blue),
      .moderation(.anna, 30, blue, of: .bert),
    ],
    present: [(.anna, red, 5)],
    roles: [(.anna, .owner)],
    expected: found(by: .bert, term: 2, standing: 3)),
  callCase(
    "removed-by-equal-from-older", "A removal that does not count holds for no call.",
    [.claim(.anna, 5), .claim(.anna, 20, blue), .moderation(.carl, 30, blue, of: .bert)],
    present: [(.anna, red, 5), (.bert, red, 6)],
    expected: found(standing: 0, [.anna, .bert])),
  callCase(
    "invite-later", "A removal holds for another key of the same invite that comes later.",
    [.claim(.anna, 5), .moderation(.anna, 30, of: .bert)],
    present: [(.anna, red, 5), (.bert, red, 6), (.carl, red, 40)],
    roles: [(.anna, .owner), (.bert, .attendee), (.carl, .attendee)],
    invites: [(.bert, 7), (.carl, 7)],
    expected: found(standing: 0)),
  callCase(
    "invite-inside", "It does not hold for one that was in the call before.",
    [.claim(.anna, 5), .moderation(.anna, 30, of: .bert)],
    present: [(.anna, red, 5), (.bert, red, 6), (.carl, red, 20)],
    roles: [(.anna, .owner), (.bert, .attendee), (.carl, .attendee)],
    invites: [(.bert, 7), (.carl, 7)],
    expected: found(standing: 0, [.anna, .carl])),
  callCase(
    "invite-back", "Nor for one that comes back, and had said before that it was in the call.",
    [.claim(.anna, 5), .joining(.carl, 20, stage: 2), .moderation(.anna, 30, of: .bert)],
    present: [(.anna, red, 5), (.bert, red, 6), (.carl, red, 40)],
    roles: [(.anna, .owner), (.bert, .attendee), (.carl, .attendee)],
    invites: [(.bert, 7), (.carl, 7)],
    expected: found(standing: 2, [.anna, .carl])),
  callCase(
    "invite-said-later", "A word that came after the removal does not count.",
    [.claim(.anna, 5), .moderation(.anna, 30, of: .bert), .joining(.carl, 35)],
    present: [(.anna, red, 5), (.bert, red, 6), (.carl, red, 40)],
    roles: [(.anna, .owner), (.bert, .attendee), (.carl, .attendee)],
    invites: [(.bert, 7), (.carl, 7)],
    expected: found(standing: 2)),
  callCase(
    "invite-said-of-another", "Nor does one about another call.",
    [.claim(.anna, 5), .joining(.carl, 20, blue), .moderation(.anna, 30, of: .bert)],
    present: [(.anna, red, 5), (.bert, red, 6), (.carl, red, 40)],
    roles: [(.anna, .owner), (.bert, .attendee), (.carl, .attendee)],
    invites: [(.bert, 7), (.carl, 7)],
    expected: found(standing: 0)),
  callCase(
    "invite-another", "It does not hold for those who came by another invite.",
    [.claim(.anna, 5), .moderation(.anna, 30, of: .bert)],
    present: [(.anna, red, 5), (.bert, red, 6), (.carl, red, 40)],
    roles: [(.anna, .owner), (.bert, .attendee), (.carl, .attendee)],
    invites: [(.bert, 7), (.carl, 8)],
    expected: found(standing: 0, [.anna, .carl])),
  callCase(
    "invite-none", "Nor for those who came by none.",
    [.claim(.anna, 5), .moderation(.anna, 30, of: .bert)],
    present: [(.anna, red, 5), (.bert, red, 6), (.carl, red, 40)],
    roles: [(.anna, .owner), (.bert, .attendee), (.carl, .attendee)],
    expected: found(standing: 0, [.anna, .carl])),
  callCase(
    "invite-other-call", "It holds for the other keys in the call that it names only.",
    [.claim(.anna, 5), .claim(.anna, 20, blue), .moderation(.anna, 30, blue, of: .bert)],
    present: [(.anna, red, 5), (.bert, red, 6), (.carl, red, 40)],
    roles: [(.anna, .owner), (.bert, .attendee), (.carl, .attendee)],
    invites: [(.bert, 7), (.carl, 7)],
    expected: found(standing: 0, [.anna, .carl])),
  callCase(
    "invite-muted", "Muting removes no other key.",
    [.claim(.anna, 5), .moderation(.anna, 30, of: .bert, actions: 7)],
    present: [(.anna, red, 5), (.bert, red, 6), (.carl, red, 40)],
    roles: [(.anna, .owner), (.bert, .attendee), (.carl, .attendee)],
    invites: [(.bert, 7), (.carl, 7)],
    expected: found(standing: 0, [.anna, .bert, .carl])),
  callCase(
    "invite-claim", "The claims of other keys count.",
    [.claim(.anna, 5), .moderation(.anna, 30, of: .bert), .claim(.carl, 40, term: 2, order: 5)],
    present: [(.anna, red, 5), (.bert, red, 6), (.carl, red, 40)],
    roles: [(.anna, .owner), (.bert, .attendee)], invites: [(.bert, 7), (.carl, 7)],
    expected: found(by: .carl, term: 2, standing: 3)),
]

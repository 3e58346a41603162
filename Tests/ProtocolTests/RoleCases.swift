import MusterBase
import MusterChannel
import MusterCrypto
import MusterWire
import Testing

/// Roles, the key in force and the entries that a created channel holds (sections 9 and 12).
let roleCases = CaseTopic(
  name: "roles", section: 12,
  description: "The roles at a time, the epoch in force and the entries that are held.",
  cases: granted + byOwners + redeemed + used + keyChanges + held
) { inputs in
  let genesis = try Entries().genesis
  let entries = try inputs.list("entries").map {
    try SignedEntry.verified(Inputs.bytes($0), in: genesis.channelID)
  }
  let time = try inputs.number("time")
  let results = [entries, entries.reversed()].map { entries in
    Settled(entries, in: genesis.channelID, genesis: genesis)
  }
  #expect(results[0].document.digest == results[1].document.digest)
  let (document, rights) = (results[0].document, results[0].rights)
  return .object([
    (
      "roles",
      .object(
        rights.members(at: time).map {
          (Hex.encode($0.member.key.bytes), Value.text($0.role.name))
        })
    ),
    ("epoch", .number(UInt64(rights.currentEpoch))),
    (
      "held",
      .list(
        entries.indices.filter { document.contains(entries[$0].id.prefix) }
          .map { .number(UInt64($0)) })
    ),
  ])
}

private let granted: [Case] = [
  roleCase("owner", "Nobody but the owner of the genesis.", [], held: []),
  roleCase(
    "granted", "A grant by the owner.",
    [.grant(.anna, 5, .presenter, to: .bert), .message(.bert, 6)],
    roles: [(.bert, .presenter)], held: [0, 1]),
  roleCase("not-granted", "A message without a role.", [.message(.bert, 6)], held: []),
  roleCase(
    "newest-grant", "The newest grant counts, and it alone is kept.",
    [.grant(.anna, 5, .presenter, to: .bert), .grant(.anna, 7, .attendee, to: .bert)],
    roles: [(.bert, .attendee)], held: [1]),
  roleCase(
    "taken-away", "Role none takes the role and what its holder wrote.",
    [
      .grant(.anna, 5, .presenter, to: .bert), .message(.bert, 6),
      .grant(.anna, 7, .none, to: .bert),
    ], held: [2]),
  roleCase(
    "expired", "A role that has expired gives nothing, but what its holder wrote is held.",
    [.grant(.anna, 5, .presenter, to: .bert, expires: 1000), .message(.bert, 6)], held: [0, 1]),
  roleCase(
    "not-expired", "A second before its end.",
    [.grant(.anna, 5, .presenter, to: .bert, expires: 1001)], roles: [(.bert, .presenter)],
    held: [0]),
  roleCase(
    "quarantined", "Two entries under one sequence.",
    [
      .grant(.anna, 5, .presenter, to: .bert), .message(.bert, 6, "a"), .message(.bert, 6, "b"),
      .message(.bert, 7),
    ], held: [0]),
]

private let byOwners: [Case] = [
  roleCase(
    "no-owner", "A grant by someone without the role of an owner.",
    [.grant(.anna, 4, .presenter, to: .carl), .grant(.carl, 5, .consumer, to: .bert)],
    roles: [(.carl, .presenter)], held: [0]),
  roleCase(
    "made-owner", "An owner by a grant of the genesis's owner grants lower roles.",
    [.grant(.anna, 5, .owner, to: .carl), .grant(.carl, 6, .presenter, to: .bert)],
    roles: [(.carl, .owner), (.bert, .presenter)], held: [0, 1]),
  roleCase(
    "no-equals", "Such an owner makes no owners; its grant is held, and does not count.",
    [.grant(.anna, 5, .owner, to: .carl), .grant(.carl, 6, .owner, to: .bert)],
    roles: [(.carl, .owner)], held: [0, 1]),
  roleCase(
    "genesis-stands", "Nobody takes the role of the genesis's owner.",
    [.grant(.anna, 5, .owner, to: .carl), .grant(.carl, 6, .none, to: .anna)],
    roles: [(.carl, .owner)], held: [0, 1]),
  roleCase(
    "owners-stand", "Nobody else takes the role of an owner whom the genesis's owner made.",
    [
      .grant(.anna, 4, .owner, to: .bert), .grant(.anna, 5, .owner, to: .carl),
      .grant(.carl, 6, .none, to: .bert),
    ], roles: [(.bert, .owner), (.carl, .owner)], held: [0, 1, 2]),
  roleCase(
    "newer-by-owner", "Of the grants of several owners the newest counts.",
    [
      .grant(.anna, 4, .owner, to: .carl), .grant(.anna, 5, .presenter, to: .bert),
      .grant(.carl, 6, .consumer, to: .bert),
    ], roles: [(.carl, .owner), (.bert, .consumer)], held: [0, 1, 2]),
  roleCase(
    "expired-owner", "The grants of an owner count as long as it is one; its entries are held.",
    [
      .grant(.anna, 5, .owner, to: .carl, expires: 900), .grant(.carl, 6, .presenter, to: .bert),
      .message(.bert, 7),
    ], held: [0, 1, 2]),
  roleCase(
    "former-owner", "An owner whose role was taken away, and whoever had a role by it.",
    [
      .grant(.anna, 5, .owner, to: .carl), .grant(.carl, 6, .presenter, to: .bert),
      .grant(.anna, 7, .none, to: .carl), .message(.bert, 8),
    ], held: [2]),
]

private let forOne = Word.invite(.anna, 5, .attendee)

private let redeemed: [Case] = [
  roleCase(
    "redeemed", "A redemption; the grant need not be in the document.",
    [.redemption(.bert, 7, of: forOne), .message(.bert, 8)], roles: [(.bert, .attendee)],
    held: [0, 1]),
  roleCase(
    "forged-redemption", "Another key than the one-time key has signed.",
    [.redemption(.bert, 7, of: forOne, by: .secondInvite), .message(.bert, 8)], held: []),
  roleCase(
    "foreign-invite", "An invite of someone who is no owner.",
    [.redemption(.bert, 7, of: .invite(.carl, 5, .attendee))], held: []),
  roleCase(
    "invite-of-owner", "An invite of an owner whom the genesis's owner made.",
    [
      .grant(.anna, 4, .owner, to: .carl),
      .redemption(.bert, 7, of: .invite(.carl, 5, .attendee)),
    ], roles: [(.carl, .owner), (.bert, .attendee)], held: [0, 1]),
  roleCase(
    "expired-invite", "Until an owner has confirmed it, the role ends with the invite.",
    [.redemption(.bert, 7, of: .invite(.anna, 5, .attendee, expires: 1000))], held: [0]),
  roleCase(
    "expired-role", "The invite says when the role ends.",
    [.redemption(.bert, 7, of: .invite(.anna, 5, .attendee, roleExpires: 1000))], held: [0]),
  roleCase(
    "older-and-higher", "An older direct grant that gives more stays in force.",
    [.grant(.anna, 4, .presenter, to: .bert), .redemption(.bert, 7, of: forOne)],
    roles: [(.bert, .presenter)], held: [0, 1]),
  roleCase(
    "older-and-lower", "An older direct grant that gives less does not.",
    [.grant(.anna, 4, .consumer, to: .bert), .redemption(.bert, 7, of: forOne)],
    roles: [(.bert, .attendee)], held: [0, 1]),
  roleCase(
    "newer-and-lower",
    "A direct grant that is newer than the bearer grant, though older than the redemption.",
    [.grant(.anna, 6, .consumer, to: .bert), .redemption(.bert, 7, of: forOne)],
    roles: [(.bert, .consumer)], held: [0, 1]),
]

private let confirmed = Word.grant(.anna, 9, .attendee, to: .bert, invite: .firstInvite)
private let forTwo = Word.invite(.anna, 5, .attendee, uses: 2)

private let used: [Case] = [
  roleCase(
    "two-of-one", "More have redeemed than the invite is for, and none is confirmed: all stay.",
    [.redemption(.bert, 7, of: forOne), .redemption(.carl, 7, of: forOne)],
    roles: [(.bert, .attendee), (.carl, .attendee)], held: [0, 1]),
  roleCase(
    "used-up", "One is confirmed, and the invite is for one.",
    [.redemption(.bert, 7, of: forOne), .redemption(.carl, 7, of: forOne), confirmed],
    roles: [(.bert, .attendee)], held: [0, 2]),
  roleCase(
    "one-is-left", "One is confirmed, and the invite is for two: all others stay.",
    [
      .redemption(.bert, 7, of: forTwo), .redemption(.carl, 7, of: forTwo),
      .redemption(.dora, 7, of: forTwo), confirmed,
    ], roles: [(.bert, .attendee), (.carl, .attendee), (.dora, .attendee)], held: [0, 1, 2, 3]),
  roleCase(
    "any-number", "An invite for any number.",
    [.redemption(.carl, 7, of: .invite(.anna, 5, .attendee, uses: 0)), confirmed],
    roles: [(.bert, .attendee), (.carl, .attendee)], held: [0, 1]),
  roleCase(
    "confirmed-and-lowered", "A use stays confirmed, whatever role the newest grant gives.",
    [
      .redemption(.carl, 7, of: forOne), confirmed,
      .grant(
        .anna, 10, .none, to: .bert,
        invite: .firstInvite),
    ], held: [2]),
  roleCase(
    "confirmed-outlasts", "A confirmed role outlasts the end of the invite.",
    [
      .redemption(.bert, 7, of: .invite(.anna, 5, .attendee, expires: 900)),
      confirmed,
    ], roles: [(.bert, .attendee)], held: [0, 1]),
  roleCase(
    "revoked", "A bearer grant of no role ends the invite, for those who are not confirmed.",
    [
      .redemption(.bert, 7, of: forTwo), .redemption(.carl, 7, of: forTwo), confirmed,
      .invite(.anna, 10, .none, uses: 2),
    ], roles: [(.bert, .attendee)], held: [0, 2, 3]),
]

private let removal = Word.epoch(.anna, 8, 1, removed: [.bert])

private let afterwards = Word.invite(.anna, 9, .consumer, for: .secondInvite, epoch: 1)

private let keyChanges: [Case] = [
  roleCase(
    "removed", "A change of the key removes a member, and what it wrote.",
    [.grant(.anna, 5, .presenter, to: .bert), .message(.bert, 6), removal], epoch: 1,
    held: [0, 2]),
  roleCase(
    "back-again", "A later grant brings the member back, but not what it wrote before.",
    [
      .message(.bert, 6), removal, .grant(.anna, 9, .presenter, to: .bert), .message(.bert, 8),
      .message(.bert, 10),
    ], roles: [(.bert, .presenter)], epoch: 1, held: [1, 2, 4]),
  roleCase(
    "removed-invite", "With the one-time key, whoever came by the invite is removed.",
    [
      .redemption(.bert, 7, of: forTwo), confirmed,
      .epoch(.anna, 10, 1, removed: [.firstInvite]), .redemption(.carl, 11, of: forTwo),
    ], epoch: 1, held: [1, 2]),
  roleCase(
    "outdated-invite", "A change that removes somebody ends what is not confirmed.",
    [
      .redemption(.carl, 7, of: forOne), .epoch(.anna, 8, 1, removed: [.dora]),
      .redemption(.bert, 9, of: afterwards, by: .secondInvite),
    ], roles: [(.bert, .consumer)], epoch: 1, held: [1, 2]),
  roleCase(
    "other-change", "A change that removes nobody leaves invites valid.",
    [.redemption(.carl, 7, of: forOne), .epoch(.anna, 8, 1)], roles: [(.carl, .attendee)],
    epoch: 1, held: [0, 1]),
  roleCase(
    "gap", "Without the first change the second one is not in force.",
    [
      .grant(.anna, 5, .presenter, to: .bert),
      .epoch(.anna, 9, 2, after: removal, removed: [.carl]),
    ],
    roles: [(.bert, .presenter)], held: [0, 1]),
  roleCase(
    "second", "The second change follows the first one.",
    [.epoch(.anna, 9, 2, after: removal, removed: [.carl]), removal], epoch: 2, held: [0, 1]),
  roleCase(
    "two-first-changes", "Of two changes after the same one the first in the order counts.",
    [
      .grant(.anna, 4, .presenter, to: .bert), .grant(.anna, 5, .presenter, to: .carl),
      .epoch(.anna, 9, 1, removed: [.carl]), removal,
    ], roles: [(.carl, .presenter)], epoch: 1, held: [0, 1, 2, 3]),
  roleCase(
    "kept-unknown", "A change waits for a grant to each member that it keeps.",
    [
      .grant(.anna, 5, .presenter, to: .bert),
      .epoch(.anna, 8, 1, removed: [.bert], kept: [.carl]),
    ],
    roles: [(.bert, .presenter)], held: [0, 1]),
  roleCase(
    "kept-known", "The same with the grant.",
    [
      .grant(.anna, 5, .presenter, to: .bert),
      .epoch(.anna, 8, 1, removed: [.bert], kept: [.carl]),
      .grant(.anna, 9, .consumer, to: .carl, invite: .firstInvite),
    ], roles: [(.carl, .consumer)], epoch: 1, held: [0, 1, 2]),
  roleCase(
    "foreign-change", "Another owner changes no key.",
    [.grant(.anna, 5, .owner, to: .carl), .epoch(.carl, 8, 1, removed: [.bert])],
    roles: [(.carl, .owner)], held: [0]),
]

private let held: [Case] = [
  roleCase(
    "held-of-consumer", "What is held from a consumer on: no claims, ends and moderations.",
    [
      .grant(.anna, 5, .consumer, to: .bert), .joining(.bert, 6), .message(.bert, 7),
      .unknown(.bert, 8), .claim(.bert, 9), .end(.bert, 10), .moderation(.bert, 11, of: .carl),
    ], roles: [(.bert, .consumer)], held: [0, 1, 2, 3]),
  roleCase(
    "held-of-presenter", "What is held from a presenter on: no grants and epochs.",
    [
      .grant(.anna, 5, .presenter, to: .bert), .claim(.bert, 9), .end(.bert, 10),
      .moderation(.bert, 11, of: .carl), .grant(.bert, 12, .consumer, to: .carl),
      .epoch(.bert, 13, 1), .unknown(.bert, 14),
    ], roles: [(.bert, .presenter)], held: [0, 1, 2, 3, 6]),
]

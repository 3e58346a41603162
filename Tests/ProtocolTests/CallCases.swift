import MusterBase
import MusterChannel
import MusterCrypto
import MusterWire
import Testing

/// The call that follows from entries, roles and the members that are present (section 10).
let callCases = CaseTopic(
  name: "calls", section: 10,
  description: "The channel's call, from the entries of a document and the presences of members.",
  cases: derivation + standings + concurrent + ends + rights + moderated
    + ledCalls + endingCalls + waitingCalls + removals
) { inputs in
  let cast = try Cast()
  let entries = try inputs.list("entries").map {
    try SignedEntry.verified(Inputs.bytes($0), in: cast.channelID)
  }.sorted()
  func all(_ kind: EntryBody.Kind) -> [SignedEntry] {
    entries.filter { $0.entry.body.kind == kind }
  }
  let roles = try inputs.object("roles").map { (member: $0.name, role: try text($0.value)) }
  func role(of member: NodeID) -> Role {
    let name = roles.first { $0.member == Hex.encode(member.key.bytes) }?.role
    return name.flatMap(Role.init(name:)) ?? .presenter
  }
  let moderations = all(.moderation).filter { entry in
    guard case .moderation(let moderation) = entry.entry.body else { return false }
    let author = role(of: entry.entry.author)
    return Capability.moderate.isAllowed(to: author, in: ChannelSettings())
      && author > role(of: moderation.member)
  }
  let invites = try inputs.object("invites").map { (member: $0.name, key: try key($0.value)) }
  let active = CallLedger.active(
    CallEntries(
      claims: all(.claim), ends: all(.end), joinings: all(.joining), moderations: moderations,
      invite: { member in
        invites.first { $0.member == Hex.encode(member.key.bytes) }?.key
      }),
    present: try inputs.list("present").map(participation),
    viewer: Bytes32(try inputs.bytes("viewer")).map { NodeID($0) },
    rules: CallRules(endsWithInitiator: try inputs.number("ends-with-initiator") != 0),
    may: { $0.isAllowed(to: role(of: $1), in: ChannelSettings()) })
  return active.map(value) ?? .null
}

private func text(_ value: Value) throws -> String {
  guard case .text(let text) = value else { throw WrongInput(name: "role") }
  return text
}

private func key(_ value: Value) throws -> NodeID {
  NodeID(try #require(Bytes32(try Inputs.bytes(value))))
}

private func participation(
  _ value: Value
) throws -> (member: NodeID, participation: Participation) {
  guard case .list(let fields) = value, fields.count == 3, case .number(let joined) = fields[2]
  else { throw WrongInput(name: "present") }
  var call = Reader(try Inputs.bytes(fields[1]))
  let id = CallID(high: try call.u64(), low: try call.u64())
  return (try key(fields[0]), Participation(id: id, joined: joined))
}

private func value(_ active: ActiveCall) -> Value {
  .object([
    ("call", hex(active.info.id)), ("initiator", hex(active.info.initiator)),
    ("term", .number(UInt64(active.info.term))), ("order", .number(active.info.order)),
    ("started", .number(active.info.startedAt)),
    ("standing", .number(UInt64(active.info.standing.rawValue))),
    ("participants", .list(active.byPresence.map(hex))),
  ])
}

func hex(_ call: CallID) -> Value { .hex(bigEndian(call.high) + bigEndian(call.low)) }
func hex(_ member: NodeID) -> Value { .hex(member.key.bytes) }

// MARK: Cases

private let derivation: [Case] = [
  callCase(
    "none", "No claim, whoever is present.", [], present: [(.anna, red, 5)], expected: .null),
  callCase(
    "started", "A claim, and its author in the call.", [.claim(.anna, 5, started: 77)],
    present: [(.anna, red, 5)], expected: found(started: 77, standing: 0)),
  callCase(
    "nobody", "A claim, and nobody in the call.", [.claim(.anna, 5)], present: [],
    expected: .null),
  callCase(
    "elsewhere", "Participants of a call without a claim do not matter.", [.claim(.anna, 5)],
    present: [(.anna, red, 5), (.bert, blue, 1), (.carl, blue, 2)], expected: found(standing: 0)),
  callCase(
    "seniority", "Participants stand in the order of \"joined\", then id.", [.claim(.anna, 5)],
    present: [(.anna, red, 9), (.bert, red, 7), (.carl, red, 9), (.dora, red, 6)],
    expected: found(standing: 0, [.dora, .bert] + byID([.anna, .carl]))),
  callCase(
    "absent-initiator", "The initiator need not be present.", [.claim(.anna, 5)],
    present: [(.bert, red, 7)], expected: found(standing: 0, [.bert])),
  callCase(
    "two-first-claims", "Of two claims of term 1 the first in the order counts.",
    [.claim(.anna, 6, started: 66), .claim(.bert, 5, started: 55)],
    present: [(.anna, red, 5)], expected: found(by: .bert, started: 55, standing: 0)),
  callCase(
    "two-successors", "Of two claims of one later term the first in the order leads.",
    [
      .claim(.anna, 5), .claim(.bert, 9, term: 2, order: 5),
      .claim(.carl, 8, term: 2, order: 5),
    ],
    present: [(.bert, red, 7)], expected: found(by: .carl, term: 2, standing: 3, [.bert])),
  callCase(
    "other-order", "\"Order\" and \"started\" of a later claim do not count beside the first one.",
    [.claim(.anna, 5, started: 77), .claim(.bert, 9, term: 2, started: 1, order: 1)],
    present: [(.bert, red, 7)],
    expected: found(by: .bert, term: 2, started: 77, standing: 3, [.bert])),
  callCase(
    "first-claim-unknown", "Without a claim of term 1 the leading one counts.",
    [.claim(.bert, 9, term: 2, started: 33, order: 4, compared: 1)],
    present: [(.bert, red, 7)],
    expected: found(by: .bert, term: 2, order: 4, started: 33, standing: 1, [.bert])),
]

private let standings: [Case] = [
  callCase(
    "compared", "The author of the claim had compared documents.",
    [.claim(.anna, 5, compared: 1)], present: [(.anna, red, 5)], expected: found(standing: 1)),
  callCase(
    "compared-2", "\"Compared\" above 1 counts as 1.", [.claim(.anna, 5, compared: 2)],
    present: [(.anna, red, 5)], expected: found(standing: 1)),
  callCase(
    "compared-absent", "Without \"compared\" it is 0.", [.claim(.anna, 5, compared: nil)],
    present: [(.anna, red, 5)], expected: found(standing: 0)),
  callCase(
    "own-joining", "The author of the claim has waited in the call; its stage does not matter.",
    [.claim(.anna, 5), .joining(.anna, 8, stage: 2)], present: [(.anna, red, 5)],
    expected: found(standing: 1)),
  callCase(
    "joined", "The joining of another member.", [.claim(.anna, 5), .joining(.bert, 8)],
    present: [(.anna, red, 5)], expected: found(standing: 2)),
  callCase(
    "one-lasting", "Only one of two joinings is of stage 2.",
    [.claim(.anna, 5), .joining(.anna, 8), .joining(.bert, 9, stage: 2)],
    present: [(.anna, red, 5)], expected: found(standing: 2)),
  callCase(
    "lasting", "Two joinings are of stage 2.",
    [.claim(.anna, 5), .joining(.anna, 8, stage: 2), .joining(.bert, 9, stage: 2)],
    present: [(.anna, red, 5)], expected: found(standing: 3)),
  callCase(
    "taken-over", "Another member has taken the call over.",
    [.claim(.anna, 5), .claim(.bert, 9, term: 2, order: 5)], present: [(.bert, red, 7)],
    expected: found(by: .bert, term: 2, standing: 3, [.bert])),
  callCase(
    "taken-over-by-itself", "A later claim by the author of the first changes nothing.",
    [.claim(.anna, 5), .claim(.anna, 9, term: 2, order: 5)], present: [(.anna, red, 5)],
    expected: found(term: 2, standing: 0)),
  callCase(
    "joined-another", "Joinings that name another call do not count.",
    [.claim(.anna, 5), .joining(.bert, 8, blue)], present: [(.anna, red, 5)],
    expected: found(standing: 0)),
]

private let concurrent: [Case] = [
  callCase(
    "newcomer", "A newcomer's call with a smaller order gives way to one that people are in.",
    [.claim(.anna, 50), .joining(.bert, 60), .claim(.carl, 1, blue)],
    present: [(.anna, red, 50), (.bert, red, 55), (.carl, blue, 1)],
    expected: found(order: 50, standing: 2, [.anna, .bert])),
  callCase(
    "fewer-participants", "How many participants are present does not matter.",
    [
      .claim(.anna, 50), .joining(.anna, 70, stage: 2), .joining(.bert, 60, stage: 2),
      .claim(.carl, 1, blue), .joining(.dora, 9, blue),
    ],
    present: [(.anna, red, 50), (.bert, blue, 8), (.carl, blue, 1), (.dora, blue, 2)],
    expected: found(order: 50, standing: 3)),
  callCase(
    "compared-first", "One that had compared goes before one that had not.",
    [.claim(.anna, 50, compared: 1), .claim(.carl, 1, blue)],
    present: [(.anna, red, 50), (.carl, blue, 1)], expected: found(order: 50, standing: 1)),
  callCase(
    "smaller-order", "Of equal standing the smaller order stays.",
    [.claim(.anna, 5), .claim(.carl, 4, blue)], present: [(.anna, red, 5), (.carl, blue, 4)],
    expected: found(blue, by: .carl, order: 4, standing: 0, [.carl])),
  callCase(
    "smaller-id", "Of equal standing and order the smaller id stays.",
    [.claim(.anna, 5), .claim(.carl, 5, blue)], present: [(.anna, red, 5), (.carl, blue, 4)],
    expected: found(standing: 0)),
  callCase(
    "better-but-empty", "A call without participants gives way.",
    [.claim(.anna, 5), .joining(.bert, 8), .claim(.carl, 9, blue)],
    present: [(.carl, blue, 9)],
    expected: found(blue, by: .carl, order: 9, standing: 0, [.carl])),
]

private let ends: [Case] = [
  callCase(
    "ended", "The end of the only claim.", [.claim(.anna, 5), .end(.anna, 9)],
    present: [(.anna, red, 5)], expected: .null),
  callCase(
    "ended-by-another", "The end of a member without a claim.",
    [.claim(.anna, 5), .end(.bert, 9)], present: [(.anna, red, 5)], expected: found(standing: 0)),
  callCase(
    "ended-other-term", "The end of a term that its author has not claimed.",
    [.claim(.anna, 5), .end(.anna, 9, term: 2)], present: [(.anna, red, 5)],
    expected: found(standing: 0)),
  callCase(
    "ended-term-0", "An end of term 0.", [.claim(.anna, 5), .end(.anna, 9, term: 0)],
    present: [(.anna, red, 5)], expected: found(standing: 0)),
  callCase(
    "ended-before-takeover", "The end of a term leaves a later one.",
    [.claim(.anna, 5), .claim(.bert, 8, term: 2, order: 5), .end(.anna, 9)],
    present: [(.bert, red, 7)], expected: found(by: .bert, term: 2, standing: 3, [.bert])),
  callCase(
    "ended-after-takeover", "The end of a later term covers the earlier ones.",
    [.claim(.anna, 5), .claim(.bert, 8, term: 2, order: 5), .end(.bert, 9, term: 2)],
    present: [(.anna, red, 5), (.bert, red, 7)], expected: .null),
  callCase(
    "ended-one-of-two", "The end of a term leaves another member's claim to it.",
    [
      .claim(.anna, 5), .claim(.bert, 8, term: 2, order: 5),
      .claim(.carl, 9, term: 2, order: 5), .end(.bert, 10, term: 2),
    ],
    present: [(.carl, red, 7)], expected: found(by: .carl, term: 2, standing: 3, [.carl])),
]

private let rights: [Case] = [
  callCase(
    "claim-without-right", "A consumer starts no call.", [.claim(.anna, 5)],
    present: [(.anna, red, 5)], roles: [(.anna, .consumer)], expected: .null),
  callCase(
    "takeover-without-right", "An attendee takes no call over.",
    [.claim(.anna, 5), .claim(.bert, 8, term: 2, order: 5)],
    present: [(.bert, red, 7)], roles: [(.bert, .attendee)],
    expected: found(standing: 0, [.bert])),
  callCase(
    "end-without-right", "An end counts with a claim that counts only.",
    [.claim(.anna, 5), .claim(.bert, 8, term: 2, order: 5), .end(.bert, 9, term: 2)],
    present: [(.anna, red, 5)], roles: [(.bert, .attendee)], expected: found(standing: 0)),
  callCase(
    "first-initiator-without-right", "The leading claim counts where the first does not any more.",
    [
      .claim(.anna, 5, compared: 1), .claim(.bert, 8, term: 2, started: 33, order: 5, compared: 1),
    ],
    present: [(.bert, red, 7)], roles: [(.anna, .none)],
    expected: found(by: .bert, term: 2, started: 33, standing: 1, [.bert])),
  callCase(
    "joining-of-consumer", "A consumer joins calls.", [.claim(.anna, 5), .joining(.bert, 8)],
    present: [(.anna, red, 5)], roles: [(.bert, .consumer)], expected: found(standing: 2)),
  callCase(
    "joining-without-role", "The joining of a member without a role does not count.",
    [.claim(.anna, 5), .joining(.bert, 8)], present: [(.anna, red, 5)],
    roles: [(.bert, .none)], expected: found(standing: 0)),
  callCase(
    "present-without-role", "A member without a role is in no call.", [.claim(.anna, 5)],
    present: [(.bert, red, 7)], roles: [(.bert, .none)], expected: .null),
]

private let moderated: [Case] = [
  callCase(
    "removed", "Somebody removed from the call is not in it.",
    [.claim(.anna, 5), .moderation(.anna, 9, of: .bert)],
    present: [(.anna, red, 5), (.bert, red, 6)], roles: [(.bert, .attendee)],
    expected: found(standing: 0)),
  callCase(
    "muted", "Muting removes nobody.",
    [.claim(.anna, 5), .moderation(.anna, 9, of: .bert, actions: 7)],
    present: [(.anna, red, 5), (.bert, red, 6)], roles: [(.bert, .attendee)],
    expected: found(standing: 0, [.anna, .bert])),
  callCase(
    "removed-by-equal", "A presenter removes no presenter.",
    [.claim(.anna, 5), .moderation(.anna, 9, of: .bert)],
    present: [(.anna, red, 5), (.bert, red, 6)], expected: found(standing: 0, [.anna, .bert])),
  callCase(
    "removed-initiator", "The call that a removed member started goes on.",
    [.claim(.anna, 5), .moderation(.bert, 9, of: .anna)],
    present: [(.anna, red, 5), (.bert, red, 6)], roles: [(.bert, .owner)],
    expected: found(standing: 0, [.bert])),
  callCase(
    "removed-successor", "Somebody removed from the call does not take it over.",
    [
      .claim(.anna, 5), .claim(.bert, 8, term: 2, order: 5), .moderation(.carl, 9, of: .bert),
    ],
    present: [(.anna, red, 5), (.carl, red, 6)], roles: [(.carl, .owner)],
    expected: found(standing: 0, [.anna, .carl])),
  callCase(
    "ended-by-removed", "Somebody removed from the call does not end it.",
    [.claim(.anna, 5), .moderation(.bert, 9, of: .anna), .end(.anna, 10)],
    present: [(.bert, red, 6)], roles: [(.bert, .owner)],
    expected: found(standing: 0, [.bert])),
]

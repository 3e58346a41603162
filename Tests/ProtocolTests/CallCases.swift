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
  let active = CallLedger.active(
    CallEntries(
      claims: all(.claim), ends: all(.end), joinings: all(.joining), moderations: moderations),
    present: try inputs.list("present").map(participation),
    may: { $0.isAllowed(to: role(of: $1), in: ChannelSettings()) })
  return active.map(value) ?? .null
}

private func text(_ value: Value) throws -> String {
  guard case .text(let text) = value else { throw WrongInput(name: "role") }
  return text
}

private func participation(
  _ value: Value
) throws -> (member: NodeID, participation: Participation) {
  guard case .list(let fields) = value, fields.count == 3, case .number(let joined) = fields[2]
  else { throw WrongInput(name: "present") }
  var call = Reader(try Inputs.bytes(fields[1]))
  let id = CallID(high: try call.u64(), low: try call.u64())
  let member = NodeID(try #require(Bytes32(try Inputs.bytes(fields[0]))))
  return (member, Participation(id: id, joined: joined))
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

private func hex(_ call: CallID) -> Value { .hex(bigEndian(call.high) + bigEndian(call.low)) }
private func hex(_ member: NodeID) -> Value { .hex(member.key.bytes) }

// MARK: Inputs

/// Anna, Bert and two more members, in the order in which most cases name them.
private enum Person: Int, CaseIterable {
  case anna, bert, carl, dora

  /// The seed of each person is 32 consecutive byte values, as in the examples of Anna and Bert.
  var identity: Identity {
    let first = UInt8(rawValue * 0x20)
    guard let identity = Identity(seed: [UInt8](first..<first + 0x20)) else {
      preconditionFailure("32 bytes are a seed")
    }
    return identity
  }
}

private let red = CallID(high: 0xE0E1_E2E3_E4E5_E6E7, low: 0xE8E9_EAEB_ECED_EEEF)
private let blue = CallID(high: 0xF0F1_F2F3_F4F5_F6F7, low: 0xF8F9_FAFB_FCFD_FEFF)

/// An entry of one of the members; its Lamport counter is also its sequence number.
private struct Word {
  let author: Person
  let lamport: UInt64
  let kind: UInt8
  let body: [UInt8]

  static func claim(
    _ author: Person, _ lamport: UInt64, _ call: CallID = red, term: UInt32 = 1,
    started: UInt64 = 0, order: UInt64 = 0, compared: UInt8? = 0
  ) -> Word {
    Word(
      author: author, lamport: lamport, kind: 3,
      body: bigEndian(call.high) + bigEndian(call.low) + bigEndian(term) + bigEndian(started)
        + bigEndian(order) + (compared.map { [$0] } ?? []))
  }

  static func end(
    _ author: Person, _ lamport: UInt64, _ call: CallID = red, term: UInt32 = 1
  ) -> Word {
    Word(
      author: author, lamport: lamport, kind: 4,
      body: bigEndian(call.high) + bigEndian(call.low) + bigEndian(term))
  }

  static func joining(
    _ author: Person, _ lamport: UInt64, _ call: CallID = red, stage: UInt8 = 1
  ) -> Word {
    Word(
      author: author, lamport: lamport, kind: 9,
      body: bigEndian(call.high) + bigEndian(call.low) + [stage])
  }

  static func moderation(
    _ author: Person, _ lamport: UInt64, of member: Person, actions: UInt8 = 8
  ) -> Word {
    Word(
      author: author, lamport: lamport, kind: 10,
      body: bigEndian(red.high) + bigEndian(red.low) + member.identity.id.key.bytes + [actions])
  }

  func signed(in channel: ChannelID) -> [UInt8] {
    let identity = author.identity
    let unsigned =
      identity.id.key.bytes + bigEndian(lamport) + bigEndian(lamport) + [kind] + body
    return unsigned + identity.sign(Array("muster/1 entry".utf8) + channel.hash.bytes + unsigned)
  }
}

/// A participant, the call that its presence names, and "joined".
private typealias Seat = (person: Person, call: CallID, joined: UInt64)

private func one(
  _ name: String, _ description: String, _ words: [Word], present: [Seat],
  roles: [(Person, Role)] = [], expected: Value
) -> Case {
  let channel = (try? Cast())?.channelID
  return Case(
    name, description,
    [
      "entries": .list(words.map { word in .hex(channel.map(word.signed(in:)) ?? []) }),
      "present": .list(
        present.map { .list([hex($0.person.identity.id), hex($0.call), .number($0.joined)]) }),
      "roles": .object(
        roles.map { (Hex.encode($0.0.identity.id.key.bytes), .text($0.1.name)) }),
    ], expected: expected)
}

private func call(
  _ id: CallID = red, by initiator: Person = .anna, term: UInt64 = 1, order: UInt64 = 5,
  started: UInt64 = 0, standing: UInt64, _ participants: [Person] = [.anna]
) -> Value {
  .object([
    ("call", hex(id)), ("initiator", hex(initiator.identity.id)), ("term", .number(term)),
    ("order", .number(order)), ("started", .number(started)), ("standing", .number(standing)),
    ("participants", .list(participants.map { hex($0.identity.id) })),
  ])
}

// MARK: Cases

private let derivation: [Case] = [
  one("none", "No claim, whoever is present.", [], present: [(.anna, red, 5)], expected: .null),
  one(
    "started", "A claim, and its author in the call.", [.claim(.anna, 5, started: 77)],
    present: [(.anna, red, 5)], expected: call(started: 77, standing: 0)),
  one(
    "nobody", "A claim, and nobody in the call.", [.claim(.anna, 5)], present: [],
    expected: .null),
  one(
    "elsewhere", "Participants of a call without a claim do not matter.", [.claim(.anna, 5)],
    present: [(.anna, red, 5), (.bert, blue, 1), (.carl, blue, 2)], expected: call(standing: 0)),
  one(
    "seniority", "Participants stand in the order of \"joined\", then id.", [.claim(.anna, 5)],
    present: [(.anna, red, 9), (.bert, red, 7), (.carl, red, 9), (.dora, red, 6)],
    expected: call(standing: 0, [.dora, .bert] + byID([.anna, .carl]))),
  one(
    "absent-initiator", "The initiator need not be present.", [.claim(.anna, 5)],
    present: [(.bert, red, 7)], expected: call(standing: 0, [.bert])),
  one(
    "two-first-claims", "Of two claims of term 1 the first in the order counts.",
    [.claim(.anna, 6, started: 66), .claim(.bert, 5, started: 55)],
    present: [(.anna, red, 5)], expected: call(by: .bert, started: 55, standing: 0)),
  one(
    "two-successors", "Of two claims of one later term the first in the order leads.",
    [
      .claim(.anna, 5), .claim(.bert, 9, term: 2, order: 5),
      .claim(.carl, 8, term: 2, order: 5),
    ],
    present: [(.bert, red, 7)], expected: call(by: .carl, term: 2, standing: 3, [.bert])),
  one(
    "other-order", "\"Order\" and \"started\" of a later claim do not count beside the first one.",
    [.claim(.anna, 5, started: 77), .claim(.bert, 9, term: 2, started: 1, order: 1)],
    present: [(.bert, red, 7)],
    expected: call(by: .bert, term: 2, started: 77, standing: 3, [.bert])),
  one(
    "first-claim-unknown", "Without a claim of term 1 the leading one counts.",
    [.claim(.bert, 9, term: 2, started: 33, order: 4, compared: 1)],
    present: [(.bert, red, 7)],
    expected: call(by: .bert, term: 2, order: 4, started: 33, standing: 1, [.bert])),
]

private let standings: [Case] = [
  one(
    "compared", "The author of the claim had compared documents.",
    [.claim(.anna, 5, compared: 1)], present: [(.anna, red, 5)], expected: call(standing: 1)),
  one(
    "compared-2", "\"Compared\" above 1 counts as 1.", [.claim(.anna, 5, compared: 2)],
    present: [(.anna, red, 5)], expected: call(standing: 1)),
  one(
    "compared-absent", "Without \"compared\" it is 0.", [.claim(.anna, 5, compared: nil)],
    present: [(.anna, red, 5)], expected: call(standing: 0)),
  one(
    "own-joining", "The joining of the author of the claim alone changes nothing.",
    [.claim(.anna, 5), .joining(.anna, 8, stage: 2)], present: [(.anna, red, 5)],
    expected: call(standing: 0)),
  one(
    "joined", "The joining of another member.", [.claim(.anna, 5), .joining(.bert, 8)],
    present: [(.anna, red, 5)], expected: call(standing: 2)),
  one(
    "one-lasting", "Only one of two joinings is of stage 2.",
    [.claim(.anna, 5), .joining(.anna, 8), .joining(.bert, 9, stage: 2)],
    present: [(.anna, red, 5)], expected: call(standing: 2)),
  one(
    "lasting", "Two joinings are of stage 2.",
    [.claim(.anna, 5), .joining(.anna, 8, stage: 2), .joining(.bert, 9, stage: 2)],
    present: [(.anna, red, 5)], expected: call(standing: 3)),
  one(
    "taken-over", "Another member has taken the call over.",
    [.claim(.anna, 5), .claim(.bert, 9, term: 2, order: 5)], present: [(.bert, red, 7)],
    expected: call(by: .bert, term: 2, standing: 3, [.bert])),
  one(
    "taken-over-by-itself", "A later claim by the author of the first changes nothing.",
    [.claim(.anna, 5), .claim(.anna, 9, term: 2, order: 5)], present: [(.anna, red, 5)],
    expected: call(term: 2, standing: 0)),
  one(
    "joined-another", "Joinings that name another call do not count.",
    [.claim(.anna, 5), .joining(.bert, 8, blue)], present: [(.anna, red, 5)],
    expected: call(standing: 0)),
]

private let concurrent: [Case] = [
  one(
    "newcomer", "A newcomer's call with a smaller order gives way to one that people are in.",
    [.claim(.anna, 50), .joining(.bert, 60), .claim(.carl, 1, blue)],
    present: [(.anna, red, 50), (.bert, red, 55), (.carl, blue, 1)],
    expected: call(order: 50, standing: 2, [.anna, .bert])),
  one(
    "fewer-participants", "How many participants are present does not matter.",
    [
      .claim(.anna, 50), .joining(.anna, 70, stage: 2), .joining(.bert, 60, stage: 2),
      .claim(.carl, 1, blue), .joining(.dora, 9, blue),
    ],
    present: [(.anna, red, 50), (.bert, blue, 8), (.carl, blue, 1), (.dora, blue, 2)],
    expected: call(order: 50, standing: 3)),
  one(
    "compared-first", "One that had compared goes before one that had not.",
    [.claim(.anna, 50, compared: 1), .claim(.carl, 1, blue)],
    present: [(.anna, red, 50), (.carl, blue, 1)], expected: call(order: 50, standing: 1)),
  one(
    "smaller-order", "Of equal standing the smaller order stays.",
    [.claim(.anna, 5), .claim(.carl, 4, blue)], present: [(.anna, red, 5), (.carl, blue, 4)],
    expected: call(blue, by: .carl, order: 4, standing: 0, [.carl])),
  one(
    "smaller-id", "Of equal standing and order the smaller id stays.",
    [.claim(.anna, 5), .claim(.carl, 5, blue)], present: [(.anna, red, 5), (.carl, blue, 4)],
    expected: call(standing: 0)),
  one(
    "better-but-empty", "A call without participants gives way.",
    [.claim(.anna, 5), .joining(.bert, 8), .claim(.carl, 9, blue)],
    present: [(.carl, blue, 9)],
    expected: call(blue, by: .carl, order: 9, standing: 0, [.carl])),
]

private let ends: [Case] = [
  one(
    "ended", "The end of the only claim.", [.claim(.anna, 5), .end(.anna, 9)],
    present: [(.anna, red, 5)], expected: .null),
  one(
    "ended-by-another", "The end of a member without a claim.",
    [.claim(.anna, 5), .end(.bert, 9)], present: [(.anna, red, 5)], expected: call(standing: 0)),
  one(
    "ended-other-term", "The end of a term that its author has not claimed.",
    [.claim(.anna, 5), .end(.anna, 9, term: 2)], present: [(.anna, red, 5)],
    expected: call(standing: 0)),
  one(
    "ended-term-0", "An end of term 0.", [.claim(.anna, 5), .end(.anna, 9, term: 0)],
    present: [(.anna, red, 5)], expected: call(standing: 0)),
  one(
    "ended-before-takeover", "The end of a term leaves a later one.",
    [.claim(.anna, 5), .claim(.bert, 8, term: 2, order: 5), .end(.anna, 9)],
    present: [(.bert, red, 7)], expected: call(by: .bert, term: 2, standing: 3, [.bert])),
  one(
    "ended-after-takeover", "The end of a later term covers the earlier ones.",
    [.claim(.anna, 5), .claim(.bert, 8, term: 2, order: 5), .end(.bert, 9, term: 2)],
    present: [(.anna, red, 5), (.bert, red, 7)], expected: .null),
  one(
    "ended-one-of-two", "The end of a term leaves another member's claim to it.",
    [
      .claim(.anna, 5), .claim(.bert, 8, term: 2, order: 5),
      .claim(.carl, 9, term: 2, order: 5), .end(.bert, 10, term: 2),
    ],
    present: [(.carl, red, 7)], expected: call(by: .carl, term: 2, standing: 3, [.carl])),
]

private let rights: [Case] = [
  one(
    "claim-without-right", "A consumer starts no call.", [.claim(.anna, 5)],
    present: [(.anna, red, 5)], roles: [(.anna, .consumer)], expected: .null),
  one(
    "takeover-without-right", "An attendee takes no call over.",
    [.claim(.anna, 5), .claim(.bert, 8, term: 2, order: 5)],
    present: [(.bert, red, 7)], roles: [(.bert, .attendee)],
    expected: call(standing: 0, [.bert])),
  one(
    "end-without-right", "An end counts with a claim that counts only.",
    [.claim(.anna, 5), .claim(.bert, 8, term: 2, order: 5), .end(.bert, 9, term: 2)],
    present: [(.anna, red, 5)], roles: [(.bert, .attendee)], expected: call(standing: 0)),
  one(
    "first-initiator-without-right", "The leading claim counts where the first does not any more.",
    [
      .claim(.anna, 5, compared: 1), .claim(.bert, 8, term: 2, started: 33, order: 5, compared: 1),
    ],
    present: [(.bert, red, 7)], roles: [(.anna, .none)],
    expected: call(by: .bert, term: 2, started: 33, standing: 1, [.bert])),
  one(
    "joining-of-consumer", "A consumer joins calls.", [.claim(.anna, 5), .joining(.bert, 8)],
    present: [(.anna, red, 5)], roles: [(.bert, .consumer)], expected: call(standing: 2)),
  one(
    "joining-without-role", "The joining of a member without a role does not count.",
    [.claim(.anna, 5), .joining(.bert, 8)], present: [(.anna, red, 5)],
    roles: [(.bert, .none)], expected: call(standing: 0)),
  one(
    "present-without-role", "A member without a role is in no call.", [.claim(.anna, 5)],
    present: [(.bert, red, 7)], roles: [(.bert, .none)], expected: .null),
]

private let moderated: [Case] = [
  one(
    "removed", "Somebody removed from the call is not in it.",
    [.claim(.anna, 5), .moderation(.anna, 9, of: .bert)],
    present: [(.anna, red, 5), (.bert, red, 6)], roles: [(.bert, .attendee)],
    expected: call(standing: 0)),
  one(
    "muted", "Muting removes nobody.",
    [.claim(.anna, 5), .moderation(.anna, 9, of: .bert, actions: 7)],
    present: [(.anna, red, 5), (.bert, red, 6)], roles: [(.bert, .attendee)],
    expected: call(standing: 0, [.anna, .bert])),
  one(
    "removed-by-equal", "A presenter removes no presenter.",
    [.claim(.anna, 5), .moderation(.anna, 9, of: .bert)],
    present: [(.anna, red, 5), (.bert, red, 6)], expected: call(standing: 0, [.anna, .bert])),
  one(
    "removed-initiator", "The call that a removed member started goes on.",
    [.claim(.anna, 5), .moderation(.bert, 9, of: .anna)],
    present: [(.anna, red, 5), (.bert, red, 6)], roles: [(.bert, .owner)],
    expected: call(standing: 0, [.bert])),
  one(
    "removed-successor", "Somebody removed from the call does not take it over.",
    [
      .claim(.anna, 5), .claim(.bert, 8, term: 2, order: 5), .moderation(.carl, 9, of: .bert),
    ],
    present: [(.anna, red, 5), (.carl, red, 6)], roles: [(.carl, .owner)],
    expected: call(standing: 0, [.anna, .carl])),
  one(
    "ended-by-removed", "Somebody removed from the call does not end it.",
    [.claim(.anna, 5), .moderation(.bert, 9, of: .anna), .end(.anna, 10)],
    present: [(.bert, red, 6)], roles: [(.bert, .owner)],
    expected: call(standing: 0, [.bert])),
]

private func byID(_ people: [Person]) -> [Person] {
  people.sorted { $0.identity.id < $1.identity.id }
}

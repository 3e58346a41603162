import MusterBase
import MusterChannel
import MusterCrypto
import MusterWire
import Testing

/// What a document keeps of more entries than fit (section 9).
let retentionCases = CaseTopic(
  name: "retention", section: 9,
  description: "How many entries of each series a document keeps, and its digest.",
  cases: retention
) { inputs in
  let rights = try inputs.list("rights")
  let genesis = rights.isEmpty ? nil : try Entries().genesis
  let channel = try genesis?.channelID ?? Cast().channelID
  var entries = try rights.map { try SignedEntry.verified(Inputs.bytes($0), in: channel) }
  let series = try inputs.list("series").map { value in
    try Series(value).entries.map { try SignedEntry.verified($0.signed(in: channel), in: channel) }
  }
  entries += series.joined()
  let results = [entries, entries.reversed()].map { entries in
    Settled(entries, in: channel, genesis: genesis).document
  }
  #expect(results[0].digest == results[1].digest)
  let document = results[0]
  return .object([
    (
      "kept",
      .list(
        series.map { entries in
          .number(UInt64(entries.count { document.contains($0.id.prefix) }))
        })
    ), ("digest", .hex(Array(Control.encode([.digest(document.digest)]).dropFirst(4)))),
  ])
}

/// Entries by one author that differ in nothing but their Lamport counters, which are also their
/// sequence numbers and grow by one.
private struct Series {
  let seed: [UInt8]
  let kind: UInt8
  let body: [UInt8]
  let first: UInt64
  let count: UInt64

  init(seed: [UInt8], kind: UInt8 = 200, body: [UInt8] = [], from first: UInt64, count: UInt64) {
    (self.seed, self.kind, self.body, self.first, self.count) = (seed, kind, body, first, count)
  }

  init(_ value: Value) throws {
    guard case .list(let fields) = value, fields.count == 5, case .number(let kind) = fields[1],
      case .number(let first) = fields[3], case .number(let count) = fields[4]
    else { throw WrongInput(name: "series") }
    self.init(
      seed: try Inputs.bytes(fields[0]), kind: UInt8(kind), body: try Inputs.bytes(fields[2]),
      from: first, count: count)
  }

  var value: Value {
    .list([.hex(seed), .number(UInt64(kind)), .hex(body), .number(first), .number(count)])
  }

  var entries: [Word] {
    (first..<first + count).map { lamport in
      Word(seed: seed, lamport: lamport, kind: kind, body: body)
    }
  }
}

private func retentionCase(
  _ name: String, _ description: String, rights: [Word] = [], _ series: [Series],
  kept: [UInt64], digest: String
) -> Case {
  Case(
    name, description,
    [
      "rights": .list(rights.map { .hex($0.signedInCreated) }),
      "series": .list(series.map(\.value)),
    ],
    expected: .object([
      ("kept", .list(kept.map { .number($0) })), ("digest", .text(digest)),
    ]))
}

/// The seeds of so many authors, in the order of their ids.
private func seeds(_ count: Int) -> [[UInt8]] {
  let all = (0..<count).map { number in
    [UInt8](repeating: UInt8(number >> 8), count: 16)
      + [UInt8](repeating: UInt8(number & 0xFF), count: 16)
  }
  let known = all.compactMap { seed in Identity(seed: seed).map { (id: $0.id, seed: seed) } }
  return known.sorted { $0.id < $1.id }.map(\.seed)
}

/// A series of full length by each author, one after the other.
private func full(_ authors: [[UInt8]], kind: UInt8 = 200, body: [UInt8] = [], _ count: UInt64)
  -> [Series]
{
  authors.enumerated().map { number, seed in
    Series(seed: seed, kind: kind, body: body, from: 1000 * UInt64(number + 1), count: count)
  }
}

private let end = [UInt8](repeating: 0, count: 16) + bigEndian(UInt32(1))
private let people = Array(seeds(9))

/// Rights by which the first six came by one invite, the sixth confirmed, and the others by grants.
private let sharing: [Word] = {
  let invite = Word.invite(.anna, 5, .consumer, uses: 0)
  let direct = people.suffix(3).enumerated().map { number, seed in
    Word.grant(.anna, 6 + UInt64(number), .consumer, toKey: seed)
  }
  return direct + people.prefix(6).map { Word.redemption(seed: $0, 10, of: invite) }
    + [.grant(.anna, 11, .consumer, toKey: people[5], invite: .firstInvite)]
}()

private let retention: [Case] = [
  retentionCase(
    "newest-of-author", "Of one author the newest 32 entries of unknown kinds.",
    [Series(seed: people[0], from: 100, count: 40)], kept: [32],
    digest: "000000202f5f0765ce5744dae0f39ab59145861944b00bf53fe0b0290f40c201a2161fd9"),
  retentionCase(
    "kinds-together", "All unknown kinds together.",
    [
      Series(seed: people[0], from: 100, count: 20),
      Series(seed: people[0], kind: 201, from: 200, count: 20),
    ], kept: [12, 20],
    digest: "00000020e35b84b4f2d8a2b5261cfc83d9fc4c7b7df0d05e9533fc2b484795239ee05573"),
  retentionCase(
    "equal-shares", "A full row: one entry each gives way, of those with the lowest ids first.",
    full(people, 32), kept: [28, 28, 28, 28, 28, 29, 29, 29, 29],
    digest: "000001001b07e74e1c7e8c00dbb438099c01d27872202384bcc7f03ae13a1c67081bb6b3"),
  retentionCase(
    "few-stay",
    "Those with the most entries give way to one with few, though its id is the lowest.",
    [Series(seed: people[0], from: 10, count: 3)] + full(Array(people.dropFirst()), 32),
    kept: [3, 31, 31, 31, 32, 32, 32, 32, 32],
    digest: "00000100c36e2595ca2ed5be44754db0bbcbb7423b70cfb5e07487e59162260abf72057f"),
  retentionCase(
    "one-each", "Where nobody has more than one, the oldest entry gives way.",
    full(seeds(258), 1), kept: [0, 0] + [UInt64](repeating: 1, count: 256),
    digest: "000001009182e35c6bfed49d2f09d7b38f5eb7da442b827dfc55d2005b272c337a41910a"),
  retentionCase(
    "ends", "Claims and ends: 64 of each author, 256 in all.",
    full(Array(people.prefix(5)), kind: 4, body: end, 65), kept: [51, 51, 51, 51, 52],
    digest: "00000100a72fc5f56b389c4cb2a594def6461858de532d2a4c43d06e7341bd11564ac307"),
  retentionCase(
    "shares-by-invite",
    """
    Six who came by one invite, one of them confirmed, share as one; of these, where they have \
    equally many, the oldest gives way.
    """,
    rights: sharing, full(people, 32), kept: [26, 26, 27, 27, 27, 27, 32, 32, 32],
    digest: "0000010ab9554c72c84e0d9bc1da293edb2d713f40f33c6231c75a80394560f8a734da0f"),
]

import MusterBase
import MusterChannel
import MusterCrypto
import MusterWire

/// Creates entries of numbered authors, under any sequence number.
enum Entries {
  static func signed(
    _ author: UInt64, sequence: UInt64, lamport: UInt64, _ body: EntryBody
  ) -> SignedEntry {
    let identity = testIdentity(author)
    return SignedEntry.sign(
      Entry(author: identity.id, sequence: sequence, lamport: lamport, body: body),
      by: identity, in: testKey.channelID)
  }

  static func presence(_ name: String) -> EntryBody {
    .presence(Presence(bootID: 1, flags: [], name: name, call: nil, streams: []))
  }

  static func neighbourReport(_ heard: [NodeID]) -> EntryBody {
    .neighbourReport(
      NeighbourReport(bootID: 1, heard: heard.map(\.key.prefix).sorted(), suspected: []))
  }

  static func message(_ text: String) -> EntryBody {
    .message(Message(sentAt: 0, after: [], to: nil, content: Array(text.utf8)))
  }

  static func claim(_ call: UInt64) -> EntryBody {
    .claim(CallClaim(call: callID(call), term: 1, startedAt: 0, order: 0, knowledge: .compared))
  }

  static func end(_ call: UInt64) -> EntryBody {
    .end(CallEnd(call: callID(call), term: 1))
  }

  /// Two entries of one author under one sequence number.
  static func contradiction(_ author: UInt64, lamport: UInt64 = 5) -> [SignedEntry] {
    ["this", "that"].map {
      signed(author, sequence: 500, lamport: lamport, message($0))
    }
  }

  /// A body of any kind that does not depend on an owner.
  static func anyBody(_ prng: inout PRNG) -> EntryBody {
    let number = UInt64(prng.below(1000))
    switch prng.below(8) {
    case 0, 1: return presence("name \(number)")
    case 2: return neighbourReport([testIdentity(1).id])
    case 3: return claim(number)
    case 4: return end(number)
    case 5: return .unknown(kind: 200, [UInt8(truncatingIfNeeded: number)])
    default: return message("text \(number)")
    }
  }

  /// Random entries of several authors; no two have the same sequence number.
  static func some(_ count: Int, authors: Int, _ prng: inout PRNG) -> [SignedEntry] {
    (0..<count).map { number in
      signed(
        UInt64(1 + prng.below(authors)), sequence: UInt64(number),
        lamport: UInt64(1 + prng.below(count)), anyBody(&prng))
    }
  }
}

extension Document {
  static func of(_ entries: [SignedEntry], exempt: NodeID? = nil) -> Document {
    var document = Document(channel: testKey.channelID, exempt: exempt)
    for entry in entries { _ = document.insert(entry) }
    return document
  }

  /// All entries and quarantined authors, to compare documents.
  var summary: [[EntryID]] {
    EntryBody.Kind.allCases.map { kind in all(kind).map(\.id) } + [quarantined.map(\.key)]
  }
}

import MusterBase
import MusterChannel
import MusterCrypto
import MusterWire
import Testing

/// Anna, Bert and two more members, in the order in which most cases name them, and the one-time
/// keys of two invites.
enum Person: Int, CaseIterable {
  case anna, bert, carl, dora, firstInvite, secondInvite

  /// The seed of each person is 32 consecutive byte values, as in the examples of Anna and Bert.
  var seed: [UInt8] {
    let first = UInt8(rawValue * 0x20)
    return [UInt8](first..<first + 0x20)
  }

  var identity: Identity { Self.identity(of: seed) }

  static func identity(of seed: [UInt8]) -> Identity {
    guard let identity = Identity(seed: seed) else {
      preconditionFailure("32 bytes are a seed")
    }
    return identity
  }
}

let red = CallID(high: 0xE0E1_E2E3_E4E5_E6E7, low: 0xE8E9_EAEB_ECED_EEEF)
let blue = CallID(high: 0xF0F1_F2F3_F4F5_F6F7, low: 0xF8F9_FAFB_FCFD_FEFF)

/// An entry of one of the members; its Lamport counter is also its sequence number.
struct Word {
  let seed: [UInt8]
  let lamport: UInt64
  let kind: UInt8
  let body: [UInt8]

  init(seed: [UInt8], lamport: UInt64, kind: UInt8, body: [UInt8]) {
    (self.seed, self.lamport, self.kind, self.body) = (seed, lamport, kind, body)
  }

  init(author: Person, lamport: UInt64, kind: UInt8, body: [UInt8]) {
    self.init(seed: author.seed, lamport: lamport, kind: kind, body: body)
  }

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
    _ author: Person, _ lamport: UInt64, _ call: CallID = red, of member: Person,
    actions: UInt8 = 8
  ) -> Word {
    Word(
      author: author, lamport: lamport, kind: 10,
      body: bigEndian(call.high) + bigEndian(call.low) + member.identity.id.key.bytes + [actions])
  }

  /// A text to everyone, without predecessors.
  static func message(_ author: Person, _ lamport: UInt64, _ content: String = "a") -> Word {
    Word(
      author: author, lamport: lamport, kind: 5,
      body: bigEndian(UInt64(0)) + [0, 0] + bigEndian(UInt16(content.utf8.count))
        + Array(content.utf8))
  }

  func signed(in channel: ChannelID) -> [UInt8] {
    let identity = Person.identity(of: seed)
    let unsigned =
      identity.id.key.bytes + bigEndian(lamport) + bigEndian(lamport) + [kind] + body
    return unsigned + identity.sign(Array("muster/1 entry".utf8) + channel.hash.bytes + unsigned)
  }
}

/// A participant, the call that its presence names, and "joined".
typealias Seat = (person: Person, call: CallID, joined: UInt64)

/// A case of the call that `viewer` sees; nil is a member outside of all calls.
/// `invites` gives the numbers of the invites by which members came.
func callCase(
  _ name: String, _ description: String, _ words: [Word], present: [Seat],
  roles: [(Person, Role)] = [], viewer: Person? = nil, endsWithInitiator: Bool = false,
  invites: [(Person, UInt8)] = [], expected: Value
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
      "viewer": viewer.map { hex($0.identity.id) } ?? .hex([]),
      "ends-with-initiator": .number(endsWithInitiator ? 1 : 0),
      "invites": .object(
        invites.map { person, number in
          let key = [UInt8](repeating: number, count: 32)
          return (Hex.encode(person.identity.id.key.bytes), .hex(key))
        }),
    ], expected: expected)
}

/// The result of a case.
func found(
  _ id: CallID = red, by initiator: Person = .anna, term: UInt64 = 1, order: UInt64 = 5,
  started: UInt64 = 0, standing: UInt64, _ participants: [Person] = [.anna]
) -> Value {
  .object([
    ("call", hex(id)), ("initiator", hex(initiator.identity.id)), ("term", .number(term)),
    ("order", .number(order)), ("started", .number(started)), ("standing", .number(standing)),
    ("participants", .list(participants.map { hex($0.identity.id) })),
  ])
}

/// Members who came in at the same time stand in the order of their ids.
func byID(_ people: [Person]) -> [Person] {
  people.sorted { $0.identity.id < $1.identity.id }
}

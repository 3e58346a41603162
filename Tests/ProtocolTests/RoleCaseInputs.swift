import MusterBase
import MusterChannel
import MusterCrypto
import MusterWire
import Testing

/// The created channel of the vector `genesis`, whose owner is Anna.
let created = try? Entries().genesis

/// Entries about rights, written out field by field.
extension Word {
  /// A direct grant, or one that names the invite by which its subject came.
  static func grant(
    _ author: Person, _ lamport: UInt64, _ role: Role, to subject: Person,
    expires: UInt64 = 0, invite: Person? = nil
  ) -> Word {
    grant(author, lamport, role, toKey: subject.seed, expires: expires, invite: invite)
  }

  /// The same to the one with this seed.
  static func grant(
    _ author: Person, _ lamport: UInt64, _ role: Role, toKey seed: [UInt8],
    expires: UInt64 = 0, invite: Person? = nil
  ) -> Word {
    Word(
      author: author, lamport: lamport, kind: 6,
      body: head(role, seed, expires, epoch: 0) + [invite == nil ? 0 : 2]
        + (invite?.identity.id.key.bytes ?? []))
  }

  /// A bearer grant: the invite with this one-time key.
  static func invite(
    _ author: Person, _ lamport: UInt64, _ role: Role, for key: Person = .firstInvite,
    uses: UInt32 = 1, expires: UInt64 = 0, roleExpires: UInt64 = 0, epoch: UInt32 = 0
  ) -> Word {
    Word(
      author: author, lamport: lamport, kind: 6,
      body: head(role, key.seed, expires, epoch: epoch) + [1] + bigEndian(uses)
        + bigEndian(roleExpires))
  }

  private static func head(
    _ role: Role, _ subject: [UInt8], _ expires: UInt64, epoch: UInt32
  ) -> [UInt8] {
    Person.identity(of: subject).id.key.bytes + [role.rawValue] + bigEndian(expires)
      + bigEndian(epoch)
  }

  /// A redemption of an invite, for which `key` signs.
  static func redemption(
    _ author: Person, _ lamport: UInt64, of invite: Word, by key: Person = .firstInvite
  ) -> Word { redemption(seed: author.seed, lamport, of: invite, by: key) }

  static func redemption(
    seed: [UInt8], _ lamport: UInt64, of invite: Word, by key: Person = .firstInvite
  ) -> Word {
    let channel = created?.channelID.hash.bytes ?? []
    let redeemer = Person.identity(of: seed).id.key.bytes
    let message = Array("muster/1 redeem".utf8) + channel + redeemer
    let grant = invite.signedInCreated
    return Word(
      seed: seed, lamport: lamport, kind: 7,
      body: bigEndian(UInt16(grant.count)) + grant + key.identity.sign(message))
  }

  /// A change of the key, after that in `previous`.
  static func epoch(
    _ author: Person, _ lamport: UInt64, _ number: UInt32, after previous: Word? = nil,
    removed: [Person] = [], kept: [Person] = []
  ) -> Word {
    let former = previous.map { Blake2b.hash($0.signedInCreated) }
    return Word(
      author: author, lamport: lamport, kind: 8,
      body: bigEndian(number) + [UInt8](repeating: UInt8(number), count: 32)
        + (former ?? [UInt8](repeating: 0, count: 32)) + [UInt8(removed.count)]
        + removed.flatMap(\.identity.id.key.bytes) + [UInt8(kept.count)]
        + kept.flatMap { $0.identity.id.key.bytes.prefix(8) })
  }

  /// An entry of a kind that nobody knows.
  static func unknown(_ author: Person, _ lamport: UInt64) -> Word {
    Word(author: author, lamport: lamport, kind: 200, body: [])
  }

  var signedInCreated: [UInt8] { created.map { signed(in: $0.channelID) } ?? [] }
}

/// A case of the roles and the document that follow from entries; `held` has the positions of those
/// that are kept.
func roleCase(
  _ name: String, _ description: String, _ words: [Word], time: UInt64 = 1000,
  roles: [(Person, Role)] = [], epoch: UInt64 = 0, held: [Int]
) -> Case {
  let all = [(Person.anna, Role.owner)] + roles
  return Case(
    name, description,
    ["entries": .list(words.map { .hex($0.signedInCreated) }), "time": .number(time)],
    expected: .object([
      (
        "roles",
        .object(
          all.map { (Hex.encode($0.0.identity.id.key.bytes), Value.text($0.1.name)) }
            .sorted { $0.0 < $1.0 })
      ),
      ("epoch", .number(epoch)), ("held", .list(held.map { .number(UInt64($0)) })),
    ]))
}

/// The document and the rights that follow from entries, in whatever order they arrive.
struct Settled {
  private(set) var document: MusterChannel.Document
  private(set) var rights: Rights

  init(_ entries: [SignedEntry], in channel: ChannelID, genesis: SignedGenesis?) {
    document = MusterChannel.Document(channel: channel, exempt: genesis?.genesis.owner)
    rights = Rights(channel: channel, genesis: genesis)
    var waiting = entries
    var before: DocumentDigest?
    rights.update(from: document)
    while before != document.digest {
      before = document.digest
      for entry in waiting { take(entry) }
      waiting = entries.filter { !document.contains($0.id.prefix) }
    }
  }

  private mutating func take(_ entry: SignedEntry) {
    guard rights.admits(entry.entry) else { return }
    _ = document.insert(entry)
    rights.update(from: document)
    let now = rights
    _ = document.settle(now.admissions) { now.holds($0.entry) }
    rights.update(from: document)
  }
}

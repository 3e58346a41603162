import MusterBase

/// What a member may do in a channel; each role may do all that the ones before it may.
public enum Role: UInt8, Sendable, CaseIterable, Comparable {
  /// No right to be there at all.
  case none = 0
  case consumer = 1
  case attendee = 2
  case presenter = 3
  case owner = 4

  public static func < (a: Role, b: Role) -> Bool { a.rawValue < b.rawValue }

  /// The word on the command line and in events.
  public var name: String {
    switch self {
    case .none: "none"
    case .consumer: "consumer"
    case .attendee: "attendee"
    case .presenter: "presenter"
    case .owner: "owner"
    }
  }

  public init?(name: String) {
    guard let role = Role.allCases.first(where: { $0.name == name }) else { return nil }
    self = role
  }
}

/// An owner's word on what the holder of a key may do; of the grants for one key the newest counts.
///
/// Layout: subject 32, role 1, expires at 8, epoch 4, bearer 1.
public struct Grant: Equatable, Sendable {
  /// A member's key, or the one-time key of an invite.
  public var subject: NodeID
  /// `none` takes a role away.
  public var role: Role
  /// Seconds since 1970 by the wall clock of whoever checks; 0 for never.
  public var expiresAt: UInt64
  /// For an invite: the key epoch in which it may be used.
  public var epoch: UInt32
  /// Whether whoever holds the subject's secret may pass the role to a key of its own.
  public var isBearer: Bool

  public static let bytes = 32 + 1 + 8 + 4 + 1

  public init(subject: NodeID, role: Role, expiresAt: UInt64, epoch: UInt32, isBearer: Bool) {
    self.subject = subject
    self.role = role
    self.expiresAt = expiresAt
    self.epoch = epoch
    self.isBearer = isBearer
  }

  func write(to writer: inout Writer) {
    writer.append(subject.key)
    writer.u8(role.rawValue)
    writer.u64(expiresAt)
    writer.u32(epoch)
    writer.u8(isBearer ? 1 : 0)
  }

  init(reading reader: inout Reader) throws(WireError) {
    subject = NodeID(try reader.bytes32())
    guard let role = Role(rawValue: try reader.u8()) else { throw .invalidValue }
    self.role = role
    expiresAt = try reader.u64()
    epoch = try reader.u32()
    isBearer = try reader.u8() & 1 == 1
  }
}

/// "I hold the secret of this invite": a bearer grant and the one-time key's signature over the
/// author's key; of an author's redemptions the newest counts.
///
/// Layout: grant entry length 2 and bytes (with the owner's signature), signature 64.
public struct Redemption: Equatable, Sendable {
  /// The owner's signed entry with a bearer `Grant`.
  public var grant: [UInt8]
  /// By the grant's subject, over label, channel and the redeemer's key.
  public var signature: [UInt8]

  public static let grantEntryLimit = 256

  public init(grant: [UInt8], signature: [UInt8]) {
    self.grant = grant
    self.signature = signature
  }

  func write(to writer: inout Writer) {
    precondition(grant.count <= Self.grantEntryLimit && signature.count == Entry.signatureBytes)
    writer.u16(UInt16(grant.count))
    writer.append(grant)
    writer.append(signature)
  }

  init(reading reader: inout Reader) throws(WireError) {
    let length = Int(try reader.u16())
    guard length <= Self.grantEntryLimit else { throw .tooLong }
    grant = try reader.array(length)
    signature = try reader.array(Entry.signatureBytes)
  }
}

/// A new channel key for everyone but those removed; signed by the channel's owner, one after the
/// other.
///
/// Layout: number 4, key id 32, previous 32, count 1 and the removed members' keys, count 1 and the
/// first 8 bytes of the keys of those who are granted their roles anew along with it.
public struct EpochChange: Equatable, Sendable {
  /// From 1 on; the key that a channel was created with is of epoch 0.
  public var number: UInt32
  /// The id that follows from the new key: it tells the right key, and nothing of it.
  public var keyID: KeyID
  /// The entry id of the epoch before; zero for the first.
  public var previous: Bytes32
  public var removed: [NodeID]
  /// Members who came by invites and stay: the change counts once the owner's grants for them are
  /// known, so that nobody is a stranger for the time between.
  public var kept: [UInt64]

  /// Members removed by one change.
  public static let removedLimit = 4
  /// More do not fit into one entry; the grants of the rest come as they come.
  public static let keptLimit = 96

  public init(
    number: UInt32, keyID: KeyID, previous: Bytes32, removed: [NodeID], kept: [UInt64] = []
  ) {
    self.number = number
    self.keyID = keyID
    self.previous = previous
    self.removed = removed
    self.kept = kept
  }

  func write(to writer: inout Writer) {
    precondition(removed.count <= Self.removedLimit && kept.count <= Self.keptLimit)
    writer.u32(number)
    writer.append(keyID.key)
    writer.append(previous)
    writer.u8(UInt8(removed.count))
    for member in removed { writer.append(member.key) }
    writer.u8(UInt8(kept.count))
    for member in kept { writer.u64(member) }
  }

  init(reading reader: inout Reader) throws(WireError) {
    number = try reader.u32()
    guard number > 0 else { throw .invalidValue }
    keyID = KeyID(try reader.bytes32())
    previous = try reader.bytes32()
    let count = Int(try reader.u8())
    guard count <= Self.removedLimit else { throw .tooLong }
    removed = []
    for _ in 0..<count { removed.append(NodeID(try reader.bytes32())) }
    let keptCount = Int(try reader.u8())
    guard keptCount <= Self.keptLimit else { throw .tooLong }
    kept = []
    for _ in 0..<keptCount { kept.append(try reader.u64()) }
  }
}

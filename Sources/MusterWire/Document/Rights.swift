import MusterBase

/// A member's role in a channel; each role includes the rights of those before it.
public enum Role: UInt8, Sendable, CaseIterable, Comparable {
  /// No membership.
  case none = 0
  /// Receives, joins calls and writes messages.
  case consumer = 1
  /// Also sends audio and video, unless the channel reserves that to presenters.
  case attendee = 2
  /// Also starts calls, shares a screen and takes over a call.
  case presenter = 3
  /// Also grants roles and changes the channel key.
  case owner = 4

  public static func < (a: Role, b: Role) -> Bool { a.rawValue < b.rawValue }

  /// The name on the command line and in events.
  public var name: String {
    switch self {
    case .none: "none"
    case .consumer: "consumer"
    case .attendee: "attendee"
    case .presenter: "presenter"
    case .owner: "owner"
    }
  }

  /// The role of that name; nil for any other text.
  public init?(name: String) {
    guard let role = Role.allCases.first(where: { $0.name == name }) else { return nil }
    self = role
  }
}

/// An owner's grant of a role to a key. Of several grants for one key the latest counts.
///
/// Layout: subject 32, role 1, expires at 8, epoch 4, bearer 1.
public struct Grant: Equatable, Sendable {
  /// A member's key, or the one-time key of an invite.
  public var subject: NodeID
  /// The role; `none` revokes.
  public var role: Role
  /// Seconds since 1970 on the wall clock of the node that checks; 0 for no expiry.
  public var expiresAt: UInt64
  /// For bearer grants: the key epoch in which the invite may be used.
  public var epoch: UInt32
  /// Whether the holder of the subject's secret key may pass the role on to a key of its own.
  public var isBearer: Bool

  /// Bytes of the encoded body.
  public static let bytes = 32 + 1 + 8 + 4 + 1

  /// `expiresAt` in seconds since 1970, 0 for no expiry; `epoch` counts for bearer grants only.
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

/// Proves possession of an invite: a bearer grant, and a signature by its one-time key over the
/// author's key. Of several redemptions of one author the latest counts.
///
/// Layout: grant entry length 2 and bytes (with the owner's signature), signature 64.
public struct Redemption: Equatable, Sendable {
  /// The owner's signed entry with a bearer `Grant`.
  public var grant: [UInt8]
  /// By the grant's subject, over a label, the channel and the redeemer's key; 64 bytes.
  public var signature: [UInt8]

  /// Bytes of the longest grant entry.
  public static let grantEntryLimit = 256

  /// `grant` has at most `grantEntryLimit` bytes, `signature` 64.
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

/// A change of the channel key, which excludes removed members; signed by the owner. Changes form a
/// chain.
///
/// Layout: number 4, key id 32, previous 32, count 1 and the removed members' keys, count 1 and the
/// first 8 bytes of the keys of the members who are granted their roles again.
public struct EpochChange: Equatable, Sendable {
  /// The epoch, from 1; the key that the channel was created with is of epoch 0.
  public var number: UInt32
  /// The id derived from the new key: it identifies the key without revealing it.
  public var keyID: KeyID
  /// Entry id of the previous change; zero for the first.
  public var previous: Bytes32
  /// The members that are removed.
  public var removed: [NodeID]
  /// Members who joined by invite and stay. The change takes effect once the owner's new grants for
  /// them have arrived, so that nobody is refused in between.
  public var kept: [UInt64]

  /// Members that one change can remove.
  public static let removedLimit = 4
  /// Members listed as kept; more do not fit into one entry, and their grants follow on their own.
  public static let keptLimit = 96

  /// At most `removedLimit` members removed and `keptLimit` kept, as `Bytes32.prefix`.
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

import MusterBase

/// A member's role in a channel; each role includes the rights of all lower roles.
public enum Role: UInt8, Sendable, CaseIterable, Comparable {
  /// No membership.
  case none = 0
  /// A member that receives, joins calls and writes messages.
  case consumer = 1
  /// A member that also sends audio and video, unless the channel lets only presenters send.
  case attendee = 2
  /// A member that also starts calls, shares a screen and takes over calls.
  case presenter = 3
  /// A member that also grants roles and changes the channel key.
  case owner = 4

  public static func < (a: Role, b: Role) -> Bool { a.rawValue < b.rawValue }

  /// The role's name on the command line and in events.
  public var name: String {
    switch self {
    case .none: "none"
    case .consumer: "consumer"
    case .attendee: "attendee"
    case .presenter: "presenter"
    case .owner: "owner"
    }
  }

  /// The role with this name; nil for other text.
  public init?(name: String) {
    guard let role = Role.allCases.first(where: { $0.name == name }) else { return nil }
    self = role
  }
}

/// An owner's grant of a role to a key. Of several grants for one key, the latest counts.
///
/// Layout in bytes: subject 32, role 1, expiry time 8, epoch 4 (0 unless for bearers), flags 1 (bit
/// 0: for bearers, bit 1: by invite); for bearers uses 4, expiry time of the role 8; by invite
/// the one-time key 32.
public struct Grant: Equatable, Sendable {
  /// The recipient of the role.
  public enum Form: Equatable, Sendable {
    /// To the subject itself.
    case direct
    /// To the subject itself, which came by the invite with this one-time key. The owner confirms
    /// a redemption by such a grant.
    case byInvite(NodeID)
    /// To the keys for which the holder of the subject's secret key signs redemptions.
    case bearer(Terms)
  }

  /// What holds for those who come by an invite.
  public struct Terms: Equatable, Sendable {
    /// The key epoch in which the invite may be used.
    public var epoch: UInt32
    /// The number of keys that may come by the invite; 0 for any number.
    public var uses: UInt32
    /// The expiry of the roles of those who came, in seconds since 1970; 0 for no expiry.
    public var roleExpiresAt: UInt64

    /// `uses` is 0 for any number, `roleExpiresAt` in seconds since 1970, 0 for no expiry.
    public init(epoch: UInt32, uses: UInt32, roleExpiresAt: UInt64 = 0) {
      self.epoch = epoch
      self.uses = uses
      self.roleExpiresAt = roleExpiresAt
    }
  }

  /// The key of a member, or the one-time key of an invite.
  public var subject: NodeID
  /// The role granted; `none` revokes the subject's role, or the invite.
  public var role: Role
  /// The expiry of the role, or of the invite, in seconds since 1970 by the wall clock of the
  /// verifying node; 0 for no expiry.
  public var expiresAt: UInt64
  /// The recipient of the role.
  public var form: Form

  /// `expiresAt` is in seconds since 1970, 0 for no expiry.
  public init(subject: NodeID, role: Role, expiresAt: UInt64 = 0, form: Form = .direct) {
    self.subject = subject
    self.role = role
    self.expiresAt = expiresAt
    self.form = form
  }

  /// The terms of the invite; nil for a grant to the subject itself.
  public var terms: Terms? {
    if case .bearer(let terms) = form { terms } else { nil }
  }

  /// Whether the holder of the subject's secret key may transfer the role to other keys.
  public var isBearer: Bool { terms != nil }

  /// The one-time key of the invite by which the subject came; nil if it came by none, or if the
  /// grant is itself for an invite.
  public var invite: NodeID? {
    if case .byInvite(let invite) = form { invite } else { nil }
  }

  /// The expiry, in 1970, of a role that expired before the channel's key was last changed: its
  /// holder does not know the key.
  public static let longExpired: UInt64 = 1

  private static let bearerFlag: UInt8 = 1
  private static let inviteFlag: UInt8 = 2

  func write(to writer: inout Writer) {
    writer.append(subject.key)
    writer.u8(role.rawValue)
    writer.u64(expiresAt)
    writer.u32(terms?.epoch ?? 0)
    switch form {
    case .direct: writer.u8(0)
    case .byInvite(let invite):
      writer.u8(Self.inviteFlag)
      writer.append(invite.key)
    case .bearer(let terms):
      writer.u8(Self.bearerFlag)
      writer.u32(terms.uses)
      writer.u64(terms.roleExpiresAt)
    }
  }

  init(reading reader: inout Reader) throws(WireError) {
    subject = NodeID(try reader.bytes32())
    guard let role = Role(rawValue: try reader.u8()) else { throw .invalidValue }
    self.role = role
    expiresAt = try reader.u64()
    let epoch = try reader.u32()
    let flags = try reader.u8()
    if flags & Self.bearerFlag != 0 {
      let uses = try reader.u32()
      form = .bearer(Terms(epoch: epoch, uses: uses, roleExpiresAt: try reader.u64()))
    } else if flags & Self.inviteFlag != 0 {
      form = .byInvite(NodeID(try reader.bytes32()))
    } else {
      form = .direct
    }
  }
}

/// A proof of possession of an invite: a bearer grant, and a signature by the grant's one-time key
/// over the redeemer's key. Of several redemptions of one author, the latest counts.
///
/// Layout in bytes: length 2 and bytes of the signed grant entry, signature 64.
public struct Redemption: Equatable, Sendable {
  /// An owner's signed entry with a bearer `Grant`.
  public var grant: [UInt8]
  /// The 64-byte signature by the grant's subject over a label, the channel and the redeemer's key.
  public var signature: [UInt8]

  /// The length of the longest grant entry in bytes.
  public static let grantEntryLimit = 256

  /// `grant` has at most `grantEntryLimit` bytes, `signature` 64.
  public init(grant: [UInt8], signature: [UInt8]) {
    self.grant = grant
    self.signature = signature
  }

  /// The one-time key of the invite; nil if `grant` does not decode. No signature is verified.
  public var oneTimeKey: NodeID? {
    guard let entry = try? Entry(decoding: grant.dropLast(Entry.signatureBytes)),
      case .grant(let grant) = entry.body
    else { return nil }
    return grant.subject
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

/// A change of the channel key, which excludes removed members; signed by the owner. Each change
/// names its predecessor, so the changes form a chain.
///
/// Layout in bytes: number 4, key id 32, previous 32, count 1 and the removed members' keys, count
/// 1 and the first 8 bytes of the key of each member in `kept`.
public struct EpochChange: Equatable, Sendable {
  /// The number of the epoch, from 1; the key at the channel's creation belongs to epoch 0.
  public var number: UInt32
  /// The id of the new key, which identifies the key without revealing it.
  public var keyID: KeyID
  /// The entry id of the previous change; all zeros for the first change.
  public var previous: Bytes32
  /// The members that lose their membership with this change.
  public var removed: [NodeID]
  /// The id prefixes of members that joined by invite and stay. The change takes effect once the
  /// owner's new grants for these members have arrived, so that no member is refused in between.
  public var kept: [UInt64]

  /// The maximum number of members that one change can remove.
  public static let removedLimit = 4
  /// The maximum number of members listed as kept; further members do not fit into one entry, so
  /// the change does not wait for their grants.
  public static let keptLimit = 96

  /// `removed` has at most `removedLimit` members, `kept` at most `keptLimit` id prefixes.
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
    writer.append(keyID.hash)
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

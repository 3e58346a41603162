import MusterBase

/// The genesis of a created channel: the owner's statement that defines the channel. The owner's
/// signature follows, and the channel's id is the hash of both, so an altered genesis would have
/// another id.
///
/// Layout in bytes: owner 32, nonce 16, creation time 8, settings 1 (bit 0: calls end with their
/// initiator, bit 1: only presenters send), name length 1 and UTF-8.
public struct Genesis: Equatable, Sendable {
  /// The creator of the channel, whose owner role cannot be revoked.
  public var owner: NodeID
  /// 16 random bytes, which make channels with the same owner and name distinct.
  public var nonce: [UInt8]
  /// The time of creation in seconds since 1970, by the owner's wall clock; for display only.
  public var createdAt: UInt64
  /// The policies of the channel.
  public var settings: ChannelSettings
  /// The channel's name, as shown to members.
  public var name: String

  /// The length of `nonce` in bytes.
  public static let nonceBytes = 16
  /// The length of the longest encoding in bytes, signature included.
  public static let signedBytes = 32 + 16 + 8 + 1 + 1 + Limits.channelNameBytes + 64

  /// Describes an unsigned genesis. `nonce` has `nonceBytes` bytes, `name` at most
  /// `Limits.channelNameBytes`.
  public init(
    owner: NodeID, nonce: [UInt8], createdAt: UInt64, settings: ChannelSettings, name: String
  ) {
    self.owner = owner
    self.nonce = nonce
    self.createdAt = createdAt
    self.settings = settings
    self.name = name
  }

  /// The bytes that the owner signs; the signature follows these bytes.
  public func encoded() -> [UInt8] {
    precondition(nonce.count == Self.nonceBytes && name.utf8.count <= Limits.channelNameBytes)
    var writer = Writer(capacity: Self.signedBytes)
    writer.append(owner.key)
    writer.append(nonce)
    writer.u64(createdAt)
    writer.u8((settings.callEndsWithInitiator ? 1 : 0) | (settings.onlyPresentersSend ? 2 : 0))
    writer.text(name)
    return writer.bytes
  }

  /// Decodes a genesis; throws for truncated input, trailing bytes, an overlong name and ill-formed
  /// UTF-8.
  public init(decoding bytes: some Collection<UInt8>) throws(WireError) {
    var reader = Reader(Array(bytes))
    owner = NodeID(try reader.bytes32())
    nonce = try reader.array(Self.nonceBytes)
    createdAt = try reader.u64()
    let bits = try reader.u8()
    settings = ChannelSettings(
      callEndsWithInitiator: bits & 1 != 0, onlyPresentersSend: bits & 2 != 0)
    name = try reader.text(limit: Limits.channelNameBytes)
    try reader.expectEnd()
  }
}

/// The policies of a channel, which are set when the channel is created and never change.
public struct ChannelSettings: Equatable, Sendable {
  /// Whether a call ends once its initiator has been unreachable for the grace time, instead of
  /// being handed over to another participant.
  public var callEndsWithInitiator: Bool
  /// Whether attendees may only receive, like consumers.
  public var onlyPresentersSend: Bool

  /// By default calls are handed over, and attendees may send.
  public init(callEndsWithInitiator: Bool = false, onlyPresentersSend: Bool = false) {
    self.callEndsWithInitiator = callEndsWithInitiator
    self.onlyPresentersSend = onlyPresentersSend
  }
}

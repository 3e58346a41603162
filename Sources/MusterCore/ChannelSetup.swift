import MusterBase
import MusterChannel
import MusterCrypto
import MusterWire

/// A channel to join, with all that a node must know of it beforehand.
public struct ChannelSetup: Sendable {
  /// The local name of the channel.
  public var name: String
  /// The keys of its epochs in ascending order; the last one is in force. Never empty.
  public var keys: [EpochKey]
  /// Nil for an open channel, where all who have the key may join and send.
  public var genesis: SignedGenesis?
  /// Signed entries that an earlier process wrote to the store.
  public var entries: [[UInt8]]
  /// Ids of those among them that are messages not shown yet.
  public var unshown: [EntryID] = []
  /// An invite that this node comes with and has not shown yet.
  public var ticket: Ticket?

  /// An open channel.
  public init(name: String, key: ChannelKey) {
    self.init(
      name: name, keys: [EpochKey(number: 0, key: key)], genesis: nil, entries: [], ticket: nil)
  }

  /// A created channel, or an open one without `genesis`; `keys` must not be empty.
  public init(
    name: String, keys: [EpochKey], genesis: SignedGenesis?, entries: [[UInt8]], ticket: Ticket?
  ) {
    precondition(!keys.isEmpty)
    self.name = name
    self.keys = keys
    self.genesis = genesis
    self.entries = entries
    self.ticket = ticket
  }

  /// The hash of the genesis, or what follows from the key of an open channel.
  public var id: ChannelID { genesis?.channelID ?? keys[keys.count - 1].key.channelID }
}

/// A channel's key from one change of it to the next.
public struct EpochKey: Equatable, Sendable {
  /// The epoch: 0 for the key of the creation, one more with each change.
  public var number: UInt32
  /// The secret that all members of the epoch share.
  public var key: ChannelKey

  /// The key of epoch `number`.
  public init(number: UInt32, key: ChannelKey) {
    self.number = number
    self.key = key
  }
}

/// The rights that an invite grants.
public struct Ticket: Sendable {
  /// The owner's signed entry with a bearer grant.
  public var grant: [UInt8]
  /// The one-time key that the grant names.
  public var secret: Identity

  /// `secret` must be the key pair that `grant` names as its subject.
  public init(grant: [UInt8], secret: Identity) {
    self.grant = grant
    self.secret = secret
  }
}

/// Why a command cannot be carried out; nothing was changed.
public enum CommandRefusal: Error, Equatable, Sendable {
  /// This node is not in the channel.
  case unknownChannel
  /// No member of the channel has this id.
  case unknownMember
  /// Roles, invites with roles and removal need a channel that was created by an owner.
  case openChannel
  /// The role of this node lacks the capability.
  case notAllowed(Capability, Role)
  /// This node itself is not taken for a member.
  case notMember(Refusal)
  /// Nobody can take the owner's own role away.
  case ownerStays
  /// The text is longer than `Limits.textBytes`.
  case tooLong
  /// The text is empty.
  case empty
  /// The key has changed as often as it can.
  case tooManyEpochs
  /// Earlier changes of this node are still being written.
  case busy
}

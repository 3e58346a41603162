import MusterBase
import MusterChannel
import MusterCrypto
import MusterWire

/// A channel to join: its name, keys, genesis and stored entries, and an invite to redeem.
public struct ChannelSetup: Sendable {
  /// The local name of the channel.
  public var name: String
  /// The keys of the channel's epochs in ascending order; the last key is in force. Never empty.
  public var keys: [EpochKey]
  /// The signed genesis; nil for an open channel, in which the key alone is enough to join and
  /// send.
  public var genesis: SignedGenesis?
  /// Signed entries that an earlier process wrote to the store.
  public var entries: [[UInt8]]
  /// The ids of the messages in `entries` that have not yet been shown to the user.
  public var undelivered: [EntryID] = []
  /// An invite that this node has not yet redeemed.
  public var credential: InviteCredential?
  /// Whether the keys come from a backup, so that members may have a newer one.
  public var isRestored = false

  /// Creates the setup of an open channel.
  public init(name: String, key: ChannelKey) {
    self.init(
      name: name, keys: [EpochKey(number: 0, key: key)], genesis: nil, entries: [], credential: nil)
  }

  /// Creates the setup of a channel with this genesis, or of an open channel if `genesis` is nil;
  /// `keys` must not be empty.
  public init(
    name: String, keys: [EpochKey], genesis: SignedGenesis?, entries: [[UInt8]],
    credential: InviteCredential?
  ) {
    precondition(!keys.isEmpty)
    self.name = name
    self.keys = keys
    self.genesis = genesis
    self.entries = entries
    self.credential = credential
  }

  /// The hash of the genesis, or for an open channel an id derived from its key.
  public var id: ChannelID { genesis?.channelID ?? keys[keys.count - 1].key.channelID }
}

/// The key of a channel in one epoch, that is, from one key change to the next.
public struct EpochKey: Equatable, Sendable {
  /// The number of the epoch: 0 for the initial key, incremented with each change.
  public var number: UInt32
  /// The secret that all members of the epoch share.
  public var key: ChannelKey

  /// Creates the key of epoch `number`.
  public init(number: UInt32, key: ChannelKey) {
    self.number = number
    self.key = key
  }
}

/// The part of an invite that a node redeems for a role in a created channel.
public struct InviteCredential: Sendable {
  /// The owner's signed entry with a bearer grant.
  public var grant: [UInt8]
  /// The one-time key that the grant names.
  public var secret: Identity

  /// Creates a credential; `secret` must be the key pair that `grant` names as its subject.
  public init(grant: [UInt8], secret: Identity) {
    self.grant = grant
    self.secret = secret
  }
}

/// The reason why a command was refused; a refused command changes nothing.
public enum CommandRefusal: Error, Equatable, Sendable {
  /// This node is not in the channel.
  case unknownChannel
  /// The id is not a valid public key, so no member can have it.
  case unknownMember
  /// Roles, invites with roles and removal need a channel that was created by an owner.
  case openChannel
  /// The role of this node lacks the capability.
  case notAllowed(Capability, Role)
  /// The channel does not recognise this node as a member.
  case notMember(Refusal)
  /// The role of the owner named in the genesis cannot be changed.
  case ownerStays
  /// The text is longer than `Limits.textBytes`.
  case tooLong
  /// The text is empty.
  case empty
  /// This node was restored from a backup and has met no other member since, so that there may be
  /// a key that it does not know.
  case restored
  /// The number of key changes has reached `Limits.epochs`.
  case tooManyEpochs
  /// There is no call to join.
  case noCall
  /// The call cannot be handed over: it ends with its initiator, or nobody in it may lead it.
  case noSuccessor(endsWithInitiator: Bool)
  /// The member is not in the call, so that there is nothing to mute or to remove it from.
  case notInCall
  /// The member has a role that is not lower than this node's.
  case notLower(Role)
  /// A member of a higher role has removed this node from the call.
  case removedFromCall(by: NodeID)
  /// Earlier changes by this node are still being written to disk.
  case busy
}

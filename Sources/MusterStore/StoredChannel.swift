import MusterBase
import MusterChannel
import MusterCore
import MusterCrypto

/// A channel as stored between runs.
public struct StoredChannel: Sendable {
  /// The bearer grant and one-time key of the invite with which this node joined a created channel.
  public struct InviteCredential: Sendable {
    /// The encoded bearer grant, signed by an owner.
    public var grant: [UInt8]
    /// The Ed25519 seed of the one-time key, 32 bytes.
    public var seed: [UInt8]

    /// A credential with these values, which are not checked.
    public init(grant: [UInt8], seed: [UInt8]) {
      self.grant = grant
      self.seed = seed
    }
  }

  /// The channel's id, derived from the genesis or, in an open channel, from the key.
  public var id: ChannelID
  /// The local name of the channel, which need not be unique (see `Store.channels(named:)`).
  public var name: String
  /// The signed genesis; nil for an open channel.
  public var genesis: [UInt8]?
  /// The channel keys in order of their epochs; empty for an open channel whose key is derived from
  /// its name alone.
  public var keys: [EpochKey] = []
  /// The time at which this node first stored the channel, in seconds since 1970.
  public var createdAt: UInt64
  /// The bearer grant and one-time key of the invite with which this node joined; nil in an open
  /// channel or one that this node created.
  public var credential: InviteCredential?
  /// The addresses (`HOST:PORT`) of nodes that may be reachable.
  public var bootstrapAddresses: [String] = []
  /// The addresses (`HOST:PORT`) of rendezvous servers, best first.
  public var rendezvous: [String] = []
  /// Whether the channel comes from a backup, which may lack its newest key, and no other member
  /// has been met since.
  public var isRestored = false

  /// A channel without keys, credential and addresses, which can be set afterwards.
  public init(id: ChannelID, name: String, createdAt: UInt64) {
    self.id = id
    self.name = name
    self.createdAt = createdAt
  }

  /// Whether anyone who knows the channel's name can derive its key: it is open, and has no
  /// passphrase.
  public var isPublic: Bool { genesis == nil && ChannelKey.fromName(name).channelID == id }

  /// Whether this node's identity created the channel, here or before it was restored.
  public var wasCreatedHere: Bool { genesis != nil && credential == nil }

  /// The setup for joining, without entries; nil if no key is stored, or if the genesis is invalid
  /// or belongs to another channel.
  public var setup: ChannelSetup? {
    guard !keys.isEmpty else { return nil }
    let signed = genesis.flatMap { SignedGenesis.verified($0) }
    guard (genesis == nil) == (signed == nil), signed.map({ $0.channelID == id }) ?? true else {
      return nil
    }
    let secret = credential.flatMap { Identity(seed: $0.seed) }
    var setup = ChannelSetup(
      name: name, keys: keys, genesis: signed, entries: [],
      credential: secret.flatMap { secret in
        credential.map { MusterCore.InviteCredential(grant: $0.grant, secret: secret) }
      })
    setup.isRestored = isRestored
    return setup
  }
}

extension [StoredChannel] {
  /// Those that `text` may mean: that with this id (16 or 64 hex digits), or else those with this
  /// name. Channels whose key anyone can derive from the name are among the latter only if there
  /// are no others.
  public func named(_ text: String) -> [StoredChannel] {
    guard !Hex.isID(text) else { return filter { $0.id.isNamed(by: text) } }
    let named = filter { $0.name == text }
    let keyed = named.filter { !$0.isPublic }
    return keyed.isEmpty ? named : keyed
  }
}

/// A member's name and a key seen with that name.
public struct KnownIdentity: Equatable, Sendable {
  /// The member's display name, which need not be unique.
  public var name: String
  /// The member's Ed25519 public key.
  public var key: NodeID
  /// The time at which the key was first seen with the name, in seconds since 1970.
  public var firstSeen: UInt64
  /// The time at which the key was last seen with the name, in seconds since 1970.
  public var lastSeen: UInt64
  /// Whether the user has confirmed the key by comparing verification codes.
  public var isVerified: Bool

  /// An identity with these values; times are in seconds since 1970.
  public init(
    name: String, key: NodeID, firstSeen: UInt64, lastSeen: UInt64, isVerified: Bool
  ) {
    self.name = name
    self.key = key
    self.firstSeen = firstSeen
    self.lastSeen = lastSeen
    self.isVerified = isVerified
  }
}

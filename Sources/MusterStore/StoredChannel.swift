import MusterBase
import MusterChannel
import MusterCore
import MusterCrypto

/// A channel as it is remembered between processes.
public struct StoredChannel: Sendable {
  /// An invite that this node came with.
  public struct Ticket: Sendable {
    public var grant: [UInt8]
    public var seed: [UInt8]

    public init(grant: [UInt8], seed: [UInt8]) {
      self.grant = grant
      self.seed = seed
    }
  }

  public var id: ChannelID
  /// What the channel is called here; of two channels with one name the later one has it.
  public var name: String
  /// The signed genesis; nil for an open channel.
  public var genesis: [UInt8]?
  /// In rising order; none for an open channel whose key follows from its name or passphrase.
  public var keys: [EpochKey] = []
  /// Seconds since 1970 when it came to be known here.
  public var createdAt: UInt64
  public var ticket: Ticket?
  /// `HOST:PORT` of where others were to be found.
  public var peers: [String] = []
  public var rendezvous: [String] = []

  public init(id: ChannelID, name: String, createdAt: UInt64) {
    self.id = id
    self.name = name
    self.createdAt = createdAt
  }

  /// What a node joins, without the entries; nil when no key is kept or something is damaged.
  public var setup: ChannelSetup? {
    guard !keys.isEmpty else { return nil }
    let signed = genesis.flatMap { SignedGenesis.verified($0) }
    guard (genesis == nil) == (signed == nil), signed.map({ $0.channelID == id }) ?? true else {
      return nil
    }
    let secret = ticket.flatMap { Identity(seed: $0.seed) }
    return ChannelSetup(
      name: name, keys: keys, genesis: signed, entries: [],
      ticket: secret.flatMap { secret in
        ticket.map { MusterCore.Ticket(grant: $0.grant, secret: secret) }
      })
  }
}

/// A name and the key that was first seen under it.
public struct KnownIdentity: Equatable, Sendable {
  public var name: String
  public var key: NodeID
  /// Seconds since 1970.
  public var firstSeen: UInt64
  public var lastSeen: UInt64
  /// Whether codes were compared by voice.
  public var isVerified: Bool

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

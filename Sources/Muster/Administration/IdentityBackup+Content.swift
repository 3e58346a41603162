import FoundationEssentials
import MusterBase
import MusterChannel
import MusterCore
import MusterCrypto
import MusterStore
import MusterWire

extension IdentityBackup {
  /// The plaintext of a backup: JSON, with byte strings in base64 (RFC 4648 section 4) and times in
  /// seconds since 1970.
  struct Content: Codable, Sendable {
    /// The Ed25519 seed of the identity, 32 bytes.
    var seed: Data
    /// The display name last used.
    var name: String?
    var channels: [Channel] = []

    /// A remembered channel (`StoredChannel`).
    struct Channel: Codable, Sendable {
      var id: Data
      var name: String
      var createdAt: UInt64
      var genesis: Data?
      var keys: [Key]
      var inviteGrant: Data?
      var inviteSeed: Data?
      var peers: [String]
      var rendezvous: [String]
      /// The signed grants, redemptions and key changes, from which all roles follow.
      var entries: [Data]
      var members: [Member]
    }

    /// A channel key.
    struct Key: Codable, Sendable {
      var epoch: UInt32
      var secret: Data
    }

    /// A member's key that its user knows (`KnownIdentity`).
    struct Member: Codable, Sendable {
      var key: Data
      var name: String
      var firstSeen: UInt64
      var lastSeen: UInt64
      var isVerified: Bool
    }
  }
}

extension IdentityBackup.Content {
  init(
    of identity: Identity, named name: String?, in store: StoreSnapshot
  ) throws {
    seed = identity.withSeed { Data($0) }
    self.name = name
    for stored in try store.channels() {
      channels.append(
        Channel(
          stored, entries: try store.entries(of: stored.id),
          members: try store.identities(of: stored.id)))
    }
  }

  init(decoding json: [UInt8]) throws {
    self = try JSONDecoder().decode(Self.self, from: Data(json))
  }

  func encoded() throws -> [UInt8] {
    let encoder = JSONEncoder()
    // Base64 has slashes.
    encoder.outputFormatting = .withoutEscapingSlashes
    return Array(try encoder.encode(self))
  }

  /// The identity; nil if the seed is not one.
  var identity: Identity? { Identity(seed: Array(seed)) }

  func summary(of identity: Identity) -> IdentityBackup.Summary {
    IdentityBackup.Summary(
      member: identity.id.short, key: identity.id.key.hex, channels: channels.map(\.name))
  }
}

extension IdentityBackup.Content.Channel {
  init(_ stored: StoredChannel, entries: [[UInt8]], members: [KnownIdentity]) {
    id = Data(stored.id.hash.bytes)
    name = stored.name
    createdAt = stored.createdAt
    genesis = stored.genesis.map { Data($0) }
    keys = stored.keys.map { key in
      .init(epoch: key.number, secret: key.key.withSecret { Data($0) })
    }
    inviteGrant = stored.credential.map { Data($0.grant) }
    inviteSeed = stored.credential.map { Data($0.seed) }
    peers = stored.bootstrapAddresses
    rendezvous = stored.rendezvous
    self.entries = entries.filter(Self.isOfRights).map { Data($0) }
    self.members = members.map { member in
      .init(
        key: Data(member.key.key.bytes), name: member.name, firstSeen: member.firstSeen,
        lastSeen: member.lastSeen, isVerified: member.isVerified)
    }
  }

  /// Whether roles or keys depend on a stored entry.
  private static func isOfRights(_ bytes: [UInt8]) -> Bool {
    switch (try? Entry(decoding: bytes.dropLast(Entry.signatureBytes)))?.body.kind {
    case .grant, .redemption, .epoch: true
    default: false
    }
  }

  /// The changes that store the channel; of one that is stored already, only what is missing.
  func changes(to store: StoreSnapshot) throws -> [Store.Change] {
    guard let hash = Bytes32(id) else { return [] }
    let id = ChannelID(hash)
    let backup = stored(id)
    var channel = try store.channel(id) ?? backup
    let known = channel.keys.map(\.number)
    channel.keys += backup.keys.filter { !known.contains($0.number) }
    channel.credential = channel.credential ?? backup.credential
    return [.channel(channel)]
      + entries.map { .keep(entry: Array($0), id: SignedEntry.id(of: Array($0)), channel: id) }
      + members.compactMap { member in
        Bytes32(member.key).map { .identity(member.known($0), channel: id) }
      }
  }

  private func stored(_ id: ChannelID) -> StoredChannel {
    var channel = StoredChannel(id: id, name: name, createdAt: createdAt)
    channel.genesis = genesis.map { Array($0) }
    channel.keys = keys.compactMap { key in
      ChannelKey(secret: Array(key.secret)).map { EpochKey(number: key.epoch, key: $0) }
    }
    if let inviteGrant, let inviteSeed {
      channel.credential = StoredChannel.InviteCredential(
        grant: Array(inviteGrant), seed: Array(inviteSeed))
    }
    channel.bootstrapAddresses = peers
    channel.rendezvous = rendezvous
    channel.isRestored = true
    return channel
  }
}

extension IdentityBackup.Content.Member {
  func known(_ key: Bytes32) -> KnownIdentity {
    KnownIdentity(
      name: name, key: NodeID(key), firstSeen: firstSeen, lastSeen: lastSeen,
      isVerified: isVerified)
  }
}

import MusterBase
import MusterChannel
import MusterCore
import MusterCrypto
import MusterDevices
import MusterStore
import MusterWire

/// Resolves a configured channel into a setup that a node can join.
enum ChannelOpening {
  /// The setup of a channel, and the peers and rendezvous servers (each as `HOST:PORT`) through
  /// which its members may be found.
  struct Result {
    var setup: ChannelSetup
    var peers: [String] = []
    var rendezvous: [String] = []
  }

  /// Resolves a channel, and stores an invited or open channel that is not stored yet. Throws if
  /// the invite is damaged or the store fails.
  static func open(
    _ channel: Configuration.Channel, store: Store?
  ) throws(MusterError) -> Result {
    switch channel.source {
    case .invite(let invite): return try open(invite, store: store)
    case .open(let key): return try open(channel.name, key, store: store)
    case .openOrStored(let key):
      if let stored = try store?.channel(named: channel.name), !stored.keys.isEmpty {
        return try result(of: stored, store: store)
      }
      return try open(channel.name, key, store: store)
    case .openOrCreated(let key):
      let created = try store?.channels().last { $0.name == channel.name && $0.genesis != nil }
      if let created { return try result(of: created, store: store) }
      return try open(channel.name, key, store: store)
    }
  }

  private static func open(
    _ name: String, _ key: ChannelKey, store: Store?
  ) throws(MusterError) -> Result {
    var setup = ChannelSetup(name: name, key: key)
    guard let store else { return Result(setup: setup) }
    // The key of an open channel is derived from its name or passphrase, and is not stored.
    let known = try store.channel(setup.id)
    if known == nil {
      try store.save(
        StoredChannel(id: setup.id, name: name, createdAt: WallClock.milliseconds / 1000))
    }
    try store.fill(&setup)
    return Result(
      setup: setup, peers: known?.bootstrapAddresses ?? [], rendezvous: known?.rendezvous ?? [])
  }

  private static func open(_ invite: Invite, store: Store?) throws(MusterError) -> Result {
    guard let key = ChannelKey(secret: invite.key) else { throw damaged }
    var stored = StoredChannel(
      id: key.channelID, name: invite.name, createdAt: WallClock.milliseconds / 1000)
    stored.bootstrapAddresses = invite.peers
    stored.rendezvous = invite.rendezvous
    if let bytes = invite.genesis {
      guard let genesis = SignedGenesis.verified(bytes), let grant = invite.grant,
        let seed = invite.oneTimeSeed, Identity(seed: seed) != nil
      else { throw damaged }
      stored.id = genesis.channelID
      stored.genesis = bytes
      stored.credential = StoredChannel.InviteCredential(grant: grant, seed: seed)
    }
    stored.keys = [EpochKey(number: invite.epoch, key: key)]
    if let known = try store?.channel(stored.id) {
      // Stored keys take precedence, and new keys need a grant by the owner, because anyone can
      // write an invite.
      let new = stored.keys.filter { key in
        !known.keys.contains { $0.number == key.number } && isVouchedFor(invite, stored.id)
      }
      stored.keys = (known.keys + new).sorted { $0.number < $1.number }
      stored.createdAt = known.createdAt
      stored.bootstrapAddresses = merged(invite.peers, known.bootstrapAddresses)
      stored.rendezvous = merged(invite.rendezvous, known.rendezvous)
    }
    try store?.save(stored)
    return try result(of: stored, store: store)
  }

  private static func merged(_ new: [String], _ known: [String]) -> [String] {
    Array((new + known.filter { !new.contains($0) }).prefix(Limits.inviteHints))
  }

  /// Whether the channel's owner has signed the invite's bearer grant, and the grant is for the
  /// invite's epoch and one-time key.
  private static func isVouchedFor(_ invite: Invite, _ channel: ChannelID) -> Bool {
    guard let bytes = invite.grant, let entry = try? SignedEntry.verified(bytes, in: channel),
      case .grant(let grant) = entry.entry.body, grant.terms?.epoch == invite.epoch,
      let seed = invite.oneTimeSeed, Identity(seed: seed)?.id == grant.subject,
      let genesis = invite.genesis.flatMap({ SignedGenesis.verified($0) })
    else { return false }
    return entry.entry.author == genesis.genesis.owner
  }

  private static func result(
    of stored: StoredChannel, store: Store?
  ) throws(MusterError) -> Result {
    guard var setup = stored.setup else { throw damaged }
    try store?.fill(&setup)
    return Result(setup: setup, peers: stored.bootstrapAddresses, rendezvous: stored.rendezvous)
  }

  private static var damaged: MusterError {
    MusterError("the invite is damaged", hint: "copy it again, or ask for a new one")
  }
}

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
    /// Whether anyone who knows the channel's name has its key.
    var isPublic = false
  }

  /// Resolves a channel, and stores an invited or open channel that is not stored yet. Throws if
  /// the invite is damaged or the store fails, or if the node is in the channel already or in one
  /// of the same name (`joined`): names tell channels apart in events and commands.
  static func open(
    _ channel: Configuration.Channel, store: Store?,
    beside joined: [(id: ChannelID, name: String)]
  ) throws(MusterError) -> Result {
    let (found, isStored) = try resolve(channel, store: store)
    try check(found, beside: joined)
    guard var setup = found.setup else { throw damaged }
    if !isStored {
      var kept = found
      // The key of a public channel is its name.
      if found.isPublic { kept.keys = [] }
      try store?.save(kept)
    }
    try store?.fill(&setup)
    return Result(
      setup: setup, peers: found.bootstrapAddresses, rendezvous: found.rendezvous,
      isPublic: found.isPublic)
  }

  /// The channel, and whether all of it is stored: a full disk is no obstacle then.
  private typealias Resolved = (channel: StoredChannel, isStored: Bool)

  private static func resolve(
    _ channel: Configuration.Channel, store: Store?
  ) throws(MusterError) -> Resolved {
    switch channel.source {
    case .invite(let invite): return (try invited(invite, store: store), false)
    case .open(let key): return try open(channel.name, key, store: store)
    case .named: return try named(channel.name, store: store)
    case .openOrCreated(let key):
      let known = try store?.channels(named: channel.name) ?? []
      let meant = known.filter { $0.genesis != nil || $0.id.isNamed(by: channel.name) }
      if let only = try Store.only(meant, named: channel.name) { return (only, true) }
      return try open(channel.name, key, store: store)
    }
  }

  private static func check(
    _ channel: StoredChannel, beside joined: [(id: ChannelID, name: String)]
  ) throws(MusterError) {
    if joined.contains(where: { $0.id == channel.id }) {
      throw MusterError("this node is in \(channel.name) already", hint: "nothing to do")
    }
    guard let other = joined.first(where: { $0.name == channel.name }) else { return }
    throw MusterError(
      "this node is in another channel \(channel.name), \(other.id)",
      hint: "leave that one, or give one of them another name with muster channel rename")
  }

  /// The remembered channel with this name or id; otherwise the open channel whose key is derived
  /// from the name.
  private static func named(
    _ name: String, store: Store?
  ) throws(MusterError) -> Resolved {
    let stored = try store?.channel(named: name)
    guard let stored, !stored.isPublic else {
      let name = stored?.name ?? name
      return try open(name, ChannelKey.fromName(name), store: store)
    }
    guard !stored.keys.isEmpty else {
      throw MusterError(
        "the secret of \(name) is not remembered",
        hint: "give it once more with --passphrase or --key-file, or muster channel forget it",
        kind: .usage)
    }
    return (stored, true)
  }

  private static func open(
    _ name: String, _ key: ChannelKey, store: Store?
  ) throws(MusterError) -> Resolved {
    let id = key.channelID
    let known = try store?.channel(id)
    var channel =
      known ?? StoredChannel(id: id, name: name, createdAt: WallClock.milliseconds / 1000)
    channel.keys = [EpochKey(number: 0, key: key)]
    return (channel, known.map { $0.isPublic || !$0.keys.isEmpty } ?? false)
  }

  private static func invited(
    _ invite: Invite, store: Store?
  ) throws(MusterError) -> StoredChannel {
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
    guard var known = try store?.channel(stored.id) else { return stored }
    // Stored keys take precedence, and anyone can write an invite: a new key needs a grant by an
    // owner, unless the channel's id follows from the key.
    let rights = try store?.rights(in: known)
    let isVouched = known.genesis == nil || isVouchedFor(invite, stored.id, by: rights)
    if isVouched, !known.keys.contains(where: { $0.number == invite.epoch }) {
      known.keys = (known.keys + stored.keys).sorted { $0.number < $1.number }
    }
    known.credential = stored.credential
    known.bootstrapAddresses = merged(invite.peers, known.bootstrapAddresses)
    known.rendezvous = merged(invite.rendezvous, known.rendezvous)
    return known
  }

  private static func merged(_ new: [String], _ known: [String]) -> [String] {
    Array((new + known.filter { !new.contains($0) }).prefix(Limits.inviteHints))
  }

  /// Whether an owner, by the stored rights, has signed the invite's bearer grant, and the grant is
  /// for the invite's epoch and one-time key.
  private static func isVouchedFor(
    _ invite: Invite, _ channel: ChannelID, by rights: Rights?
  ) -> Bool {
    guard let rights, let bytes = invite.grant,
      let entry = try? SignedEntry.verified(bytes, in: channel),
      case .grant(let grant) = entry.entry.body, grant.terms?.epoch == invite.epoch,
      let seed = invite.oneTimeSeed, Identity(seed: seed)?.id == grant.subject
    else { return false }
    let seconds = WallClock.milliseconds / 1000
    return rights.role(of: entry.entry.author, at: seconds) == .owner
  }

  private static var damaged: MusterError {
    MusterError("the invite is damaged", hint: "copy it again, or ask for a new one")
  }
}

extension Store {
  /// The roles in a created channel, as its stored entries say; nil for an open channel.
  func rights(in channel: StoredChannel) throws(MusterError) -> Rights? {
    guard let genesis = channel.genesis.flatMap({ SignedGenesis.verified($0) }) else { return nil }
    var document = Document(channel: channel.id, exempt: genesis.genesis.owner)
    for bytes in try entries(of: channel.id) {
      guard let entry = try? SignedEntry.verified(bytes, in: channel.id) else { continue }
      _ = document.insert(entry)
    }
    var rights = Rights(channel: channel.id, genesis: genesis)
    rights.update(from: document)
    return rights
  }

  /// The channel with this name or id; nil if there is none. Throws if there are several.
  func channel(named text: String) throws(MusterError) -> StoredChannel? {
    try Self.only(try channels(named: text), named: text)
  }

  /// The only one of some channels; nil if there is none. Throws if there are several.
  static func only(
    _ channels: [StoredChannel], named text: String
  ) throws(MusterError) -> StoredChannel? {
    guard channels.count > 1 else { return channels.first }
    let listed = channels.map { channel in
      "\(channel.id) (\(channel.genesis == nil ? "open" : "created"))"
    }
    throw MusterError(
      "\(DisplayText.sanitized(text, limit: 64)) may be any of \(listed.joined(separator: ", "))",
      hint: "name it by its id, or give it another name with muster channel rename", kind: .usage)
  }
}

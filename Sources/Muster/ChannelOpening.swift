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
    /// What the user should know of another channel with the same name.
    var notice: MusterError?
  }

  /// Resolves a channel, and stores an invited or open channel that is not stored yet. A key or an
  /// invite decides which channel it is; a name alone means what is remembered under it.
  ///
  /// Throws if the invite is damaged or the store fails, if the channel cannot be told from another
  /// that is remembered, or if the node is in the channel already or in one of the same name
  /// (`joined`): names tell channels apart in events and commands.
  static func open(
    _ channel: Configuration.Channel, store: Store?,
    beside joined: [(id: ChannelID, name: String)]
  ) throws(MusterError) -> Result {
    let resolved = try resolve(channel, store: store)
    let found = resolved.channel
    try check(found, beside: joined)
    guard var setup = found.setup else { throw .damagedInvite }
    if !resolved.isStored {
      var kept = found
      // The key of a public channel is its name.
      if found.isPublic { kept.keys = [] }
      try store?.save(kept)
    }
    try store?.fill(&setup)
    return Result(
      setup: setup, peers: found.bootstrapAddresses, rendezvous: found.rendezvous,
      isPublic: found.isPublic, notice: resolved.notice)
  }

  private struct Resolved {
    var channel: StoredChannel
    /// Whether all of the channel is stored: a full disk is no obstacle then.
    var isStored: Bool
    var notice: MusterError?
  }

  private static func resolve(
    _ channel: Configuration.Channel, store: Store?
  ) throws(MusterError) -> Resolved {
    switch channel.source {
    case .invite(let invite): try invited(invite, store: store)
    case .open(let key): try open(channel.name, key, store: store)
    case .openUnlessCreated(let key): try openUnlessCreated(channel.name, key, store: store)
    case .stored:
      if let stored = try remembered(channel.name, store: store) {
        Resolved(channel: stored, isStored: true)
      } else {
        throw unknown(channel.name)
      }
    case .storedOrPublic: try storedOrPublic(channel.name, store: store)
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

  // MARK: By name

  /// The remembered channel with this name or id and its keys; nil if there is none, or only the
  /// public one.
  private static func remembered(
    _ name: String, store: Store?
  ) throws(MusterError) -> StoredChannel? {
    guard let stored = try store?.channel(named: name), !stored.isPublic else { return nil }
    guard !stored.keys.isEmpty else {
      throw MusterError(
        "the secret of \(stored.name) is not remembered",
        hint: "give it once more with --passphrase or --key-file, or muster channel forget it",
        kind: .usage)
    }
    return stored
  }

  private static func storedOrPublic(
    _ name: String, store: Store?
  ) throws(MusterError) -> Resolved {
    if let stored = try remembered(name, store: store) {
      return Resolved(channel: stored, isStored: true)
    }
    guard Hex.isID(name) else { return try open(name, .fromName(name), store: store) }
    guard let known = try store?.channel(named: name) else { throw unknown(name) }
    return try open(known.name, .fromName(known.name), store: store)
  }

  private static func unknown(_ name: String) -> MusterError {
    MusterError(
      "no channel \(DisplayText.sanitized(name, limit: 64)) is remembered here",
      hint: "join it once with its passphrase, key file or invite; see muster channel list",
      kind: .usage)
  }

  // MARK: By key

  private static func open(
    _ name: String, _ key: ChannelKey, store: Store?
  ) throws(MusterError) -> Resolved {
    let id = key.channelID
    let known = try store?.channel(id)
    if known == nil { try ChannelName.check(name) }
    var channel =
      known ?? StoredChannel(id: id, name: name, createdAt: WallClock.milliseconds / 1000)
    channel.keys = [EpochKey(number: 0, key: key)]
    let namesake = try namesakes(of: channel, store).first { !$0.isPublic }
    // A new passphrase is said once, a channel that somebody else may have named each time.
    let isWorthSaying = !channel.isPublic && (known == nil || namesake?.genesis != nil)
    return Resolved(
      channel: channel, isStored: known.map { $0.isPublic || !$0.keys.isEmpty } ?? false,
      notice: isWorthSaying ? namesake.map { notice(channel, beside: $0) } : nil)
  }

  private static func openUnlessCreated(
    _ name: String, _ key: ChannelKey, store: Store?
  ) throws(MusterError) -> Resolved {
    let resolved = try open(name, key, store: store)
    let created = try namesakes(of: resolved.channel, store).first { $0.genesis != nil }
    guard let created, try store?.channel(key.channelID) == nil else { return resolved }
    // Nobody else can have given a channel of this machine its name.
    if created.wasCreatedHere {
      let notice = MusterError(
        "\(name), \(created.id), was created here and needs no secret: the one given is not used",
        hint: "give it with --passphrase or --key-file to join the open channel of that name")
      return Resolved(channel: created, isStored: true, notice: notice)
    }
    throw MusterError(
      "the secret is that of the open channel \(name), \(key.channelID), but the created channel "
        + "\(name), \(created.id), is remembered",
      hint: "name that one by its id, or give the secret with --passphrase or --key-file",
      kind: .usage)
  }

  /// The other remembered channels with the channel's name.
  private static func namesakes(
    of channel: StoredChannel, _ store: Store?
  ) throws(MusterError) -> [StoredChannel] {
    try store?.channels().filter { $0.name == channel.name && $0.id != channel.id } ?? []
  }

  private static func notice(
    _ channel: StoredChannel, beside other: StoredChannel
  ) -> MusterError {
    other.genesis == nil
      ? MusterError(
        "this is a new channel \(channel.name), \(channel.id): the one remembered so far, "
          + "\(other.id), has another secret",
        hint: "check the secret if you expected to meet those of before")
      : MusterError(
        "this is the open channel \(channel.name), \(channel.id), not the created one of that "
          + "name, \(other.id)", hint: "name that one by its id")
  }

  // MARK: By invite

  private static func invited(
    _ invite: Invite, store: Store?
  ) throws(MusterError) -> Resolved {
    guard let key = ChannelKey(secret: invite.key) else { throw .damagedInvite }
    var stored = StoredChannel(
      id: try InviteDetails(invite).id, name: invite.name,
      createdAt: WallClock.milliseconds / 1000)
    stored.bootstrapAddresses = invite.peers
    stored.rendezvous = invite.rendezvous
    stored.genesis = invite.genesis
    if let grant = invite.grant, let seed = invite.oneTimeSeed {
      stored.credential = StoredChannel.InviteCredential(grant: grant, seed: seed)
    }
    stored.keys = [EpochKey(number: invite.epoch, key: key)]
    guard var known = try store?.channel(stored.id) else {
      try ChannelName.check(stored.name)
      let others = try namesakes(of: stored, store)
      if let other = others.first(where: { !$0.isPublic }) ?? others.first {
        throw taken(stored, by: other)
      }
      return Resolved(channel: stored, isStored: false)
    }
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
    return Resolved(channel: known, isStored: false)
  }

  /// Anyone can make a channel of any name, and a link to it takes one click: it must not stand for
  /// another channel in what is typed later.
  private static func taken(_ new: StoredChannel, by other: StoredChannel) -> MusterError {
    let command =
      other.isPublic
      ? "muster channel forget \(other.id)" : "muster channel rename \(other.id) NAME"
    return MusterError(
      "the invite is to another channel \(new.name), \(new.id), than the one that is remembered "
        + "by this name, \(other.id)",
      hint: "if you mean to be in both, first make room with \(command)", kind: .usage)
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

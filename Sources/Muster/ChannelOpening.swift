import MusterBase
import MusterChannel
import MusterCore
import MusterCrypto
import MusterStore
import MusterSystem
import MusterWire

/// Resolves a configured channel into a setup that a node can join.
enum ChannelOpening {
  /// The setup of a channel, what the node needs besides, and what is to be stored first.
  struct Result: Sendable {
    var setup: ChannelSetup
    /// The peers and rendezvous servers, each as `HOST:PORT`, through which members may be found.
    var peers: [String] = []
    var rendezvous: [String] = []
    /// The members' names with the keys seen under these.
    var identities: [KnownIdentity] = []
    /// Whether anyone who knows the channel's name has its key.
    var isPublic = false
    /// What the user should know of another channel with the same name.
    var notice: MusterError?
    /// The channel as it must be stored before the node joins; nil if all of it is stored.
    var unstored: StoredChannel?

    /// Throws if the node is in this channel already, or in one of the same name: names tell
    /// channels apart in events and commands.
    func check(beside joined: [(id: ChannelID, name: String)]) throws(MusterError) {
      if joined.contains(where: { $0.id == setup.id }) {
        throw MusterError("this node is in \(setup.name) already", hint: "nothing to do")
      }
      guard let other = joined.first(where: { $0.name == setup.name }) else { return }
      throw MusterError(
        "this node is in another channel \(setup.name), \(other.id)",
        hint: "leave that one, or give one of them another name with muster channel rename")
    }
  }

  /// Resolves a channel. A key or an invite decides which channel it is; a name alone means what is
  /// remembered under it.
  ///
  /// Throws if the invite is damaged, if the store cannot be read, or if the channel cannot be
  /// distinguished from another that is remembered.
  static func read(
    _ channel: Configuration.Channel, from store: Store?
  ) async throws(MusterError) -> Result {
    if let store { return try await store.read { try read(channel, in: $0) } }
    do { return try read(channel, in: nil) } catch let error as MusterError { throw error } catch {
      throw MusterError("the channel cannot be opened (\(error))", hint: "try again")
    }
  }

  private static func read(
    _ channel: Configuration.Channel, in store: StoreSnapshot?
  ) throws -> Result {
    let resolved = try resolve(channel, in: store)
    let found = resolved.channel
    guard var setup = found.setup else { throw MusterError.damagedInvite }
    try store?.fill(&setup)
    var result = Result(
      setup: setup, peers: found.bootstrapAddresses, rendezvous: found.rendezvous,
      isPublic: found.isPublic, notice: resolved.notice)
    // Nobody is kept from a channel because the names of its members cannot be read.
    result.identities = (try? store?.identities(of: setup.id)) ?? []
    if !resolved.isStored {
      var unstored = found
      // The key of a public channel is its name.
      if found.isPublic { unstored.keys = [] }
      result.unstored = unstored
    }
    return result
  }

  private struct Resolved {
    var channel: StoredChannel
    /// Whether all of the channel is stored: a full disk is no obstacle then.
    var isStored: Bool
    var notice: MusterError?
  }

  private static func resolve(
    _ channel: Configuration.Channel, in store: StoreSnapshot?
  ) throws -> Resolved {
    switch channel.source {
    case .invite(let invite): try invited(invite, in: store)
    case .open(let key): try open(channel.name, key, in: store)
    case .openUnlessCreated(let key): try openUnlessCreated(channel.name, key, in: store)
    case .stored:
      if let stored = try remembered(channel.name, in: store) {
        Resolved(channel: stored, isStored: true)
      } else {
        throw unknown(channel.name)
      }
    case .storedOrPublic: try storedOrPublic(channel.name, in: store)
    }
  }

  // MARK: By name

  /// The remembered channel with this name or id and its keys; nil if there is none, or only the
  /// public one.
  private static func remembered(
    _ name: String, in store: StoreSnapshot?
  ) throws -> StoredChannel? {
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
    _ name: String, in store: StoreSnapshot?
  ) throws -> Resolved {
    if let stored = try remembered(name, in: store) {
      return Resolved(channel: stored, isStored: true)
    }
    guard Hex.isID(name) else { return try open(name, .fromName(name), in: store) }
    guard let known = try store?.channel(named: name) else { throw unknown(name) }
    return try open(known.name, .fromName(known.name), in: store)
  }

  private static func unknown(_ name: String) -> MusterError {
    MusterError(
      "no channel \(DisplayText.sanitized(name, limit: 64)) is remembered here",
      hint: "join it once with its passphrase, key file or invite; see muster channel list",
      kind: .usage)
  }

  // MARK: By key

  private static func open(
    _ name: String, _ key: ChannelKey, in store: StoreSnapshot?
  ) throws -> Resolved {
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
    _ name: String, _ key: ChannelKey, in store: StoreSnapshot?
  ) throws -> Resolved {
    let resolved = try open(name, key, in: store)
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
    of channel: StoredChannel, _ store: StoreSnapshot?
  ) throws -> [StoredChannel] {
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
    _ invite: Invite, in store: StoreSnapshot?
  ) throws -> Resolved {
    guard let key = ChannelKey(secret: invite.key) else { throw MusterError.damagedInvite }
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
    let rights = known.rights(from: try store?.entries(of: known.id) ?? [])
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

extension StoredChannel {
  /// The roles in a created channel, as its stored entries say; nil for an open channel.
  func rights(from entries: [[UInt8]]) -> Rights? {
    guard let genesis = genesis.flatMap({ SignedGenesis.verified($0) }) else { return nil }
    var document = Document(channel: id, exempt: genesis.genesis.owner)
    for bytes in entries {
      guard let entry = try? SignedEntry.verified(bytes, in: id) else { continue }
      _ = document.insert(entry)
    }
    var rights = Rights(channel: id, genesis: genesis)
    rights.update(from: document)
    return rights
  }
}

extension StoreSnapshot {
  /// The channel with this name or id; nil if there is none. Throws if there are several.
  func channel(named text: String) throws -> StoredChannel? {
    try channels().only(named: text)
  }
}

extension [StoredChannel] {
  /// The only one with this name or id; nil if there is none. Throws if there are several.
  func only(named text: String) throws(MusterError) -> StoredChannel? {
    let named = named(text)
    guard named.count > 1 else { return named.first }
    let listed = named.map { channel in
      "\(channel.id) (\(channel.genesis == nil ? "open" : "created"))"
    }
    throw MusterError(
      "\(DisplayText.sanitized(text, limit: 64)) may be any of \(listed.joined(separator: ", "))",
      hint: "name it by its id, or give it another name with muster channel rename", kind: .usage)
  }
}

import MusterBase
import MusterChannel
import MusterCrypto
import MusterDiscovery
import MusterMedia
import MusterWire

extension Node {
  // MARK: Joining and leaving

  /// Joins a channel; `wantsCall` also joins or starts its call as soon as possible, or if it may
  /// not start one, joins the next. Does nothing if the node is already in the channel or in
  /// `Limits.channels` channels.
  public mutating func join(
    _ setup: ChannelSetup, call wantsCall: Bool, at now: Instant
  ) -> [Output] {
    let id = setup.id
    guard channels[id] == nil, channels.count < Limits.channels else { return [] }
    var out: [Output] = []
    channels[id] = Channel(
      name: setup.name, genesis: setup.genesis, state: state(of: setup), openedAt: now,
      intent: CallIntent(joinsNext: wantsCall), muted: configuration.muted,
      isRestored: setup.isRestored)
    perform(enter(id, credential: setup.credential, at: now), in: id, at: now, &out)
    perform(keyring.open(id, setup.keys), at: now, &out)
    reportOwnRefusal(in: id, &out)
    if wantsCall { wantCall(in: id, at: now, &out) }
    return out
  }

  private mutating func state(of setup: ChannelSetup) -> ChannelState {
    var start = ChannelState.Setup(
      identity: identity, channel: setup.id, genesis: setup.genesis, name: configuration.name,
      bootID: bootID, entropy: entropy.fork(), seed: prng.next())
    start.entries = setup.entries.compactMap {
      try? SignedEntry.verified($0, in: setup.id)
    }
    start.undelivered = setup.undelivered
    start.policy = configuration.policy
    return ChannelState(start)
  }

  /// Publishes this node's presence with its stream offers, and redeems the invite of `credential`.
  private mutating func enter(
    _ channel: ChannelID, credential: InviteCredential?, at now: Instant
  ) -> [ChannelState.Output] {
    let (flags, offers) = (media.local.flags, media.local.streams.offers)
    let (offset, own) = (wallOffset, id)
    return channels.update(channel) { entry in
      entry.state.setWallClock(offsetMilliseconds: offset, at: now)
      entry.note(entry.state.role(of: own))
      var outputs: [ChannelState.Output] = []
      if let credential {
        outputs += entry.state.redeem(grant: credential.grant, secret: credential.secret, at: now)
      }
      outputs += entry.state.setFlags(entry.flags(from: flags), at: now)
      outputs += entry.state.setStreams(entry.streams(from: offers), at: now)
      return outputs + entry.state.enter(at: now)
    } ?? []
  }

  /// Leaves the channel with a notice to its members; `finishLeaving` closes the links.
  public mutating func leave(_ channel: ChannelID, at now: Instant) -> [Output] {
    var out: [Output] = []
    endMedia(in: channel, at: now, &out)
    _ = channels.update(channel) { $0.intent.decline(nil) }
    let outputs = channels.update(channel) { $0.state.leave(at: now) } ?? []
    perform(outputs, in: channel, at: now, &out)
    updateCallState(in: channel, at: now, &out)
    return out
  }

  /// Forgets a channel after `leave`, closing its links.
  public mutating func finishLeaving(_ channel: ChannelID, at now: Instant) -> [Output] {
    var out: [Output] = []
    // The channel goes first: the others have not left it when this node closes its links to them.
    channels[channel] = nil
    perform(keyring.close(channel), at: now, &out)
    media.close(channel)
    perform(relaying.close(channel), at: now, &out)
    return out
  }

  /// Whether every neighbour has acknowledged this node's newest entries; true if this node is not
  /// in the channel.
  public func isFlushed(_ channel: ChannelID) -> Bool {
    channels[channel]?.state.isFlushed ?? true
  }

  // MARK: Queries

  /// The channels that this node is in, in ascending order of their ids.
  public var channelIDs: [ChannelID] { channels.keys }
  /// The local name of the channel; nil if this node is not in the channel.
  public func name(of channel: ChannelID) -> String? { channels[channel]?.name }
  /// The signed genesis of the channel; nil for an open channel.
  public func genesis(of channel: ChannelID) -> SignedGenesis? { channels[channel]?.genesis }
  /// All reachable members except this node, in the order of their ids.
  public func members(of channel: ChannelID) -> [Member] { channels[channel]?.state.members ?? [] }
  /// The member with this id; nil if it is not reachable or not a member.
  public func member(_ id: NodeID, of channel: ChannelID) -> Member? {
    channels[channel]?.state.member(id)
  }
  /// This node as the other members see it.
  public func ownMember(in channel: ChannelID) -> Member? { channels[channel]?.state.ownMember }
  /// The active call, whether or not this node participates; nil if there is none.
  public func call(in channel: ChannelID) -> ActiveCall? { channels[channel]?.state.call }
  /// Whether this node is in the call.
  public func isInCall(_ channel: ChannelID) -> Bool {
    // The access is by index, because reading a channel by its key would copy all of its state.
    channels.index(of: channel).map { channels[at: $0].state.isInCall } ?? false
  }
  /// The messages that this node may read, in an order that is the same for all members.
  public func history(of channel: ChannelID) -> [TextMessage] {
    channels[channel]?.state.history ?? []
  }

  /// All nodes with an assigned role in a created channel, in the order of their ids. `expiresAt`
  /// is in seconds since 1970 (UTC); 0 means without expiry.
  public func roles(
    in channel: ChannelID
  ) -> [(member: NodeID, role: Role, expiresAt: UInt64)] {
    channels[channel]?.state.roles ?? []
  }

  /// The roles of the channel's members and the use of its invites; nil if this node is not in the
  /// channel.
  public func rights(in channel: ChannelID) -> Rights? { channels[channel]?.state.rights }

  /// How often this node has derived the rights, the roster or the call of a channel anew.
  package func steps(in channel: ChannelID) -> Int {
    Int(clamping: channels[channel]?.state.recomputations ?? 0)
  }

  /// Whether a role of this node has expired that an owner gave to it, or confirmed.
  public func hasRoleEnded(in channel: ChannelID) -> Bool {
    channels[channel]?.state.hasRoleEnded(of: id) ?? false
  }

  /// The number of the epoch in force; 0 is the epoch of the initial key.
  public func epoch(of channel: ChannelID) -> UInt32 { keyring.current(of: channel)?.number ?? 0 }
  /// The entries of known kinds in a channel's document, grouped by kind; entries of quarantined
  /// authors are excluded.
  package func entries(of channel: ChannelID) -> [SignedEntry] {
    channels[channel]?.state.entries ?? []
  }
  /// The digest of the document; equal digests mean equal documents.
  public func digest(of channel: ChannelID) -> DocumentDigest? { channels[channel]?.state.digest }

  /// Whether a member has a capability in the channel.
  public func may(_ capability: Capability, _ member: NodeID, in channel: ChannelID) -> Bool {
    channels[channel]?.state.may(capability, member) ?? false
  }

  // MARK: Commands

  /// Sends a text message to one member, or to all members if `receiver` is nil.
  public mutating func say(
    _ text: String, to receiver: NodeID?, in channel: ChannelID, at now: Instant
  ) throws(CommandRefusal) -> [Output] {
    guard !text.isEmpty else { throw .empty }
    guard text.utf8.count <= Limits.textBytes else { throw .tooLong }
    if let receiver, receiver != identity.id, receiver.x25519PublicKey == nil {
      throw .unknownMember
    }
    try check(.sendText, in: channel)
    try checkDisk(channel)
    return change(channel, at: now) { $0.say(text, to: receiver, at: now) }
  }

  /// Assigns a role to a node until `expiresAt`, in seconds since 1970 (UTC); 0 means without
  /// expiry.
  public mutating func grant(
    _ role: Role, to member: NodeID, expiresAt: UInt64, in channel: ChannelID, at now: Instant
  ) throws(CommandRefusal) -> [Output] {
    try checkOwnership(over: member, in: channel)
    if role == .owner, channels[channel]?.genesis?.genesis.owner != identity.id {
      throw .notAllowed(.grant, role)
    }
    try checkDisk(channel)
    return change(channel, at: now) {
      $0.grant(role, to: member, expiresAt: expiresAt, at: now)
    }
  }

  /// Revokes the role of a member, or an invite with the roles of all who came by it; `key` is the
  /// member's key or the invite's one-time key. If this node is the owner named in the genesis, the
  /// channel's key also changes, and only the remaining members get the new one; if a backup may
  /// lack the key in force, that needs to be forced (`isForced`).
  public mutating func revoke(
    _ key: NodeID, isForced: Bool = false, in channel: ChannelID, at now: Instant
  ) throws(CommandRefusal) -> [Output] {
    try checkOwnership(over: key, in: channel)
    guard let entry = channels[channel], let owner = entry.genesis?.genesis.owner else {
      throw .openChannel
    }
    try checkDisk(channel)
    // Only the owner named in the genesis can change the key; other owners just revoke the role.
    guard owner == identity.id else {
      return change(channel, at: now) { $0.remove([key], at: now) }
    }
    guard !entry.mayHaveOutdatedKey || isForced else { throw .restored }
    return try changeKey(of: channel, removing: [key], at: now)
  }

  /// Changes the key of a channel that this node owns. If it removes nobody, the reason is that
  /// roles have expired.
  private mutating func changeKey(
    of channel: ChannelID, removing removed: [NodeID], at now: Instant
  ) throws(CommandRefusal) -> [Output] {
    guard let entry = channels[channel], entry.pendingKey == nil else { throw .busy }
    let number = entry.state.currentEpoch
    guard number < UInt32(Limits.epochs),
      let secret = ChannelKey(secret: entropy.bytes(32))
    else { throw .tooManyEpochs }
    let next = EpochKey(number: number + 1, key: secret)
    let seconds = wallMilliseconds(now) / 1000
    let expired = removed.isEmpty ? entry.state.rights.newlyExpiredMembers(at: seconds) : []
    var out: [Output] = []
    let outputs =
      channels.update(channel) { entry -> [ChannelState.Output] in
        let outputs = entry.state.changeKey(to: secret.keyID, removing: removed, at: now)
        for case .commit(_, let commit) in outputs {
          entry.pendingKey = PendingKey(commit: commit, key: next, expired: expired)
        }
        return outputs
      } ?? []
    perform(outputs, in: channel, at: now, &out)
    return out
  }

  /// Notes that this node, restored from a backup, knows what another member knows.
  mutating func noteMeeting(in channel: ChannelID, _ out: inout [Output]) {
    guard let index = channels.index(of: channel), channels[at: index].isRestored,
      !channels[at: index].mayHaveOutdatedKey
    else { return }
    channels[at: index].isRestored = false
    out.append(.write(.met, in: channel))
  }

  /// Changes the key of a channel that this node owns if that is due because roles have expired.
  /// A change that cannot be made now is tried again later.
  mutating func changeKeyIfDue(_ channel: ChannelID, at now: Instant, _ out: inout [Output]) {
    guard let index = channels.index(of: channel), !channels[at: index].mayHaveOutdatedKey,
      let due = channels[at: index].state.keyChangeDueAt, due <= now
    else { return }
    guard channels[at: index].pendingKey == nil, !isWaitingForDisk(in: channel) else {
      return channels[at: index].state.delayKeyChange(at: now)
    }
    channels[at: index].state.noteKeyChangeAttempt(at: now)
    do { out += try changeKey(of: channel, removing: [], at: now) } catch {
      out.append(.event(.keyChangeRefused(error), in: channel))
    }
  }

  /// The changes in a commit: the new key if the commit changes the key, then the entries.
  func changes(_ entries: [SignedEntry], for commit: CommitID) -> [Change] {
    let pending = channels[commit.channel]?.pendingKey
    let key = pending.flatMap { $0.commit == commit ? [Change.key($0.key)] : nil } ?? []
    return key + entries.map { .entry($0.bytes, id: $0.id) }
  }

  /// Handles the result of a commit: the host has written the changes to disk, or failed to do so
  /// (`isDurable` is false). The outputs send the commit's entries to the peers, or report that the
  /// commit had no effect. A commit of a channel that this node has left in the meantime has no
  /// outputs; its entries are in the document when this node joins the channel again.
  public mutating func finish(
    _ commit: CommitID, isDurable: Bool, at now: Instant
  ) -> [Output] {
    var out = change(commit.channel, at: now) {
      $0.finish(commit, isDurable: isDurable, at: now)
    }
    guard let pending = channels[commit.channel]?.pendingKey, pending.commit == commit else {
      return out
    }
    _ = channels.update(commit.channel) { $0.pendingKey = nil }
    guard isDurable else { return out }
    install(pending.key, in: commit.channel, at: now, &out)
    if !pending.expired.isEmpty {
      out.append(.event(.rolesExpired(pending.expired), in: commit.channel))
    }
    return out
  }

  /// Creates an invite, which contains the key in force. In a created channel, the invite also
  /// contains a bearer grant of `role`, which `uses` keys (0: any number) can redeem until
  /// `expiresAt` (as in `grant`); their roles end at `roleExpiresAt`.
  public mutating func makeInvite(
    role: Role, expiresAt: UInt64, uses: UInt32, roleExpiresAt: UInt64 = 0, peers: [String],
    rendezvous: [String],
    in channel: ChannelID, at now: Instant
  ) throws(CommandRefusal) -> (invite: Invite, outputs: [Output]) {
    guard let entry = channels[channel], let key = keyring.current(of: channel) else {
      throw .unknownChannel
    }
    let secret = key.key.withSecret { Array($0) }
    var invite = Invite(
      name: entry.name, genesis: entry.genesis?.bytes, epoch: key.number, key: secret,
      oneTimeSeed: nil, grant: nil, peers: peers, rendezvous: rendezvous)
    guard entry.genesis != nil else { return (invite, []) }
    try check(.grant, in: channel)
    let seed = entropy.bytes(32)
    guard let oneTime = Identity(seed: seed) else { throw .unknownMember }
    // Owners are appointed by id, because an invite can be passed on.
    guard role < .owner else { throw .notAllowed(.grant, role) }
    try checkDisk(channel)
    let made = channels.update(channel) {
      $0.state.bearerGrant(
        role, for: oneTime.id, expiresAt: expiresAt, uses: uses, roleExpiresAt: roleExpiresAt,
        at: now)
    }
    var out: [Output] = []
    perform(made?.outputs ?? [], in: channel, at: now, &out)
    invite.oneTimeSeed = seed
    invite.grant = made?.grant.bytes
    return (invite, out)
  }

  private mutating func checkOwnership(
    over member: NodeID, in channel: ChannelID
  ) throws(CommandRefusal) {
    guard let entry = channels[channel] else { throw .unknownChannel }
    guard let genesis = entry.genesis else { throw .openChannel }
    try check(.grant, in: channel)
    guard member != genesis.genesis.owner else { throw .ownerStays }
  }

  /// Throws if this node is not in the channel, is not a member, or has a role without the
  /// capability.
  mutating func check(_ capability: Capability, in channel: ChannelID) throws(CommandRefusal) {
    guard let state = channels[channel]?.state else { throw .unknownChannel }
    guard !state.isSelfAllowed(capability) else { return }
    if let refusal = state.refusal(of: identity.id) { throw .notMember(refusal) }
    throw .notAllowed(capability, state.role(of: identity.id))
  }

  /// The state of this node's participation in a channel's call; `disconnected` if this node is not
  /// in the channel.
  public func callState(in channel: ChannelID) -> CallState {
    channels.index(of: channel).map { channels[at: $0].callState } ?? .disconnected
  }

  /// The dominant speaker of the channel's call; nil if this node is not in the call or nobody has
  /// spoken.
  public func dominantSpeaker(in channel: ChannelID) -> NodeID? { media.speakers[channel]?.current }

  /// The streams of the channel's members that rest, since others rank higher for this node.
  public func outrankedStreams(in channel: ChannelID) -> [MemberStream] {
    media.outrankedStreams(in: channel)
  }

  /// Whether a further command would be refused because too many changes are still being written.
  public func isWaitingForDisk(in channel: ChannelID) -> Bool {
    channels.index(of: channel).map { channels[at: $0].state.isWaitingForDisk } ?? false
  }

  /// Throws `busy` if too many changes are being written, as when the disk has stopped responding.
  private func checkDisk(_ channel: ChannelID) throws(CommandRefusal) {
    if isWaitingForDisk(in: channel) { throw .busy }
  }

  /// Applies `body` to a channel's state, executes the resulting outputs and returns the node's
  /// outputs; empty if the node is not in the channel.
  mutating func change(
    _ channel: ChannelID, at now: Instant,
    _ body: (inout ChannelState) -> [ChannelState.Output]
  ) -> [Output] {
    var out: [Output] = []
    let outputs = channels.update(channel) { body(&$0.state) } ?? []
    perform(outputs, in: channel, at: now, &out)
    return out
  }
}

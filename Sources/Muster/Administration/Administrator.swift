import MusterBase
import MusterChannel
import MusterCore
import MusterCrypto
import MusterDiscovery
import MusterStore
import MusterSystem
import MusterWire

/// Carries out an administrative request on a `Node` value, with or without sockets.
///
/// It does no I/O: the caller reads the store before, then executes `outputs`, makes `changes`
/// durable, and finishes the commits of `writes`.
struct Administrator {
  /// What the store holds of the requested channels.
  let stored: RequestedChannels
  /// This node's display name where it is in no channel.
  let ownName: String
  /// The outputs that can be executed before the changes are durable.
  private(set) var outputs: [Node.Output] = []
  /// The writes that the node requests.
  private(set) var writes = NodeWrites()
  /// Changes of the store that the node has no part in.
  private var ownChanges: [Store.Change] = []
  /// The member of a channel whose key the user has confirmed.
  private(set) var verified: (member: NodeID, channel: ChannelID)?

  init(_ stored: RequestedChannels, ownName: String) {
    self.stored = stored
    self.ownName = ownName
  }

  /// The changes that must be durable before the request succeeds.
  var changes: [Store.Change] {
    ownChanges + writes.changes.map { .init($0.change, in: $0.channel) }
      + writes.commits.flatMap { commit in
        commit.changes.map { .init($0, in: commit.id.channel) }
      }
  }

  /// Takes the outputs of one of the node's methods.
  mutating func take(_ outputs: [Node.Output]) { self.outputs += writes.take(outputs) }

  mutating func perform(
    _ request: Administration.Request, _ node: inout Node, at now: Instant
  ) throws(MusterError) -> Administration.Reply {
    var reply = Administration.Reply()
    switch request.verb {
    case .create: reply.channels = [try create(request, by: node.identity)]
    case .list:
      for stored in stored.all { reply.channels.append(summary(of: stored, node)) }
    case .show: reply.channels = [summary(of: try stored(request), node)]
    case .grant: try grant(request, &node, at: now)
    case .revoke:
      reply.removal = try revoke(request, &node, at: now)
      if request.isDryRun { reply.channels = [summary(of: try stored(request), node)] }
    case .invite: reply.invite = try invite(request, &node, at: now)
    case .verify: reply.code = try verify(request, node)
    case .rename: reply.channels = [try rename(request, node)]
    case .forget: reply.channels = [try forget(request, node)]
    case .ping, .diagnose:
      throw MusterError("only a running node knows that", hint: "start one with muster join")
    }
    return reply
  }

  // MARK: Channels

  private mutating func create(
    _ request: Administration.Request, by identity: Identity
  ) throws(MusterError) -> Administration.ChannelSummary {
    let name = request.channel ?? ""
    try checkNew(name)
    var entropy = Entropy.system
    let seconds = WallClock.milliseconds / 1000
    let genesis = SignedGenesis.sign(
      Genesis(
        owner: identity.id, nonce: entropy.bytes(Genesis.nonceBytes), createdAt: seconds,
        settings: request.settings, name: name), by: identity)
    guard let key = ChannelKey(secret: entropy.bytes(32)) else {
      throw MusterError("no key could be made", hint: "try again")
    }
    var stored = StoredChannel(id: genesis.channelID, name: name, createdAt: seconds)
    stored.genesis = genesis.bytes
    stored.keys = [EpochKey(number: 0, key: key)]
    ownChanges.append(.channel(stored))
    return summary(of: stored, for: identity.id)
  }

  /// Throws if a channel cannot have this name, or another one that is remembered has it. Channels
  /// whose key is their name do not count: the others are meant before them.
  private func checkNew(_ name: String) throws(MusterError) {
    try ChannelName.check(name)
    let isTaken = stored.all.named(name).contains { !$0.isPublic }
    guard !isTaken else {
      throw MusterError(
        "there is a channel \(name) already", hint: "choose another name, or another --data")
    }
  }

  /// Gives the requested channel another name on this machine.
  private mutating func rename(
    _ request: Administration.Request, _ node: borrowing Node
  ) throws(MusterError) -> Administration.ChannelSummary {
    var stored = try unused(request, node)
    let name = request.name ?? ""
    guard !stored.isPublic else {
      throw MusterError(
        "the name of \(stored.name) is its key: under another name it is another channel",
        hint: "rename the other channel, if there is one")
    }
    try checkNew(name)
    ownChanges.append(.rename(stored.id, to: name))
    stored.name = name
    return summary(of: stored, node)
  }

  /// Deletes all that is stored of the requested channel, after what is still being written of it.
  private mutating func forget(
    _ request: Administration.Request, _ node: borrowing Node
  ) throws(MusterError) -> Administration.ChannelSummary {
    let stored = try unused(request, node)
    let summary = summary(of: stored, node)
    ownChanges.append(.forgetChannel(stored.id))
    return summary
  }

  /// The requested channel; throws while the node is in it.
  private func unused(
    _ request: Administration.Request, _ node: borrowing Node
  ) throws(MusterError) -> StoredChannel {
    let stored = try stored(request)
    guard !node.channelIDs.contains(stored.id) else {
      throw MusterError(
        "a node is in \(stored.name) now", hint: "leave it first, with leave-channel or by ending")
    }
    return stored
  }

  private func stored(
    _ request: Administration.Request
  ) throws(MusterError) -> StoredChannel {
    guard let name = request.channel, let stored = try stored.channel(named: name) else {
      throw MusterError(
        "no channel \(DisplayText.sanitized(request.channel ?? "", limit: 64)) is known here",
        hint: "see muster channel list, and --data")
    }
    return stored
  }

  /// The requested channel. If the node is not in the channel, it joins for the duration of the
  /// request.
  private mutating func entered(
    _ request: Administration.Request, _ node: inout Node, at now: Instant
  ) throws(MusterError) -> StoredChannel {
    let stored = try stored(request)
    guard !node.channelIDs.contains(stored.id) else { return stored }
    guard var setup = self.stored.setup(of: stored) else {
      throw stored.keys.isEmpty
        ? MusterError(CommandRefusal.openChannel)
        : MusterError(
          "what is remembered of \(stored.name) is damaged", hint: "ask for a new invite")
    }
    setup.credential = nil
    take(node.join(setup, call: false, at: now))
    return stored
  }

  // MARK: Roles

  private mutating func grant(
    _ request: Administration.Request, _ node: inout Node, at now: Instant
  ) throws(MusterError) {
    let stored = try enteredWithOwner(request, &node, at: now)
    let member = try member(request, in: stored, node)
    do {
      take(
        try node.grant(
          request.role ?? .attendee, to: member, expiresAt: request.expiresAt ?? 0,
          in: stored.id, at: now))
    } catch { throw MusterError(error) }
  }

  /// Removes a member, or an invite with all who came by it, unless the request is a dry run.
  private mutating func revoke(
    _ request: Administration.Request, _ node: inout Node, at now: Instant
  ) throws(MusterError) -> Administration.RemovalSummary {
    let stored = try enteredWithOwner(request, &node, at: now)
    let seconds = WallClock.milliseconds / 1000
    let rights = node.rights(in: stored.id)
    let invites = rights?.invites(at: seconds) ?? []
    let named = invites.first { $0.id.short == request.member }
    let key = if let named { named.id } else { try member(request, in: stored, node) }
    let invite = named ?? invites.first { $0.members.contains(key) }
    // The members that came by the invite, without those who were removed before.
    let invited = (invite?.members ?? []).filter { member in
      rights.map { $0.role(of: member, at: seconds) > .none } ?? false
    }
    let members = named == nil ? [key] : invited
    if !request.isDryRun {
      do {
        take(try node.revoke(key, isForced: request.isForced, in: stored.id, at: now))
      } catch { throw MusterError(error) }
    }
    return Administration.RemovalSummary(
      members: members.map(\.short), invite: invite?.id.short,
      staying: invited.filter { !members.contains($0) }.map(\.short))
  }

  /// The requested channel, as in `entered`. Throws for an open channel, which has no roles; the
  /// caller then need not look up the member.
  private mutating func enteredWithOwner(
    _ request: Administration.Request, _ node: inout Node, at now: Instant
  ) throws(MusterError) -> StoredChannel {
    let stored = try entered(request, &node, at: now)
    guard stored.genesis != nil else { throw MusterError(CommandRefusal.openChannel) }
    return stored
  }

  private mutating func invite(
    _ request: Administration.Request, _ node: inout Node, at now: Instant
  ) throws(MusterError) -> String {
    let stored = try entered(request, &node, at: now)
    let isLimited = request.uses != nil || request.roleExpiresAt != nil
    guard stored.genesis != nil || !isLimited else {
      throw MusterError(
        "\(stored.name) is open: whoever has its invite has its key for good",
        hint: "leave out --uses and --role-expires, or make a channel of your own with muster "
          + "channel create", kind: .usage)
    }
    do {
      let made = try node.makeInvite(
        role: request.role ?? .attendee, expiresAt: request.expiresAt ?? 0,
        uses: request.uses ?? 1, roleExpiresAt: request.roleExpiresAt ?? 0, peers: request.peers,
        rendezvous: request.rendezvous,
        in: stored.id, at: now)
      take(made.outputs)
      return made.invite.url
    } catch { throw MusterError(error) }
  }

  private mutating func verify(
    _ request: Administration.Request, _ node: borrowing Node
  ) throws(MusterError) -> String {
    let stored = try stored(request)
    let member = try member(request, in: stored, node)
    if request.confirm {
      let known = self.stored.identities(of: stored.id).filter { $0.key == member }
      guard !known.isEmpty else {
        throw MusterError("that member was never seen here", hint: "meet in the channel first")
      }
      ownChanges += known.map { identity in
        var verified = identity
        verified.isVerified = true
        return .identity(verified, channel: stored.id)
      }
      verified = (member, stored.id)
    }
    return VerificationCode.text(channel: stored.id, node.id, member)
  }

  /// The member with the given id, key or name; throws unless exactly one member matches.
  private func member(
    _ request: Administration.Request, in stored: StoredChannel, _ node: borrowing Node
  ) throws(MusterError) -> NodeID {
    guard let text = request.member else {
      throw MusterError("which member", hint: "name it by id, key or name", kind: .usage)
    }
    if let bytes = Hex.decode(text), let key = Bytes32(bytes) { return NodeID(key) }
    let isID = Hex.isID(text)
    var found = TrustBook(self.stored.identities(of: stored.id)).keys(matching: text)
    let present = node.members(of: stored.id)
      .filter { isID ? $0.id.isNamed(by: text) : $0.name == text }.map(\.id)
    let withRole = node.roles(in: stored.id).map(\.member).filter { $0.isNamed(by: text) }
    for member in present + withRole where !found.contains(member) { found.append(member) }
    let shown = DisplayText.sanitized(text, limit: 64)
    guard let only = found.first else {
      throw MusterError(
        "nobody is known as \(shown) in \(stored.name)",
        hint: isID
          ? "name somebody who was never here by all 64 digits of the key"
          : "see muster channel show")
    }
    guard found.count == 1 else {
      throw MusterError(
        "\(shown) may be any of \(found.map(\.short).joined(separator: ", "))",
        hint: "name one by its id", kind: .usage)
    }
    return only
  }

  // MARK: Summaries

  /// The summary of a stored channel, without its members.
  private func summary(
    of stored: StoredChannel, for own: NodeID
  ) -> Administration.ChannelSummary {
    let genesis = stored.genesis.flatMap { SignedGenesis.verified($0) }
    return Administration.ChannelSummary(
      name: stored.name, id: stored.id.hash.hex, kind: genesis == nil ? .open : .created,
      owner: genesis?.genesis.owner.key.hex, isOwner: genesis?.genesis.owner == own,
      epoch: stored.keys.last?.number ?? 0, createdAt: stored.createdAt,
      callEndsWithInitiator: genesis?.genesis.settings.callEndsWithInitiator ?? false,
      onlyPresentersSend: genesis?.genesis.settings.onlyPresentersSend ?? false)
  }

  private func summary(
    of stored: StoredChannel, _ node: borrowing Node
  ) -> Administration.ChannelSummary {
    var summary = summary(of: stored, for: node.id)
    let genesis = stored.genesis.flatMap { SignedGenesis.verified($0) }
    let seconds = WallClock.milliseconds / 1000
    // The node knows more than the store while it is in the channel.
    let rights = node.rights(in: stored.id) ?? self.stored.rights(in: stored)
    let roles = rights?.members(at: seconds) ?? []
    summary.invites = (rights?.invites(at: seconds) ?? []).map(Self.summary)
    let own = node.ownMember(in: stored.id)
    let online = (node.members(of: stored.id) + [own].compactMap { $0 }).map(\.id)
    let known = self.stored.identities(of: stored.id)
    var members: [NodeID] = roles.map(\.member)
    for identity in known where !members.contains(identity.key) { members.append(identity.key) }
    for member in members {
      let seen = known.last { $0.key == member }
      let role = roles.first { $0.member == member }
      let ownName = own?.name ?? self.ownName
      summary.members.append(
        Administration.MemberSummary(
          member: member.short, key: member.key.hex,
          name: member == node.id ? ownName : seen?.name,
          role: role?.role.name ?? (genesis == nil ? Role.presenter.name : Role.none.name),
          expiresAt: role.flatMap { $0.expiresAt == 0 ? nil : $0.expiresAt },
          invite: rights?.invite(of: member)?.short,
          verified: known.contains { $0.key == member && $0.isVerified },
          online: online.contains(member), lastSeen: seen?.lastSeen))
    }
    return summary
  }

  private static func summary(of invite: InviteStatus) -> Administration.InviteSummary {
    Administration.InviteSummary(
      invite: invite.id.short, role: invite.role.name, uses: invite.uses == 0 ? nil : invite.uses,
      expiresAt: invite.expiresAt == 0 ? nil : invite.expiresAt, usable: invite.isUsable,
      confirmed: invite.confirmed.map(\.short), provisional: invite.provisional.map(\.short))
  }
}

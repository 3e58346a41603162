import MusterBase
import MusterChannel
import MusterCrypto
import MusterDiscovery
import MusterLink
import MusterWire

/// The keys of channels: the key in force, and former keys under which returning members may still
/// establish links.
///
/// Each link is established under one key. After a key change, existing links stay up until the two
/// nodes have a link under the new key: sessions have their own secrets, which cannot be derived
/// from the channel's key. A link that is established under a former key after the change is
/// restricted: its peer gets the new key if it is entitled to that key, otherwise the reason for
/// the refusal, and no other data of the channel.
///
/// A link under the key in force is restricted, too, until its peer has shown that it is a member:
/// the key of a created channel is in every invite, used up or not. Until then the two nodes
/// exchange their credentials and nothing else.
extension Node {
  /// The time after its link comes up within which a peer must show that it is a member.
  static let grantPatience = Duration.seconds(3)
  /// The time after its link comes up at which a peer whose role has ended hears why: the
  /// credentials that prove otherwise may need a few transmissions.
  static let reasonDelay = Duration.seconds(1)
  /// The time after a refusal during which neither of the two nodes connects to the other.
  static let refusalTime = Duration.seconds(20)

  // MARK: Opening and closing

  /// Executes the outputs of the keyring.
  mutating func perform(_ outputs: [Keyring.Output], at now: Instant, _ out: inout [Output]) {
    for output in outputs {
      switch output {
      case .open(let key, let channel, let isFormer):
        links.open(key.key)
        perform(
          discovery.open(key.key, of: channel, isPassive: isFormer, at: now), at: now, &out)
      case .setFormer(let key): discovery.setPassive(key)
      case .close(let key):
        perform(discovery.close(key: key, at: now), at: now, &out)
        perform(links.close(key: key, at: now), at: now, &out)
      }
    }
  }

  /// Puts a new key in force and establishes links under it, or adds a former key.
  mutating func install(
    _ key: EpochKey, in channel: ChannelID, at now: Instant, _ out: inout [Output]
  ) {
    perform(keyring.install(key, in: channel), at: now, &out)
    guard keyring.isCurrent(key.key.keyID) else { return }
    for link in peers.keys where link.channel == channel {
      offerKey(over: link, at: now, &out)
      guard let peer = peers[link], channels[channel]?.state.refusal(of: link.peer) == nil,
        let route = associations.session(of: link).flatMap({ links.route(of: $0) })
      else { continue }
      connect(link, bootID: peer.bootID, over: route, at: now, &out)
    }
  }

  // MARK: Offering the key in force

  /// Offers the key in force to a neighbour whose link is under a former key, unless the neighbour
  /// is refused.
  mutating func offerKey(over link: LinkID, at now: Instant, _ out: inout [Output]) {
    guard let index = peers.index(of: link), let entry = channels[link.channel] else { return }
    guard !keyring.isCurrent(peers[at: index].key) else {
      peers[at: index].nextKeyAt = nil
      return
    }
    peers[at: index].nextKeyAt = now + Associations.keyRepeat
    guard entry.state.refusal(of: link.peer) == nil else { return }
    let number = keyring.owner(of: peers[at: index].key)?.number ?? 0
    for message in keyMessages(of: entry, after: number) {
      send([message], over: link, at: now, &out)
    }
  }

  /// The newest key changes, and this node's keys after epoch `number`. The number of changes is
  /// limited, because a member that has missed more changes has no key under which this node
  /// accepts links. If this node has been removed, it lacks the key of its removal but sends that
  /// change, which informs the peer of the removal.
  private func keyMessages(of entry: Channel, after number: UInt32) -> [Control] {
    let epochs = entry.state.epochs
    let (grants, changes) = entry.state.keyChanges(newest: Limits.formerKeys + 1)
    // Intermediate keys are included, because members without the newest key still use them.
    let keys: [Control] = keyring.keys(of: entry.state.channel).compactMap { key in
      guard key.number > number,
        let change = epochs.first(where: { $0.change.number == key.number })
      else { return nil }
      return .epochKey(key.key.withSecret { Array($0) }, entry: change.bytes)
    }
    return (grants + changes).map { .entry($0) } + keys
  }

  /// Handles a key from a neighbour; the key is accepted if `entry`, which the owner must have
  /// signed, names the key's id.
  mutating func receiveKey(
    _ secret: [UInt8], entry: [UInt8], over link: LinkID, at now: Instant, _ out: inout [Output]
  ) {
    guard channels[link.channel]?.genesis != nil else { return }
    out += change(link.channel, at: now) {
      $0.receive(.entry(entry), from: link.peer, at: now)
    }
    // The entry may already be in the document, since a key may arrive more than once.
    guard let state = channels[link.channel]?.state,
      let epoch = state.epochs.first(where: { $0.bytes == entry }),
      !keyring.keys(of: link.channel).contains(where: { $0.number == epoch.change.number }),
      let key = ChannelKey(secret: secret), epoch.change.keyID == key.keyID
    else { return }
    let next = EpochKey(number: epoch.change.number, key: key)
    // No commit is needed: peers also have the key and offer it to a later process that lost it.
    out.append(.write(.key(next), in: link.channel))
    install(next, in: link.channel, at: now, &out)
  }

  // MARK: Restricted sessions

  /// Sends the peer of a restricted session this node's credentials, the newer keys, or the reason
  /// for its refusal.
  mutating func exchangeCredentials(
    over session: SessionLinkID, at now: Instant, _ out: inout [Output]
  ) {
    guard let restriction = associations.restriction(of: session),
      let owner = keyring.owner(of: session.key), let entry = channels[owner.channel]
    else { return }
    let isCurrent = keyring.isCurrent(session.key)
    let isAwaited = isCurrent && restriction.refusedAt == nil
    associations.scheduleExchange(
      over: session,
      after: isAwaited ? Associations.credentialRepeat : Associations.keyRepeat, at: now)
    let refusal = entry.state.refusal(of: session.peer)
    if isCurrent, refusal == nil { return activate(session, at: now, &out) }
    for bytes in entry.state.credentials(of: id) {
      send([.entry(bytes)], over: session, at: now, &out)
    }
    guard let refusal else {
      for message in keyMessages(of: entry, after: owner.number) {
        send([message], over: session, at: now, &out)
      }
      return
    }
    let reason = refusal.mayEnd ? restriction.refusal ?? refusal : refusal
    let patience = reason.mayEnd ? Self.grantPatience : Self.reasonDelay
    // A node without a role cannot tell which peers have one.
    guard now - restriction.since >= patience, entry.state.refusal(of: id) == nil else { return }
    let link = LinkID(channel: owner.channel, peer: session.peer)
    for bytes in proof(for: link, newest: Limits.formerKeys + 1) {
      send([.entry(bytes)], over: session, at: now, &out)
    }
    let isOutdated = reason == .noGrant && !isCurrent
    send([.refused(isOutdated ? .inviteOutdated : reason)], over: session, at: now, &out)
    guard restriction.refusedAt == nil else { return }
    _ = associations.updateRestriction(of: session) { $0.refusedAt = now }
    refuse(link, bootID: restriction.bootID, at: now)
    out.append(.event(.peerRefused(link.peer, reason), in: link.channel))
  }

  /// The signed entries that let a refused peer verify the reason: the newest key changes, and what
  /// owners have signed about the peer. None for a peer about which they have signed nothing, which
  /// learns nothing of the channel.
  private func proof(for link: LinkID, newest count: Int) -> [[UInt8]] {
    guard let state = channels[link.channel]?.state, state.knows(link.peer) else { return [] }
    let (grants, changes) = state.keyChanges(newest: count)
    return state.credentials(of: link.peer) + grants + changes
  }

  /// Puts a restricted session under the key in force into use, because its peer is a member.
  private mutating func activate(
    _ session: SessionLinkID, at now: Instant, _ out: inout [Output]
  ) {
    guard let restriction = associations.restriction(of: session),
      let route = links.route(of: session)
    else { return }
    established(session, over: route, bootID: restriction.bootID, at: now, &out)
  }

  /// Handles a credential by which the peer of a restricted session proves that it is a member.
  /// Under a former key, which an older invite contains, it then gets the key in force.
  mutating func receiveCredential(
    _ bytes: [UInt8], over session: SessionLinkID, at now: Instant, _ out: inout [Output]
  ) {
    guard let link = keyring.link(of: session), let state = channels[link.channel]?.state
    else { return }
    let former = state.refusal(of: session.peer)
    // A peer repeats its credentials; those that are known cost nothing.
    if state.isCredential(bytes, of: session.peer), !state.contains(bytes) {
      guard associations.takeCredential(of: session, at: now) else { return }
      var refusal: Refusal?
      out += change(link.channel, at: now) {
        let taken = $0.receiveCredential(bytes, from: session.peer, at: now)
        refusal = taken.refusal
        return taken.outputs
      }
      // The peer hears of it later: other credentials may be on their way.
      if let refusal {
        _ = associations.updateRestriction(of: session) { $0.refusal = $0.refusal ?? refusal }
      }
    }
    guard channels[link.channel]?.state.refusal(of: session.peer) == nil else { return }
    if keyring.isCurrent(session.key) {
      activate(session, at: now, &out)
    } else if former != nil {
      exchangeCredentials(over: session, at: now, &out)
    }
  }

  /// Sends this node's credentials to a neighbour that may not know it as a member yet, and then
  /// takes nothing else.
  mutating func sendCredentials(over link: LinkID, at now: Instant, _ out: inout [Output]) {
    guard let peer = peers[link], let entry = channels[link.channel], entry.genesis != nil
    else { return }
    let isOver = now - peer.upSince >= Associations.restrictedTime
    _ = peers.update(link) {
      $0.nextCredentialsAt = isOver ? nil : now + Associations.credentialRepeat
    }
    guard !isOver else { return }
    // This node may get its role meanwhile.
    for bytes in entry.state.credentials(of: id) {
      send([.entry(bytes)], over: link, at: now, &out)
    }
  }

  /// Handles the proof that a neighbour regards this node as a member.
  mutating func admitted(over link: LinkID, at now: Instant, _ out: inout [Output]) {
    guard peers[link]?.nextCredentialsAt != nil else { return }
    _ = peers.update(link) { $0.nextCredentialsAt = nil }
    // The neighbour did not take the address that was sent before.
    if let address = path(of: link)?.route.address {
      send([.seen(address)], over: link, at: now, &out)
    }
  }

  /// Sends the reason for the refusal to a neighbour that is no longer a member, and closes the
  /// link.
  mutating func dismissNonMember(_ link: LinkID, at now: Instant, _ out: inout [Output]) {
    guard let peer = peers[link], let entry = channels[link.channel], entry.genesis != nil,
      let reason = entry.state.refusal(of: link.peer)
    else { return }
    for bytes in proof(for: link, newest: 1) {
      send([.entry(bytes)], over: link, at: now, &out)
    }
    send([.refused(reason)], over: link, at: now, &out)
    refuse(link, bootID: peer.bootID, at: now)
    out.append(.event(.peerRefused(link.peer, reason), in: link.channel))
    close(link, at: now, &out)
  }

  private mutating func refuse(
    _ link: LinkID, bootID: UInt64, isByPeer: Bool = false, at now: Instant
  ) {
    associations.refuse(
      link, .init(bootID: bootID, until: now + Self.refusalTime, isByPeer: isByPeer))
  }

  /// Whether this run of a peer was recently refused and is still not a member, or has recently
  /// refused this node.
  func isRefused(_ link: LinkID, bootID: UInt64, at now: Instant) -> Bool {
    guard let run = associations.refusedRun(of: link, at: now), run.bootID == bootID
    else { return false }
    return run.isByPeer || channels[link.channel]?.state.refusal(of: link.peer) != nil
  }

  /// Whether a peer may take part in a channel: it has a role, or the channel is open.
  mutating func isMember(_ peer: NodeID, in channel: ChannelID) -> Bool {
    guard let entry = channels[channel], entry.genesis != nil,
      let refusal = entry.state.refusal(of: peer)
    else { return true }
    return !configuration.policy.requiresRole && refusal.mayEnd
  }

  /// Forgets the refusals by peers after a change of this node's role, since peers may now accept
  /// this node.
  mutating func forgetRefusals(in channel: ChannelID) {
    associations.forgetRefusalsByPeers(in: channel)
    _ = channels.update(channel) { $0.refusals = [] }
  }

  /// Handles a peer's refusal of this node as a member.
  mutating func refused(
    _ reason: Refusal, over link: LinkID, at now: Instant, _ out: inout [Output]
  ) {
    guard channels[link.channel]?.genesis != nil else { return }
    if let bootID = peers[link]?.bootID { refuse(link, bootID: bootID, isByPeer: true, at: now) }
    noteRefusal(reason, in: link.channel, &out)
    // The peer has shown why, and has nothing else for this node.
    if channels[link.channel]?.state.hasLostMembership ?? false { close(link, at: now, &out) }
  }

  /// Reports that this node is no longer a member of a channel that it enters, which its document
  /// says if it has heard so before; there need be nobody to tell it again.
  mutating func reportOwnRefusal(in channel: ChannelID, _ out: inout [Output]) {
    guard let state = channels[channel]?.state, state.hasLostMembership,
      let reason = state.refusal(of: id)
    else { return }
    noteRefusal(reason, in: channel, &out)
  }

  /// Reports a reason why this node is refused, once.
  private mutating func noteRefusal(
    _ reason: Refusal, in channel: ChannelID, _ out: inout [Output]
  ) {
    let isNews =
      channels.update(channel) { entry in
        let isNews = !entry.refusals.contains {
          $0 == reason || $0.asksForInvite && reason.asksForInvite
        }
        if isNews { entry.refusals.append(reason) }
        return isNews
      } ?? false
    if isNews { out.append(.event(.channel(.refused(reason)), in: channel)) }
  }
}

extension Refusal {
  /// Whether the peer may be a member whose credentials have not arrived yet.
  fileprivate var mayEnd: Bool { self == .noGrant || self == .inviteOutdated }

  /// Whether it is mended by a new invite, so that one such reason says enough.
  fileprivate var asksForInvite: Bool {
    self == .inviteOutdated || self == .expired || self == .inviteUsedUp
  }
}

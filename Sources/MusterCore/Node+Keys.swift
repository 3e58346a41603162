import MusterBase
import MusterChannel
import MusterCrypto
import MusterDiscovery
import MusterLink
import MusterWire

/// Keys of channels: the one in force, and former ones under which members that were away make
/// links.
///
/// A link is made under one key. Links that stand when the key changes go on until the same two
/// nodes have one under the new key: their sessions have secrets of their own, which nobody learns
/// from the channel's key. A link that comes up under a former key later is restricted: its peer
/// gets the new key if it is entitled to it, else the reason, and nothing of the channel.
extension Node {
  /// How long a newcomer may take to show its invite.
  static let grantPatience = Duration.seconds(3)
  /// How long a node that was refused is not connected to again.
  static let refusalTime = Duration.seconds(20)

  // MARK: Opening and closing

  /// Carries out what the keyring asks for.
  mutating func perform(_ outputs: [Keyring.Output], at now: Instant, _ out: inout [Output]) {
    for output in outputs {
      switch output {
      case .open(let key, let isFormer):
        links.open(key.key)
        perform(discovery.open(key.key, isPassive: isFormer, at: now), at: now, &out)
      case .setFormer(let key): discovery.setPassive(key)
      case .close(let key):
        perform(discovery.close(key: key, at: now), at: now, &out)
        perform(links.close(key: key, at: now), at: now, &out)
      }
    }
  }

  /// Puts a new key in force, or takes up a former one.
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

  /// Sends a neighbour whose link is under a former key the one in force, if it may know it.
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

  /// The newest changes, and the keys after the one of `number` that this node has. At most as many
  /// as there are former keys: a member that has missed more knows none of them. A removed member
  /// lacks the key that came with its removal, but sends the change: the other must not take it for
  /// a member.
  private func keyMessages(of entry: Channel, after number: UInt32) -> [Control] {
    let epochs = entry.state.epochs
    let (grants, changes) = entry.state.keyChanges(newest: Limits.formerKeys + 1)
    // Also the keys between: members that have not got the newest one yet use them.
    let keys: [Control] = keyring.keys(of: entry.state.channel).compactMap { key in
      guard key.number > number,
        let change = epochs.first(where: { $0.change.number == key.number })
      else { return nil }
      return .epochKey(key.key.withSecret { Array($0) }, entry: change.bytes)
    }
    return (grants + changes).map { .entry($0) } + keys
  }

  /// A neighbour sends a new key: it is believed when an entry of the owner names it.
  mutating func receiveKey(
    _ secret: [UInt8], entry: [UInt8], over link: LinkID, at now: Instant, _ out: inout [Output]
  ) {
    guard channels[link.channel]?.genesis != nil else { return }
    out += change(link.channel, at: now) {
      $0.receive(.entry(entry), from: link.peer, at: now)
    }
    // Of an entry that is known already, too: the key may come again and again.
    guard let state = channels[link.channel]?.state,
      let epoch = state.epochs.first(where: { $0.bytes == entry }),
      !keyring.keys(of: link.channel).contains(where: { $0.number == epoch.change.number }),
      let key = ChannelKey(secret: secret), epoch.change.keyID == key.keyID
    else { return }
    let next = EpochKey(number: epoch.change.number, key: key)
    // Others have it, too, and offer it to a later process that lost it.
    out.append(.write(.key(next), in: link.channel))
    install(next, in: link.channel, at: now, &out)
  }

  // MARK: Restricted sessions

  /// Sends the peer of a restricted session the new key, or the reason why it gets none.
  mutating func serve(_ session: SessionLinkID, at now: Instant, _ out: inout [Output]) {
    guard associations.isRestricted(session), let owner = keyring.owner(of: session.key),
      let entry = channels[owner.channel]
    else { return }
    associations.served(session, at: now)
    guard let reason = entry.state.refusal(of: session.peer) else {
      for message in keyMessages(of: entry, after: owner.number) {
        send([message], over: session, at: now, &out)
      }
      return
    }
    let isOutdated = reason == .noGrant && !keyring.isCurrent(session.key)
    // With the owner's own entries, so that the reason need not be taken on trust.
    let (grants, changes) = entry.state.keyChanges(newest: Limits.formerKeys + 1)
    for bytes in grants + changes { send([.entry(bytes)], over: session, at: now, &out) }
    send([.refused(isOutdated ? .inviteOutdated : reason)], over: session, at: now, &out)
  }

  /// The peer of a restricted session under the key in force shows why it is a member after all.
  mutating func receiveCredential(
    _ bytes: [UInt8], over session: SessionLinkID, at now: Instant, _ out: inout [Output]
  ) {
    guard let link = keyring.link(of: session), keyring.isCurrent(session.key),
      associations.takeCredential(of: session, at: now)
    else { return }
    out += change(link.channel, at: now) {
      $0.receiveCredential(bytes, from: session.peer, at: now)
    }
    guard let restriction = associations.restriction(of: session),
      let route = links.route(of: session),
      channels[link.channel]?.state.refusal(of: session.peer) == nil
    else { return }
    established(session, over: route, bootID: restriction.bootID, at: now, &out)
  }

  /// Closes the link with a neighbour that is no member, with the reason.
  mutating func dismissNonMember(_ link: LinkID, at now: Instant, _ out: inout [Output]) {
    guard let peer = peers[link], let entry = channels[link.channel], entry.genesis != nil,
      let reason = entry.state.refusal(of: link.peer)
    else { return }
    let mayBecomeOne = reason == .noGrant || reason == .inviteOutdated
    if mayBecomeOne, now - peer.upSince < Self.grantPatience { return }
    let (grants, changes) = entry.state.keyChanges(newest: 1)
    for bytes in grants + changes { send([.entry(bytes)], over: link, at: now, &out) }
    send([.refused(reason)], over: link, at: now, &out)
    associations.refuse(link, .init(until: now + Self.refusalTime, isByPeer: false))
    out.append(.event(.peerRefused(link.peer, reason), in: link.channel))
    close(link, at: now, &out)
  }

  /// Whether a node was refused lately and still would be, or has refused this one.
  func isRefused(_ link: LinkID, at now: Instant) -> Bool {
    guard let refusal = associations.refusal(of: link, at: now) else { return false }
    return refusal.isByPeer || channels[link.channel]?.state.refusal(of: link.peer) != nil
  }

  /// Whether a new link is restricted because its peer is known to be no member. A peer that may
  /// only have had no time to show its invite is given that time.
  func isNonMember(_ peer: NodeID, in channel: ChannelID) -> Bool {
    guard let entry = channels[channel], entry.genesis != nil,
      let refusal = entry.state.refusal(of: peer)
    else { return false }
    return refusal != .noGrant && refusal != .inviteOutdated
  }

  /// Others do not take this node for a member.
  mutating func refused(
    _ reason: Refusal, over link: LinkID, at now: Instant, _ out: inout [Output]
  ) {
    guard channels[link.channel]?.genesis != nil else { return }
    associations.refuse(link, .init(until: now + Self.refusalTime, isByPeer: true))
    // The other may not have received yet what makes this node one.
    if let state = channels[link.channel]?.state, state.refusal(of: id) == nil {
      for bytes in state.credentials { send([.entry(bytes)], over: link, at: now, &out) }
    }
    let isNews =
      channels.update(link.channel) { entry in
        guard !entry.refusals.contains(reason) else { return false }
        entry.refusals.append(reason)
        return true
      } ?? false
    if isNews { out.append(.event(.channel(.refused(reason)), in: link.channel)) }
  }
}

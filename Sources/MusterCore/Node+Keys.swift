import MusterBase
import MusterChannel
import MusterCrypto
import MusterDiscovery
import MusterLink
import MusterWire

/// Keys of channels: the one in force, and former ones under which members who were away knock.
///
/// A link is made under one key. Links that stand when the key changes go on until the same two
/// nodes have one under the new key: their sessions have secrets of their own, which nobody learns
/// from the channel's key. What comes under a former key later is a visitor: it is told the new key
/// if it is entitled to it, else why not, and nothing more.
extension Node {
  /// Which channel a key is of.
  struct KeyOwner: Sendable {
    var channel: ChannelID
    var number: UInt32
  }

  /// Who is not connected to for a while.
  struct Denial: Sendable {
    var until: Instant
    /// The other refused this node, and not this node the other.
    var isByPeer: Bool
  }

  /// A link under a former key, or of one who is no member.
  struct Visitor: Sendable {
    let since: Instant
    let bootID: UInt64
    var nextAt: Instant
    /// Credentials that it may show.
    var credentials = TokenBucket(capacity: 16, perSecond: 2)
  }

  /// A link whose peer was given up, and the run of the peer that it stands with.
  struct Lapse: Sendable {
    let since: Instant
    let bootID: UInt64
    let address: Address
  }

  static let keyRepeat = Duration.seconds(1)
  static let visitLimit = Duration.seconds(8)
  /// How long both links of a pair stand after the key has changed.
  static let retirement = Duration.seconds(5)
  /// How long a newcomer may take to show its invite.
  static let grantPatience = Duration.seconds(3)
  /// How long a node that was refused is not connected to again.
  static let denial = Duration.seconds(20)

  // MARK: Opening and closing

  /// Hears, and under the key in force announces.
  mutating func open(
    _ key: EpochKey, of channel: ChannelID, at now: Instant, _ out: inout [Output]
  ) {
    keyOwners[key.key.keyID] = KeyOwner(channel: channel, number: key.number)
    links.open(key.key)
    let isFormer = key.number != channels[channel]?.key.number
    // A former key is only listened to; it is made passive before it could be announced under.
    perform(
      discovery.open(key.key, isPassive: isFormer, at: now), at: now, &out)
  }

  mutating func close(_ key: EpochKey, at now: Instant, _ out: inout [Output]) {
    let id = key.key.keyID
    perform(discovery.close(key: id, at: now), at: now, &out)
    perform(links.close(key: id, at: now), at: now, &out)
    for visitor in visitors.keys where visitor.key == id { visitors[visitor] = nil }
    keyOwners[id] = nil
  }

  /// Puts a new key in force.
  mutating func install(
    _ key: EpochKey, in channel: ChannelID, at now: Instant, _ out: inout [Output]
  ) {
    guard let former = channels[channel]?.key else { return }
    guard key.number > former.number else { return addFormer(key, in: channel, at: now, &out) }
    _ = channels.update(channel) { $0.keys.append(key) }
    discovery.setPassive(former.key.keyID)
    open(key, of: channel, at: now, &out)
    while let keys = channels[channel]?.keys, keys.count > 1 + Limits.formerKeys {
      _ = channels.update(channel) { $0.keys.removeFirst() }
      close(keys[0], at: now, &out)
    }
    for link in peers.keys where link.channel == channel {
      offerKey(over: link, at: now, &out)
      reconnect(link, under: key, at: now, &out)
    }
  }

  /// A key that this node had missed: others may still knock under it.
  private mutating func addFormer(
    _ key: EpochKey, in channel: ChannelID, at now: Instant, _ out: inout [Output]
  ) {
    guard let entry = channels[channel],
      entry.key.number - key.number <= UInt32(Limits.formerKeys),
      entry.keys.count < 1 + Limits.formerKeys,
      !entry.keys.contains(where: { $0.number == key.number })
    else { return }
    _ = channels.update(channel) { entry in
      entry.keys.append(key)
      entry.keys.sort { $0.number < $1.number }
    }
    open(key, of: channel, at: now, &out)
  }

  private mutating func reconnect(
    _ link: LinkID, under key: EpochKey, at now: Instant, _ out: inout [Output]
  ) {
    guard let peer = peers[link], channels[link.channel]?.state.refusal(of: link.peer) == nil,
      let address = links.address(of: SessionLinkID(key: peer.key, peer: link.peer))
    else { return }
    perform(
      links.connect(
        to: link.peer, bootID: peer.bootID, in: key.key.keyID, at: address, now: now),
      at: now, &out)
  }

  // MARK: Telling the new key

  /// Tells a neighbour whose link is under a former key the one in force, if it may know it.
  mutating func offerKey(over link: LinkID, at now: Instant, _ out: inout [Output]) {
    guard let index = peers.index(of: link), let entry = channels[link.channel] else { return }
    guard peers[at: index].key != entry.key.key.keyID else {
      peers[at: index].nextKeyAt = nil
      return
    }
    peers[at: index].nextKeyAt = now + Self.keyRepeat
    guard entry.state.refusal(of: link.peer) == nil else { return }
    let number = keyOwners[peers[at: index].key]?.number ?? 0
    let messages = keyMessages(of: entry, after: number)
    let engineLink = SessionLinkID(key: peers[at: index].key, peer: link.peer)
    for message in messages { sendRaw([message], over: engineLink, at: now, &out) }
  }

  /// The newest changes, and the keys after the one of `number` that this node has. At most as many
  /// as there are former keys: who has missed more knows none of them. A removed member has not the
  /// key that it was removed by, but tells of the change: the other must not take it for a member.
  private func keyMessages(of entry: Channel, after number: UInt32) -> [Control] {
    let epochs = entry.state.epochs
    let (grants, changes) = entry.state.keyChanges(newest: Limits.formerKeys + 1)
    // Also the keys between: who has missed one could not hear those who have it still.
    let keys: [Control] = entry.keys.compactMap { key in
      guard key.number > number,
        let change = epochs.first(where: { $0.change.number == key.number })
      else { return nil }
      return .epochKey(key.key.withSecret { Array($0) }, entry: change.bytes)
    }
    return (grants + changes).map { .entry($0) } + keys
  }

  /// A neighbour says that there is a new key: believed when the owner's word names it.
  mutating func receiveKey(
    _ secret: [UInt8], entry: [UInt8], over link: LinkID, at now: Instant, _ out: inout [Output]
  ) {
    guard channels[link.channel]?.genesis != nil else { return }
    out += change(link.channel, at: now) {
      $0.receive(.entry(entry), from: link.peer, at: now)
    }
    // Of an entry that is known already, too: the key may come again and again.
    guard let state = channels[link.channel]?.state, let known = channels[link.channel]?.keys,
      let epoch = state.epochs.first(where: { $0.bytes == entry }),
      !known.contains(where: { $0.number == epoch.change.number }),
      let key = ChannelKey(secret: secret), epoch.change.keyID == key.keyID
    else { return }
    let next = EpochKey(number: epoch.change.number, key: key)
    out.append(.keepKey(next, in: link.channel))
    install(next, in: link.channel, at: now, &out)
  }

  // MARK: Visitors and strangers

  /// Tells a visitor the new key, or why it gets none.
  mutating func serve(_ visitor: SessionLinkID, at now: Instant, _ out: inout [Output]) {
    guard let visit = visitors[visitor], let owner = keyOwners[visitor.key],
      let entry = channels[owner.channel]
    else { return }
    guard now - visit.since < Self.visitLimit else {
      visitors[visitor] = nil
      perform(links.close(visitor, reason: .local, at: now), at: now, &out)
      return
    }
    visitors[visitor]?.nextAt = now + Self.keyRepeat
    if let reason = entry.state.refusal(of: visitor.peer) {
      let isFormer = owner.number != entry.key.number
      let stated: Refusal = reason == .noGrant && isFormer ? .inviteOutdated : reason
      // With the owner's own word, so that it need not be taken on trust.
      let (grants, changes) = entry.state.keyChanges(newest: Limits.formerKeys + 1)
      for bytes in grants + changes { sendRaw([.entry(bytes)], over: visitor, at: now, &out) }
      sendRaw([.refused(stated)], over: visitor, at: now, &out)
    } else {
      for message in keyMessages(of: entry, after: owner.number) {
        sendRaw([message], over: visitor, at: now, &out)
      }
    }
  }

  /// A visitor under the key in force shows why it is a member after all.
  mutating func receiveCredential(
    _ bytes: [UInt8], from visitor: SessionLinkID, at now: Instant, _ out: inout [Output]
  ) {
    guard let owner = keyOwners[visitor.key],
      owner.number == channels[owner.channel]?.key.number,
      visitors.update(visitor, { $0.credentials.take(at: now) }) ?? false
    else { return }
    out += change(owner.channel, at: now) {
      $0.receiveCredential(bytes, from: visitor.peer, at: now)
    }
    guard let visit = visitors[visitor], let address = links.address(of: visitor),
      channels[owner.channel]?.state.refusal(of: visitor.peer) == nil
    else { return }
    established(visitor, at: address, bootID: visit.bootID, now, &out)
  }

  /// Parts with neighbours that are no members, and says why.
  mutating func dismissStranger(_ link: LinkID, at now: Instant, _ out: inout [Output]) {
    guard let peer = peers[link], let entry = channels[link.channel], entry.genesis != nil,
      let reason = entry.state.refusal(of: link.peer)
    else { return }
    let mayBecomeOne = reason == .noGrant || reason == .inviteOutdated
    if mayBecomeOne, now - peer.upSince < Self.grantPatience { return }
    let (grants, changes) = entry.state.keyChanges(newest: 1)
    for bytes in grants + changes { send([.entry(bytes)], over: link, at: now, &out) }
    send([.refused(reason)], over: link, at: now, &out)
    deny(link, Denial(until: now + Self.denial, isByPeer: false))
    perform(
      links.close(SessionLinkID(key: peer.key, peer: link.peer), reason: .local, at: now), at: now,
      &out)
  }

  private mutating func deny(_ link: LinkID, _ denial: Denial) {
    if denied.count >= Limits.links, denied.index(of: link) == nil,
      let first = denied.min(by: { $0.value.until < $1.value.until })
    {
      denied[first.key] = nil
    }
    denied[link] = denial
  }

  /// Whether a node was refused lately and still would be, or has refused this one.
  func isDenied(_ link: LinkID, at now: Instant) -> Bool {
    guard let denial = denied[link], now < denial.until else { return false }
    return denial.isByPeer || channels[link.channel]?.state.refusal(of: link.peer) != nil
  }

  /// This node may do more or less than before: whoever refused it may think again.
  mutating func forgetDenials(in channel: ChannelID) {
    for link in denied.keys where link.channel == channel && denied[link]?.isByPeer ?? false {
      denied[link] = nil
    }
  }

  /// Whether a new link is not to be one of the channel: its other end is known to be no member.
  /// Who may only have had no time to show its invite is given it.
  func isStranger(_ peer: NodeID, in channel: ChannelID) -> Bool {
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
    deny(link, Denial(until: now + Self.denial, isByPeer: true))
    // The other may not have heard yet why this node is one.
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

import MusterBase
import MusterCrypto

/// The keys of this node's channels: for each channel the key in force, and former keys under which
/// returning members may still establish links.
struct Keyring: ~Copyable, Sendable {
  /// An action for discovery and the link engine.
  enum Output: Equatable, Sendable {
    /// Accept links under the key; announce this node under the key unless `isFormer`.
    case open(EpochKey, of: ChannelID, isFormer: Bool)
    /// The key is no longer in force: stop announcing this node under the key.
    case setFormer(KeyID)
    /// End every link under the key, and forget the key.
    case close(KeyID)
  }

  /// The channel and the epoch that a key belongs to.
  struct Owner: Equatable, Sendable {
    let channel: ChannelID
    let number: UInt32
  }

  private var owners = PeerTable<KeyID, Owner>()
  /// The keys in ascending order of epochs: at most `Limits.formerKeys` former keys, then the key
  /// in force.
  private var keys = PeerTable<ChannelID, [EpochKey]>()

  // MARK: Queries

  func owner(of key: KeyID) -> Owner? { owners[key] }

  /// The association that a session link belongs to; nil if the node is not in the channel.
  func link(of session: SessionLinkID) -> LinkID? {
    owners[session.key].map { LinkID(channel: $0.channel, peer: session.peer) }
  }

  /// The key in force of a channel; nil if the node is not in the channel.
  func current(of channel: ChannelID) -> EpochKey? { keys[channel]?.last }

  /// The keys of a channel in ascending order of epochs; empty if the node is not in the channel.
  func keys(of channel: ChannelID) -> [EpochKey] { keys[channel] ?? [] }

  /// Whether a key is in force in its channel; false for an unknown key.
  func isCurrent(_ key: KeyID) -> Bool {
    guard let owner = owners[key] else { return false }
    return current(of: owner.channel)?.number == owner.number
  }

  // MARK: Changes

  /// Opens a channel with the key in force and at most `Limits.formerKeys` former keys from `all`,
  /// which is in ascending order of epochs.
  mutating func open(_ channel: ChannelID, _ all: [EpochKey]) -> [Output] {
    let kept = Array(all.suffix(1 + Limits.formerKeys))
    keys[channel] = kept
    return kept.map { open($0, of: channel) }
  }

  /// Forgets a channel and its keys.
  mutating func close(_ channel: ChannelID) -> [Output] {
    let closed = keys(of: channel)
    keys[channel] = nil
    return closed.map { close($0) }
  }

  /// Puts a newer key in force, or adds a former key that this node had missed, since peers may
  /// still use that key. Former keys beyond `Limits.formerKeys` are closed, the oldest first; an
  /// added former key is ignored if there is no room or its epoch is too old.
  mutating func install(_ key: EpochKey, in channel: ChannelID) -> [Output] {
    guard var all = keys[channel], let current = all.last,
      !all.contains(where: { $0.number == key.number })
    else { return [] }
    guard key.number > current.number else { return addFormer(key, before: current, in: channel) }
    var out: [Output] = [.setFormer(current.key.keyID)]
    all.append(key)
    keys[channel] = all
    out.append(open(key, of: channel))
    while all.count > 1 + Limits.formerKeys { out.append(close(all.removeFirst())) }
    keys[channel] = all
    return out
  }

  private mutating func addFormer(
    _ key: EpochKey, before current: EpochKey, in channel: ChannelID
  ) -> [Output] {
    guard var all = keys[channel], current.number - key.number <= UInt32(Limits.formerKeys),
      all.count < 1 + Limits.formerKeys
    else { return [] }
    all.append(key)
    all.sort { $0.number < $1.number }
    keys[channel] = all
    return [open(key, of: channel)]
  }

  private mutating func open(_ key: EpochKey, of channel: ChannelID) -> Output {
    owners[key.key.keyID] = Owner(channel: channel, number: key.number)
    return .open(key, of: channel, isFormer: key.number != current(of: channel)?.number)
  }

  private mutating func close(_ key: EpochKey) -> Output {
    owners[key.key.keyID] = nil
    return .close(key.key.keyID)
  }

  // MARK: Invariants

  func checkInvariants() -> [String] {
    var found: [String] = []
    for (channel, all) in keys {
      if all.isEmpty { found.append("channel \(channel) without a key") }
      if all.count > 1 + Limits.formerKeys { found.append("\(all.count) keys of \(channel)") }
      if zip(all, all.dropFirst()).contains(where: { $0.number >= $1.number }) {
        found.append("keys of \(channel) are not in order")
      }
      for key in all
      where owners[key.key.keyID] != Owner(channel: channel, number: key.number) {
        found.append("key \(key.number) of \(channel) has another owner")
      }
    }
    if owners.count != keys.reduce(0, { $0 + $1.value.count }) {
      found.append("\(owners.count) keys have owners")
    }
    return found
  }
}

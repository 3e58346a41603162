import MusterBase
import MusterChannel
import MusterDiscovery

/// Finds likely reasons for being the only member of a channel, each of which is reported once.
///
/// Silence proves nothing: the others may not have come yet. So a reason waits until others that
/// are there would have been found, which takes less than a second on a LAN.
public struct Solitude: Sendable {
  /// What may keep the others away.
  public enum Reason: Equatable, Sendable {
    /// Announcements arrive from here that no key of this node decrypts.
    case otherChannel(Address)
    /// A member's announcements arrive from here, but no answers.
    case unanswered(Address)
    /// Nobody answers at the addresses of the peers that the user or an invite has named.
    case peersSilent
    /// Announcements go out, and no one else's come in.
    case nothingHeard
  }

  /// The state of a channel when it is looked at.
  package struct Evidence {
    /// Whether no other member is in the channel and no link leads to any.
    package var isAlone: Bool
    package var surroundings: Surroundings
    /// Whether the user or an invite has named peers for this channel.
    package var hasPeers: Bool
    /// Whether this node announces itself on the local network, its only means of finding others
    /// besides `hasPeers`.
    package var isOnLANOnly: Bool
    /// The addresses of the peers of other channels, which may announce some more.
    package var linked: [Address]

    package init(
      isAlone: Bool, surroundings: Surroundings, hasPeers: Bool = false, isOnLANOnly: Bool = true,
      linked: [Address] = []
    ) {
      self.isAlone = isAlone
      self.surroundings = surroundings
      self.hasPeers = hasPeers
      self.isOnLANOnly = isOnLANOnly
      self.linked = linked
    }
  }

  /// The times that a node is alone before a reason is given: announcements are 5 s apart, and
  /// `Surroundings.enough` of them are needed.
  package static let patience = Duration.seconds(8)
  package static let patienceWithPeers = Duration.seconds(12)
  /// Somebody has to be the first: long enough for the next to start a node, too.
  package static let patienceInSilence = Duration.seconds(30)

  private var since: Instant?
  private var given: [Reason] = []

  package init() {}

  /// Looks at the channel, about once a second; returns the reason to give now.
  package mutating func look(_ evidence: Evidence, at now: Instant) -> Reason? {
    guard evidence.isAlone else {
      since = nil
      return nil
    }
    let since = since ?? now
    self.since = since
    let reason = Self.reason(evidence, after: now - since)
    guard let reason, !given.contains(where: { $0.isLike(reason) }) else { return nil }
    // It is no news after another reason.
    if reason == .nothingHeard, !given.isEmpty { return nil }
    given.append(reason)
    return reason
  }

  private static func reason(_ evidence: Evidence, after time: Duration) -> Reason? {
    if time >= patience {
      if let address = evidence.surroundings.unanswered { return .unanswered(address) }
      if let address = evidence.surroundings.otherChannel, !evidence.linked.contains(address) {
        return .otherChannel(address)
      }
    }
    if time >= patienceWithPeers, evidence.hasPeers { return .peersSilent }
    if time >= patienceInSilence, evidence.isOnLANOnly, evidence.surroundings.isNothing {
      return .nothingHeard
    }
    return nil
  }
}

extension Solitude.Reason {
  /// Whether two reasons differ in the address at most.
  fileprivate func isLike(_ other: Self) -> Bool {
    switch (self, other) {
    case (.otherChannel, .otherChannel), (.unanswered, .unanswered), (.peersSilent, .peersSilent),
      (.nothingHeard, .nothingHeard):
      true
    default: false
    }
  }
}

extension Node {
  /// The reasons to report now for channels without other members; to be called every second.
  /// `hasPeers`: whether peers are named for a channel. `isOnLANOnly`: whether this node announces
  /// itself on the local network and asks nobody else.
  public mutating func reasonsForSolitude(
    hasPeers: (ChannelID) -> Bool, isOnLANOnly: Bool, at now: Instant
  ) -> [(channel: ChannelID, reason: Solitude.Reason)] {
    let (surroundings, linked) = (discovery.surroundings, linkedPeers.map(\.address))
    var reasons: [(channel: ChannelID, reason: Solitude.Reason)] = []
    for channel in channels.keys {
      let isLinked = peers.keys.contains { $0.channel == channel }
      // A member that was removed knows why it is alone.
      let hasLostMembership = channels[channel]?.state.hasLostMembership ?? true
      let evidence = Solitude.Evidence(
        isAlone: !isLinked && !hasLostMembership && members(of: channel).isEmpty,
        surroundings: surroundings, hasPeers: hasPeers(channel), isOnLANOnly: isOnLANOnly,
        linked: linked)
      let reason = channels.update(channel) { $0.solitude.look(evidence, at: now) }
      if let reason = reason ?? nil { reasons.append((channel, reason)) }
    }
    return reasons
  }
}

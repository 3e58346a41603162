import MusterBase
import MusterWire

/// What this node keeps about one link, but for its media.
struct Peer: Sendable {
  /// The key that the engine's link is under, by its id.
  var key: KeyID
  let bootID: UInt64
  let upSince: Instant
  var roundTrip: Duration?
  var nextPing: Instant
  /// When the channel's key is offered again; nil once the peer is known to have it.
  var nextKeyAt: Instant?
  /// When it is next looked at whether the peer belongs here.
  var nextCheckAt: Instant?
  /// When it was last asked to answer because it had become quiet.
  var askedAt = Instant.zero
  /// Where it was last reached without help.
  var directAddress: Address?
  /// Where it sees this node.
  var seesThisNodeAt: Address?
  /// Addresses that it tells while it is reached through somebody: each is knocked at.
  var candidates = TokenBucket(capacity: 4, perSecond: 0.5)
  /// Since when it is reached directly; nil while it is not.
  var directSince: Instant?
  /// While it is reached through somebody: when a way of one's own is tried again.
  var nextTryAt = Instant.zero
  var tryInterval = Peer.firstTryInterval
  static let checkInterval = Duration.seconds(1)
  static let firstTryInterval = Duration.milliseconds(500)
  static let longestTryInterval = Duration.seconds(4)
  /// A direct way that lasts for less was none: it is tried ever more rarely.
  static let steadyAfter = Duration.seconds(10)
  static let unsteadyTryInterval = Duration.seconds(30)

  init(key: KeyID, bootID: UInt64, upSince: Instant) {
    self.key = key
    self.bootID = bootID
    self.upSince = upSince
    nextPing = upSince
    nextCheckAt = upSince + Self.checkInterval
  }

  /// Takes a round trip from a pong that carries the time of its ping.
  mutating func receivePong(_ token: UInt64, at now: Instant) {
    let sentAt = Instant(nanoseconds: Int64(bitPattern: token))
    let sample = now - sentAt
    guard sample >= .zero, sample < .seconds(10) else { return }
    // RFC 6298 section 2: one eighth of what is new.
    roundTrip = roundTrip.map { $0 * 0.875 + sample * 0.125 } ?? sample
  }

  var deadline: Instant? {
    soonest(nextPing, soonest(nextKeyAt, nextCheckAt))
  }
}

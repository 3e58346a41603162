import MusterBase
import MusterWire

/// The state of one association in use, except for its media.
struct Peer: HasDeadline, Sendable {
  /// The key of the session link in use.
  var key: KeyID
  let bootID: UInt64
  let upSince: Instant
  /// The boot id in the peer's newest presence when the link came up; it may be outdated.
  var announcedBootID: UInt64?
  /// The time at which the key in force is next offered; nil once the peer is known to have that
  /// key.
  var nextKeyAt: Instant?
  /// The time at which this node next sends its credentials; nil once the peer is known to
  /// regard this node as a member.
  var nextCredentialsAt: Instant?
  /// The time at which the peer's membership is next checked.
  var nextCheckAt: Instant?
  /// Whether the host has heard that the link is up: not while this node is no member.
  var isShown = false
  /// This node's address as observed by the peer.
  var seesThisNodeAt: Address?

  static let checkInterval = Duration.seconds(1)

  init(key: KeyID, bootID: UInt64, upSince: Instant) {
    self.key = key
    self.bootID = bootID
    self.upSince = upSince
    nextCheckAt = upSince + Self.checkInterval
  }

  var deadline: Instant? { soonest(soonest(nextKeyAt, nextCredentialsAt), nextCheckAt) }
}

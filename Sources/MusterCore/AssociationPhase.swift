import MusterBase

/// The phase of an association, as diagnostics report it.
public enum AssociationPhase: String, Equatable, Sendable {
  /// A handshake is under way.
  case connecting
  /// In use, under the key in force.
  case active
  /// In use, but under a former key: the key in force is being offered.
  case rekeying
  /// In use under the key in force, while a session link under a former key drains.
  case draining
  /// The peer no longer answers; its session is kept in case the peer only moved or slept.
  case suspended
  /// The peer uses a former key or is not a member: it receives the key in force if it is entitled
  /// to that key, otherwise the reason for the refusal, and no other data of the channel.
  case restricted
  /// One node has refused the other: no link is attempted until the refusal expires.
  case refused
}

extension Node {
  /// The phases of all associations that are in use, being established or refused, in the order of
  /// links.
  public func associationPhases(at now: Instant) -> [(link: LinkID, phase: AssociationPhase)] {
    associations.phases(at: now)
  }
}

import MusterBase

/// How far an association is, for people who ask why a member is not there.
public enum AssociationPhase: String, Equatable, Sendable {
  /// A handshake is under way.
  case connecting
  /// In use, under the key in force.
  case active
  /// In use, but under a former key: the key in force is being offered.
  case rekeying
  /// In use under the key in force, while a session link under a former key runs out.
  case draining
  /// The peer counts as gone; its session is kept, in case the peer only moved or slept.
  case suspended
  /// The peer made a link under a former key, or is no member: it gets the key in force if it is
  /// entitled to it, else the reason, and nothing of the channel.
  case restricted
  /// One of the two has refused the other: no link is made for a while.
  case refused
}

extension Node {
  /// What there is between this node and each peer that it has or seeks a link with, in the order
  /// of links.
  public func associationPhases(at now: Instant) -> [(link: LinkID, phase: AssociationPhase)] {
    associations.phases(at: now)
  }
}

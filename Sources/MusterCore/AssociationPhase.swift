import MusterBase

/// The phase of an association, as diagnostics report it.
public enum AssociationPhase: String, Equatable, Sendable {
  /// A handshake is under way.
  case connecting
  /// The association is in use under the key in force.
  case active
  /// The association is in use under a former key, and the key in force is being offered to the
  /// peer.
  case rekeying
  /// The association is in use under the key in force, while another session link drains.
  case draining
  /// The peer no longer answers; its session is kept in case the peer has only changed networks or
  /// slept.
  case suspended
  /// The peer uses a former key or is not a member: it receives the key in force if it is entitled
  /// to that key, otherwise the reason for the refusal, and no other data of the channel.
  case restricted
  /// One node has refused the other: no link is attempted until the refusal expires.
  case refused
}

extension Node {
  /// The phases of all associations, ordered by peer, then by channel; an expired refusal or
  /// handshake has no phase.
  public func associationPhases(at now: Instant) -> [(link: LinkID, phase: AssociationPhase)] {
    associations.phases(at: now)
  }
}

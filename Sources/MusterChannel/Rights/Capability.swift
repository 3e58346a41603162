import MusterWire

/// An action that requires a role; every receiver checks the role of the sender.
public enum Capability: Sendable, CaseIterable {
  case receive
  case joinCall
  case sendText
  case sendAudio
  case sendVideo
  case startCall
  case share
  /// Take over a call whose initiator has vanished.
  case handOver
  /// Mute members of lower roles for everyone, and remove them from calls.
  case moderate
  /// Grant and revoke roles; only the channel's owner can grant or revoke the owner role.
  case grant

  /// The lowest role that permits the action, after the roles of Azure Communication Services'
  /// rooms. Each role permits everything that the lower ones permit; `none` permits nothing.
  public var leastRole: Role {
    switch self {
    case .receive: .consumer
    case .joinCall: .consumer
    case .sendText: .consumer
    case .sendAudio: .attendee
    case .sendVideo: .attendee
    case .startCall: .presenter
    case .share: .presenter
    case .handOver: .presenter
    case .moderate: .presenter
    case .grant: .owner
    }
  }

  /// Whether `role` permits this action in a channel with `settings`.
  public func isAllowed(to role: Role, in settings: ChannelSettings) -> Bool {
    if settings.onlyPresentersSend, self == .sendAudio || self == .sendVideo {
      return role >= .presenter
    }
    return role >= leastRole
  }
}

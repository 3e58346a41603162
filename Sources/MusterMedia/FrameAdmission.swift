import MusterBase

/// Decides which frames of a stream a receiver gets while its path is full: those whose turn comes
/// in time, without frames that refer to one that was left out.
///
/// Whole frames are left out before their packets have sequence numbers, so that they are no loss
/// to the receiver.
struct FrameAdmission: Equatable, Sendable {
  /// The longest time for which a frame may wait, by temporal layer: the highest layer makes room
  /// first, and a base-layer frame, without which nothing is shown until a keyframe, last.
  static let longestWait = [
    Duration.milliseconds(250), .milliseconds(120), .milliseconds(60),
  ]
  /// The wait up to which a new keyframe is requested after one was left out.
  static let keyframeWait = Duration.milliseconds(60)

  private enum Gap {
    /// Frames above the base layer refer to one that was left out, up to the next of the base.
    case enhancement
    /// All frames do, up to the next keyframe.
    case base
  }

  private var gap: Gap?

  /// Whether only a keyframe can be sent next.
  var isWaitingForKeyframe: Bool { gap == .base }

  /// Whether a frame is sent that would wait for this time.
  mutating func admits(_ frame: PacketizedFrame, wait: Duration) -> Bool {
    let isBase = frame.temporalLayer == 0
    switch gap {
    case .base where !frame.isKeyframe: return false
    case .enhancement where !isBase: return false
    default: break
    }
    guard wait <= Self.longestWait[min(frame.temporalLayer, Self.longestWait.count - 1)] else {
      if isBase { gap = .base } else if frame.isReference { gap = gap ?? .enhancement }
      return false
    }
    if isBase { gap = nil }
    return true
  }

  /// Notes that frames that were admitted have not been sent after all.
  mutating func lost() { gap = .base }
}

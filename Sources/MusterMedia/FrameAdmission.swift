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
    Duration.milliseconds(250), .milliseconds(150), .milliseconds(100),
  ]
  /// The interval of stills, if there is no room for more.
  static let stillInterval = Duration.seconds(4)
  /// The wait up to which a keyframe is requested after a frame was left out without which others
  /// cannot be shown, and the time after which a request is repeated: the keyframe may have to wait
  /// for `KeyframeLimiter`, and for the encoder.
  static let keyframeWait = Duration.milliseconds(60)
  static let keyframeInterval = Duration.seconds(1)

  /// The number of temporal layers that the receiver gets; 0 for keyframes only.
  var temporalLayers = TemporalLayers.count
  private var gap = ReferenceGap()

  /// Whether only a keyframe can be sent next.
  var isWaitingForKeyframe: Bool { gap.needsKeyframe }

  /// Whether a frame is sent that would wait for this time.
  mutating func admits(_ frame: PacketizedFrame, wait: Duration) -> Bool {
    let layer = min(frame.temporalLayer, Self.longestWait.count - 1)
    guard gap.admits(temporalLayer: layer, isKeyframe: frame.isKeyframe) else { return false }
    guard frame.isKeyframe || layer < temporalLayers, wait <= Self.longestWait[layer] else {
      if frame.isReference { gap.leftOut(temporalLayer: layer) }
      return false
    }
    gap.kept(temporalLayer: layer)
    return true
  }

  /// Notes that frames that were admitted have not been sent after all.
  mutating func lost() { gap.leftOut(temporalLayer: 0) }
}

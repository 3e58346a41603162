/// Finds the frames of a VP8 stream that cannot be decoded after earlier ones were left out.
///
/// A frame refers to frames of its own temporal layer and of those below, and a base-layer frame to
/// base-layer frames only.
public struct ReferenceGap: Equatable, Sendable {
  /// Frames of this temporal layer and above refer to one that was left out: at 0 up to the next
  /// keyframe, otherwise up to the next base-layer frame. Nil without a gap.
  private var temporalLayer: Int?

  /// Creates the state of a stream of which no frame was left out.
  public init() {}

  /// Whether there is no gap.
  public var isClosed: Bool { temporalLayer == nil }

  /// Whether only a keyframe can be decoded next.
  public var needsKeyframe: Bool { temporalLayer == 0 }

  /// Whether the next frame can be decoded.
  public func admits(temporalLayer: Int, isKeyframe: Bool) -> Bool {
    guard let gap = self.temporalLayer else { return true }
    return isKeyframe || temporalLayer < gap
  }

  /// Notes that the next frame, which must be admitted, is not left out.
  public mutating func kept(temporalLayer: Int) {
    // A keyframe is of the base layer, too.
    if temporalLayer == 0 { self.temporalLayer = nil }
  }

  /// Notes that a frame is left out to which frames of its temporal layer and above may refer.
  public mutating func leftOut(temporalLayer: Int) {
    self.temporalLayer = min(self.temporalLayer ?? temporalLayer, temporalLayer)
  }
}

import MusterBase
import MusterSystem

/// Limits the number of frames queued between the encoders and the event loop by dropping frames.
package final class FrameBacklog: Sendable {
  /// The frame count from which only reference frames are queued: half a second of three layers at
  /// 30 frames per second.
  private static let comfortable = 45
  /// The frame count from which a layer is dropped up to its next keyframe: one and a half seconds.
  private static let limit = 135

  private struct State {
    var count = 0
    /// The layers that have lost a reference frame and need a keyframe.
    var broken: [Int] = []
  }

  private let state = Monitor(State())

  package init() {}

  package func admits(_ frame: EncodedFrame) -> Bool {
    state.withLock { state in
      if state.count >= Self.comfortable, !frame.isReference { return false }
      let isBroken = state.broken.contains(frame.layer)
      if state.count >= Self.limit || (isBroken && !frame.isKeyframe) {
        if !isBroken { state.broken.append(frame.layer) }
        return false
      }
      state.broken.removeAll { $0 == frame.layer }
      state.count += 1
      return true
    }
  }

  package func taken() { state.withLock { $0.count -= 1 } }
}

import MusterBase
import MusterDevices

/// Counts the frames queued from the encoders to the node's loop, and decides which are sent.
package final class FrameBacklog: Sendable {
  /// Half a second of three layers: beyond, only what others refer to is worth sending late.
  private static let comfortable = 45
  /// A second and a half: beyond, nothing is until a keyframe.
  private static let limit = 135

  private struct State {
    var count = 0
    /// Layers whose chain of references is broken until a keyframe.
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

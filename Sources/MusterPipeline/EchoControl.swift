import MusterBase
import MusterCodecs
import MusterSystem

/// Passes the played frames to the capture thread, as the reference signal of the echo canceller.
///
/// There is an acoustic echo path only between a live microphone and a live loudspeaker, so this
/// does nothing unless both are in use. Whenever one of them is opened, it begins anew.
package final class EchoControl: Sendable {
  private struct State {
    var reference = EchoReference()
    /// The canceller; nil without an echo path, and before the first captured frame.
    var canceller: EchoCanceller?
  }

  private let state = Monitor(State())

  /// No echo path.
  package init() {}

  /// Notes that another source is in use, or none; called on the capture thread.
  package func microphone(isLive: Bool) {
    state.withLock { state in
      state.reference.isMicrophoneLive = isLive
      state.canceller = nil
    }
  }

  /// Notes that another sink is in use, or none; called on the playout thread.
  package func speaker(isLive: Bool) {
    state.withLock { state in
      state.reference.isSpeakerLive = isLive
      state.canceller = nil
    }
  }

  /// Adds a frame that is being played; called on the playout thread.
  package func play(_ pcm: [Int16]) { state.withLock { $0.reference.play(pcm) } }

  /// Returns a captured frame with the echo of the played frames removed; called on the capture
  /// thread. Without memory for a canceller the frame is as it was.
  package func cleaned(_ captured: [Int16]) -> [Int16] {
    state.withLock { state in
      guard state.reference.hasEcho else { return captured }
      if state.canceller == nil { state.canceller = try? EchoCanceller() }
      let reference = state.reference.take()
      return state.canceller?.process(captured: captured, played: reference) ?? captured
    }
  }
}

/// The played frames that wait for the captured frame that may contain their echo.
package struct EchoReference: Sendable {
  /// The maximum number of these frames: the canceller's tail of 200 ms.
  package static let capacity = 10

  /// Whether the microphone is in use; a change begins anew.
  package var isMicrophoneLive = false { didSet { waiting = [] } }
  /// Whether the loudspeaker is in use; a change begins anew.
  package var isSpeakerLive = false { didSet { waiting = [] } }
  private var waiting: [[Int16]] = []

  /// No echo path.
  package init() {}

  /// Whether there is an echo path.
  package var hasEcho: Bool { isMicrophoneLive && isSpeakerLive }

  /// Adds a frame that is being played; the oldest one goes if there are too many.
  package mutating func play(_ pcm: [Int16]) {
    guard hasEcho else { return }
    if waiting.count >= Self.capacity { waiting.removeFirst() }
    waiting.append(pcm)
  }

  /// The frame played at the same time as the next captured one; nil if none was played.
  package mutating func take() -> [Int16]? { waiting.isEmpty ? nil : waiting.removeFirst() }
}

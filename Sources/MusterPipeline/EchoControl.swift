import MusterBase
import MusterCodecs
import MusterSystem

/// Passes the played frames to the capture thread, as the reference signal of the echo canceller.
package final class EchoControl: Sendable {
  /// The maximum number of played frames not yet matched with a captured one: the canceller's tail
  /// of 200 ms.
  private static let frames = 10

  private let played = BoundedQueue<[Int16]>(capacity: EchoControl.frames)
  private let state: Monitor<State>

  /// The canceller, and the played frames taken over by the capture thread.
  private struct State {
    package let canceller: EchoCanceller
    package var waiting: [[Int16]] = []
  }

  package init() throws(CodecError) { state = Monitor(State(canceller: try EchoCanceller())) }

  /// Adds a frame that is being played; called on the playout thread.
  package func play(_ pcm: [Int16]) { played.add(pcm) }

  /// Returns a captured frame with the echo of the played frames removed; called on the capture
  /// thread.
  package func cleaned(_ captured: [Int16]) -> [Int16] {
    state.withLock { state in
      state.waiting = (state.waiting + played.takeWithoutWaiting()).suffix(Self.frames)
      let reference = state.waiting.isEmpty ? nil : state.waiting.removeFirst()
      return state.canceller.process(captured: captured, played: reference)
    }
  }
}

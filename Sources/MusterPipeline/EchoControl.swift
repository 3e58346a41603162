import MusterBase
import MusterCodecs
import MusterDevices

/// Brings what the loudspeaker plays to the thread that hears it again through the microphone.
package final class EchoControl: Sendable {
  /// Frames played and not yet matched with a captured one: the canceller's 200 ms tail.
  private static let frames = 10

  private let played = BoundedQueue<[Int16]>(capacity: EchoControl.frames)
  private let state: Monitor<State>

  /// The canceller, and played frames that its thread has taken over.
  private struct State {
    package let canceller: EchoCanceller
    package var waiting: [[Int16]] = []
  }

  package init() throws(CodecError) { state = Monitor(State(canceller: try EchoCanceller())) }

  /// From the playout: one frame on its way to the loudspeaker.
  package func play(_ pcm: [Int16]) { played.add(pcm) }

  /// From the capture: one frame without the echo of what was played.
  package func cleaned(_ captured: [Int16]) -> [Int16] {
    state.withLock { state in
      state.waiting = (state.waiting + played.takeWithoutWaiting()).suffix(Self.frames)
      let reference = state.waiting.isEmpty ? nil : state.waiting.removeFirst()
      return state.canceller.process(captured: captured, played: reference)
    }
  }
}

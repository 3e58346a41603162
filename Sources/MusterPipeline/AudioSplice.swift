import MusterBase
import MusterCodecs
import MusterDevices

/// Joins the audio of successive sources into one: time goes forward only, and nothing clicks where
/// one source follows another.
package struct AudioSplice: Sendable {
  /// The length of a seam in samples: 5 ms, the shortest that is not heard as a click.
  static let seam = AudioFormat.samplesPerSecond / 200
  /// By how much a frame may begin before the end of the last one: the jitter of capture clocks.
  static let overlap = Duration.milliseconds(10)
  /// The pause after which nothing of the former source is left to fade out: receivers have
  /// concealed it.
  static let pause = Duration.milliseconds(40)

  private var last: CapturedAudio?
  private var isSeam = false

  package init() {}

  /// Notes that the next frame comes from another source, or from one that was opened again.
  package mutating func begin() { isSeam = last != nil }

  /// The frame to send; nil for one of a time that has been sent, as a device that was opened
  /// beside the former one has captured before it is used.
  package mutating func take(_ captured: CapturedAudio) -> CapturedAudio? {
    guard isSeam, let former = last else {
      last = captured
      return captured
    }
    let end = former.capturedAt + AudioFormat.frameDuration
    guard captured.capturedAt >= end.advanced(by: .zero - Self.overlap) else { return nil }
    isSeam = false
    let tail = captured.capturedAt - end <= Self.pause ? former.pcm : []
    let joined = CapturedAudio(
      pcm: Self.joined(tail, captured.pcm), capturedAt: captured.capturedAt)
    last = joined
    return joined
  }

  /// Fades `next` in over the mirrored end of `former`, which continues it without a step; silence
  /// if `former` is empty.
  private static func joined(_ former: [Int16], _ next: [Int16]) -> [Int16] {
    var pcm = next
    for index in 0..<min(seam, pcm.count) {
      let share = Double(index + 1) / Double(seam + 1)
      let old = index < former.count ? Double(former[former.count - 1 - index]) : 0
      pcm[index] = Int16((old * (1 - share) + Double(pcm[index]) * share).rounded())
    }
    return pcm
  }
}

import MusterBase
import MusterCodecs

/// Something that takes sound at its own pace.
///
/// `write` belongs to one thread, the rest to any.
public protocol AudioSink: AnyObject, Sendable {
  /// Takes 960 samples and returns when the next 960 are wanted; at once after `close()`.
  func write(_ pcm: [Int16]) throws(DeviceError)
  /// How long a sample written now waits until it sounds.
  var delay: Duration { get }
  /// Ends `write`, finishes a file; more than once is harmless.
  func close()
}

/// Opens an audio sink by what the user calls it.
public enum AudioSinks {
  /// `default`, the name of an ALSA PCM, a `.wav` file to write, or `none`.
  public static func open(_ specification: String) throws(DeviceError) -> any AudioSink {
    if specification == "none" { return PacedSink(writer: nil) }
    if specification.hasSuffix(".wav") {
      return PacedSink(writer: try WAVWriter(path: specification))
    }
    return try SpeakerSink(device: specification)
  }

  /// Whether a specification names a loudspeaker, which is open only while it is needed.
  public static func isDevice(_ specification: String) -> Bool {
    specification != "none" && !specification.hasSuffix(".wav")
  }
}

/// A file or nothing, at the pace of the boot clock.
final class PacedSink: AudioSink, @unchecked Sendable {
  let delay = Duration.zero

  private let writer: WAVWriter?
  private let cancellation = Cancellation()
  private var schedule: AudioSchedule?

  init(writer: WAVWriter?) { self.writer = writer }

  func write(_ pcm: [Int16]) throws(DeviceError) {
    if cancellation.isCancelled { return }
    try writer?.append(pcm)
    var pace = schedule ?? AudioSchedule(start: BootClock.now)
    let start = pace.take(at: BootClock.now, frame: AudioFormat.frameDuration)
    schedule = pace
    _ = cancellation.sleep(until: start + AudioFormat.frameDuration)
  }

  func close() {
    cancellation.cancel()
    writer?.close()
  }
}

import MusterBase
import MusterCodecs
import MusterSystem

/// A destination for audio that paces the writing thread.
///
/// `write` must be called from one thread; the rest is thread-safe.
public protocol AudioSink: AnyObject, Sendable {
  /// Takes 960 samples and blocks until the next 960 are due; returns at once after `close()`.
  func write(_ pcm: [Int16]) throws(DeviceError)
  /// The time from writing a sample to playing it.
  var delay: Duration { get }
  /// Unblocks `write` and completes a file; idempotent.
  func close()
}

/// Opens audio sinks named on the command line.
public enum AudioSinks {
  /// Opens the sink that `specification` names: `default` or another ALSA PCM, the path of a `.wav`
  /// file to write, or `none`, which discards the audio. Throws for an unknown device or a file
  /// that cannot be created.
  public static func open(_ specification: String) throws(DeviceError) -> any AudioSink {
    if specification == "none" { return PacedSink(writer: nil) }
    if specification.hasSuffix(".wav") {
      return PacedSink(writer: try WAVWriter(path: specification))
    }
    return try SpeakerSink(device: specification)
  }

  /// Whether a specification names a loudspeaker, which is open only while needed.
  public static func isDevice(_ specification: String) -> Bool {
    specification != "none" && !specification.hasSuffix(".wav")
  }
}

/// A sink without a device, paced by the boot clock: writes a WAV file or discards the audio.
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

import MusterBase
import MusterCodecs
import MusterSystem

/// A destination for audio that paces the writing thread.
///
/// `write` must be called from one thread; the rest is thread-safe.
public protocol AudioSink: AnyObject, Sendable {
  /// Whether this is a loudspeaker, whose sound a live microphone may capture.
  var isLive: Bool { get }
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
  /// that cannot be created. `cancellation` ends the sink's waits, as `close` does.
  public static func open(
    _ specification: String, cancellation: Cancellation = Cancellation()
  ) throws(DeviceError) -> any AudioSink {
    if specification == "none" { return PacedSink(cancellation: cancellation) }
    if specification.hasSuffix(".wav") {
      return PacedSink(writer: try WAVWriter(path: specification), cancellation: cancellation)
    }
    return try SpeakerSink(device: specification, cancellation: cancellation)
  }

  /// Whether a specification names a loudspeaker, which is open only while needed.
  public static func isDevice(_ specification: String) -> Bool {
    specification != "none" && !specification.hasSuffix(".wav")
  }
}

/// A sink without a device, paced by the boot clock: writes a WAV file or discards the audio.
package final class PacedSink: AudioSink, @unchecked Sendable {
  package let isLive = false
  package let delay = Duration.zero

  private let writer: WAVWriter?
  private let cancellation: Cancellation
  private var schedule: AudioSchedule?

  /// A sink that writes to `writer`, if any.
  package init(writer: WAVWriter? = nil, cancellation: Cancellation) {
    self.writer = writer
    self.cancellation = cancellation
  }

  package func write(_ pcm: [Int16]) throws(DeviceError) {
    if cancellation.isCancelled { return }
    try writer?.append(pcm)
    var pace = schedule ?? AudioSchedule(start: BootClock.now)
    let start = pace.take(at: BootClock.now, frame: AudioFormat.frameDuration)
    schedule = pace
    _ = cancellation.sleep(until: start + AudioFormat.frameDuration)
  }

  package func close() {
    cancellation.cancel()
    writer?.close()
  }
}

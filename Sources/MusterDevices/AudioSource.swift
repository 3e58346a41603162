import MusterBase
import MusterCodecs
import MusterSystem

/// A captured frame of 20 ms of 48 kHz mono audio.
public struct CapturedAudio: Equatable, Sendable {
  /// 960 samples of 16 bits.
  public let pcm: [Int16]
  /// The capture time of the first sample.
  public let capturedAt: Instant

  public init(pcm: [Int16], capturedAt: Instant) {
    self.pcm = pcm
    self.capturedAt = capturedAt
  }
}

/// A source of audio that determines its own pace.
///
/// `next()` must be called from one thread; `cancel()` is thread-safe.
public protocol AudioSource: AnyObject, Sendable {
  /// Whether this is a live microphone, whose signal contains the loudspeaker's echo.
  var isLive: Bool { get }
  /// Blocks until the next 20 ms are captured; nil after `cancel()`. Throws if the source has
  /// failed permanently.
  func next() throws(DeviceError) -> CapturedAudio?
  /// Makes a waiting `next()` and all later calls return nil within 100 ms.
  func cancel()
}

/// Opens audio sources named on the command line.
public enum AudioSources {
  /// Opens `mic`, `mic:PCM` (an ALSA name), `tone`, or a `.wav` file. Throws for an unknown device
  /// or an unusable file.
  public static func open(
    _ specification: String, cancellation: Cancellation = Cancellation()
  ) throws(DeviceError) -> any AudioSource {
    if specification == "tone" { return ToneSource(cancellation: cancellation) }
    if isDevice(specification) {
      let name = specification.dropFirst(4)
      return try MicrophoneSource(
        device: name.isEmpty ? "default" : String(name), cancellation: cancellation)
    }
    return try FileAudioSource(path: specification, cancellation: cancellation)
  }

  /// Whether a specification names a microphone, which is open only while needed.
  public static func isDevice(_ specification: String) -> Bool {
    specification == "mic" || specification.hasPrefix("mic:")
  }
}

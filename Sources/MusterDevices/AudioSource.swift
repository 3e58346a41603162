import MusterBase
import MusterCodecs

/// 20 ms of 48 kHz mono sound.
public struct CapturedAudio: Equatable, Sendable {
  /// 960 samples.
  public let pcm: [Int16]
  /// When the first sample was taken.
  public let capturedAt: Instant

  public init(pcm: [Int16], capturedAt: Instant) {
    self.pcm = pcm
    self.capturedAt = capturedAt
  }
}

/// Something that gives sound at its own pace.
///
/// `next()` belongs to one thread, `cancel()` to any.
public protocol AudioSource: AnyObject, Sendable {
  /// Whether this is a microphone, whose echo is worth cancelling.
  var isLive: Bool { get }
  /// Waits for the next 20 ms; nil after `cancel()`, an error when the source has ended for good.
  func next() throws(DeviceError) -> CapturedAudio?
  /// Makes `next()` return nil, within 100 ms and from then on.
  func cancel()
}

/// Opens an audio source by what the user calls it.
public enum AudioSources {
  /// `mic`, `mic:PCM` (an ALSA name), `tone`, or a `.wav` file.
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

  /// Whether a specification names a microphone, which is open only while it is needed.
  public static func isDevice(_ specification: String) -> Bool {
    specification == "mic" || specification.hasPrefix("mic:")
  }
}

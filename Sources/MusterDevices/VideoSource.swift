import MusterBase
import MusterCodecs

/// A picture and when it was taken.
public struct CapturedFrame: Sendable {
  public let frame: I420Frame
  public let capturedAt: Instant

  public init(frame: I420Frame, capturedAt: Instant) {
    self.frame = frame
    self.capturedAt = capturedAt
  }
}

/// Something that gives pictures at its own pace.
///
/// `next()` belongs to one thread, `cancel()` to any.
public protocol VideoSource: AnyObject, Sendable {
  /// Every frame has this size.
  var size: VideoSize { get }
  /// What the source means to deliver, rounded.
  var framesPerSecond: Int { get }
  /// Whether `TestPattern.read` finds numbers and times in the pictures.
  var isPattern: Bool { get }
  /// Waits for the next frame; nil after `cancel()`, an error when the source has ended for good.
  func next() throws(DeviceError) -> CapturedFrame?
  /// Makes `next()` return nil, at once and from then on.
  func cancel()
}

/// Opens a video source by what the user calls it.
public enum VideoSources {
  public static let defaultSize = VideoSize(width: 640, height: 360)
  public static let defaultRate = 30
  /// What a camera is asked for; it gives the nearest it has.
  public static let cameraSize = VideoSize(width: 1280, height: 720)
  /// The same bound as the decoder has for remote pictures.
  static let maximumPixels = VP8Decoder.maximumPixels

  /// `camera`, `camera:/dev/video1`, `test`, `test:640x360@30`, or a `.y4m` or `.ivf` file or FIFO.
  ///
  /// Opening a FIFO waits up to `fifoPatience` for its writer, so call this from a thread that may
  /// wait, and keep `cancellation` to end that; it also ends the source.
  public static func open(
    _ specification: String, cancellation: Cancellation = Cancellation()
  ) throws(DeviceError) -> any VideoSource {
    let (kind, argument) = split(specification)
    switch kind {
    case "camera":
      return try CameraSource(
        path: argument, wanted: cameraSize, framesPerSecond: defaultRate,
        cancellation: cancellation)
    case "test":
      let (size, rate) = try patternParameters(argument)
      return PatternSource(size: size, framesPerSecond: rate, cancellation: cancellation)
    default:
      return try FileVideoSource(path: specification, cancellation: cancellation)
    }
  }

  /// Whether a specification names a device, which others may want and whose light is on while it
  /// is open; such a source is opened anew whenever it is needed.
  public static func isDevice(_ specification: String) -> Bool {
    split(specification).kind == "camera"
  }

  /// Separates `camera:/dev/video0`; a path that merely begins alike is left whole.
  private static func split(_ text: String) -> (kind: String, argument: String?) {
    for kind in ["camera", "test"] {
      if text == kind { return (kind, nil) }
      if text.hasPrefix(kind + ":") { return (kind, String(text.dropFirst(kind.count + 1))) }
    }
    return ("file", nil)
  }

  private static func patternParameters(
    _ argument: String?
  ) throws(DeviceError) -> (VideoSize, Int) {
    guard let argument else { return (defaultSize, defaultRate) }
    let parts = argument.split(separator: "@", omittingEmptySubsequences: false)
    let rate = parts.count == 2 ? Int(parts[1]) : defaultRate
    guard parts.count <= 2, let size = VideoSize(parts[0]), let rate, (1...120).contains(rate),
      size.shortSide >= 48, size.pixels <= maximumPixels
    else {
      throw DeviceError(
        what: "test:\(argument) is not a test picture",
        hint: "write it like test:640x360@30, from 48 pixels a side and up to 120 a second",
        isMisuse: true)
    }
    return (size, rate)
  }
}

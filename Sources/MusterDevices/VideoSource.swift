import MusterBase
import MusterCodecs
import MusterSystem

/// The format of a video source's frames.
public struct VideoFormat: Equatable, Sendable {
  /// The size of each frame.
  public var size: VideoSize
  /// The nominal frame rate, rounded.
  public var framesPerSecond: Int
  /// Whether the frames carry the number and time that `TestPattern.read` decodes.
  public var isPattern: Bool

  /// The format of ordinary frames, unless `isPattern`.
  public init(size: VideoSize, framesPerSecond: Int, isPattern: Bool = false) {
    self.size = size
    self.framesPerSecond = framesPerSecond
    self.isPattern = isPattern
  }
}

/// A captured frame and its capture time.
public struct CapturedFrame: Sendable {
  /// The pixels, of the size in `format`.
  public let frame: I420Frame
  /// The capture time on the boot clock.
  public let capturedAt: Instant
  /// The source's format from this frame on.
  public let format: VideoFormat

  /// A frame of the size in `format`.
  public init(frame: I420Frame, capturedAt: Instant, format: VideoFormat) {
    self.frame = frame
    self.capturedAt = capturedAt
    self.format = format
  }
}

/// A source of video frames that determines its own pace. Its format may change from one frame to
/// the next.
///
/// `next()` must be called from one thread; `cancel()` is thread-safe.
public protocol VideoSource: AnyObject, Sendable {
  /// The expected format of the first frame.
  var format: VideoFormat { get }
  /// Blocks until the next frame; nil after `cancel()`. Throws if the source has failed
  /// permanently.
  func next() throws(DeviceError) -> CapturedFrame?
  /// Makes a waiting `next()` and all later calls return nil at once.
  func cancel()
}

/// Opens video sources named on the command line.
public enum VideoSources {
  /// The size of `test` without parameters.
  public static let defaultSize = VideoSize(width: 640, height: 360)
  /// The frame rate of `test` without parameters.
  public static let defaultRate = 30
  /// The size requested from a camera, which delivers the nearest supported size.
  public static let cameraSize = VideoSize(width: 1280, height: 720)
  /// The maximum frame size in pixels, the same as for remote frames.
  static let maximumPixels = VP8Decoder.maximumPixels

  /// Opens `camera`, `camera:/dev/video1`, `test`, `test:640x360@30`, or a `.y4m` or `.ivf` file or
  /// FIFO.
  ///
  /// Opening a FIFO blocks up to `fifoPatience` for its writer, so call this on a thread that may
  /// block. `cancellation` ends that wait, and later the source. Throws for an unknown device or an
  /// unusable file.
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
    case "screen":
      throw DeviceError(
        what: "this version cannot capture a screen",
        hint: "share a file (.y4m or .ivf), or test", isMisuse: true)
    default:
      return try FileVideoSource(path: specification, cancellation: cancellation)
    }
  }

  /// Whether a specification names a camera, which is open only while needed: other programs may
  /// use the device, and the camera's light is on while the device is open.
  public static func isDevice(_ specification: String) -> Bool {
    split(specification).kind == "camera"
  }

  /// Splits a text such as `camera:/dev/video0`; a file name that merely starts with a keyword is
  /// not split.
  private static func split(_ text: String) -> (kind: String, argument: String?) {
    for kind in ["camera", "test", "screen"] {
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
        what: "test:\(argument) is not a test pattern",
        hint: "write it like test:640x360@30, from 48 pixels a side and up to 120 a second",
        isMisuse: true)
    }
    return (size, rate)
  }
}

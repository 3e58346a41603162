import CMusterShims
import MusterBase
import MusterCodecs

/// A capture mode of a camera: pixel format, size and frame rate.
public struct CameraMode: Equatable, Sendable, CustomStringConvertible {
  /// The V4L2 pixel format, four characters such as `YUYV` or `MJPG`.
  public let fourCC: String
  /// The size of the frames.
  public let size: VideoSize
  /// Frames per second, from the driver's frame interval.
  public let framesPerSecond: Double

  /// The mode in the form `YUYV 640x360@30`.
  public var description: String { "\(fourCC) \(size)@\(Int(framesPerSecond.rounded()))" }
}

extension CameraMode {
  init(_ mode: muster_camera_mode) {
    fourCC = Self.text(mode.fourcc)
    size = VideoSize(width: Int(mode.width), height: Int(mode.height))
    framesPerSecond =
      mode.numerator == 0 ? 0 : Double(mode.denominator) / Double(mode.numerator)
  }

  /// The pixel formats that can be converted, with their V4L2 codes. Among uncompressed formats,
  /// `cost` prefers earlier entries.
  static let formats: [(fourCC: String, format: PixelFormat)] = [
    ("YU12", .i420), ("NV12", .nv12), ("NV21", .nv21), ("YUYV", .yuyv), ("UYVY", .uyvy),
    ("YV12", .yv12), ("422P", .i422), ("MJPG", .mjpeg), ("JPEG", .mjpeg), ("RGB3", .rgb24),
    ("BGR3", .bgr24), ("XR24", .bgrx), ("BGR4", .bgrx), ("GREY", .grey),
  ]

  static func format(_ fourcc: UInt32) -> PixelFormat? {
    let name = text(fourcc)
    return formats.first { $0.fourCC == name }?.format
  }

  private static func text(_ fourcc: UInt32) -> String {
    var result = ""
    for shift in [0, 8, 16, 24] as [UInt32] {
      let byte = UInt8(truncatingIfNeeded: fourcc >> shift)
      result.unicodeScalars.append(
        (0x20..<0x7F).contains(byte) ? Unicode.Scalar(byte) : "?")
    }
    return result
  }

  /// The distance of a mode from the requested one; nil if the mode cannot be used.
  ///
  /// The criteria in order of weight: too slow, too small, too large, conversion cost.
  static func cost(
    _ mode: muster_camera_mode, wanted: VideoSize, framesPerSecond: Int
  ) -> Double? {
    let described = CameraMode(mode)
    guard let index = formats.firstIndex(where: { $0.fourCC == described.fourCC }),
      described.size.pixels > 0, described.size.pixels <= VideoSources.maximumPixels,
      described.framesPerSecond > 0
    else { return nil }
    let slow = max(0, Double(framesPerSecond) * 0.95 - described.framesPerSecond)
    let ratio = Double(described.size.pixels) / Double(max(wanted.pixels, 1))
    let size = ratio < 1 ? 1 / ratio - 1 : (ratio - 1) / 2
    // Measured: decoding JPEG takes 1.5 ms per frame, other conversions almost no time. Grey is
    // last, because it lacks colour.
    let conversion =
      switch formats[index].format {
      case .mjpeg: 0.3
      case .grey: 2.0
      default: Double(index) * 0.01
      }
    return slow / Double(max(framesPerSecond, 1)) * 20 + size * 2 + conversion
  }
}

import CYUV
import MusterBase

/// The pixel layout of a frame from a camera or file.
public enum PixelFormat: String, Sendable, CaseIterable {
  case i420, yv12, nv12, nv21, yuyv, uyvy, i422, rgb24, bgr24, bgrx, grey, mjpeg

  /// The size in bytes of a frame whose first plane has this stride; nil for compressed formats.
  public func byteCount(_ size: VideoSize, stride: Int) -> Int? {
    let chromaHeight = (size.height + 1) / 2
    switch self {
    case .i420, .yv12: return stride * size.height + 2 * ((stride + 1) / 2) * chromaHeight
    case .nv12, .nv21: return stride * size.height + stride * chromaHeight
    case .i422: return stride * size.height + 2 * ((stride + 1) / 2) * size.height
    case .yuyv, .uyvy, .rgb24, .bgr24, .bgrx, .grey: return stride * size.height
    case .mjpeg: return nil
    }
  }

  /// The smallest stride in bytes that holds a row of this width.
  public func minimumStride(width: Int) -> Int {
    switch self {
    case .i420, .yv12, .i422, .grey, .mjpeg: width
    case .nv12, .nv21: (width + 1) / 2 * 2
    case .yuyv, .uyvy: (width + 1) / 2 * 4
    case .rgb24, .bgr24: width * 3
    case .bgrx: width * 4
    }
  }
}

/// The three planes of a frame, in memory borrowed from a caller or a library.
struct PlanePointers {
  var y: UnsafePointer<UInt8>
  var strideY: Int
  var u: UnsafePointer<UInt8>
  var strideU: Int
  var v: UnsafePointer<UInt8>
  var strideV: Int

  init(
    y: UnsafePointer<UInt8>, strideY: Int, u: UnsafePointer<UInt8>, strideU: Int,
    v: UnsafePointer<UInt8>, strideV: Int
  ) {
    (self.y, self.strideY) = (y, strideY)
    (self.u, self.strideU, self.v, self.strideV) = (u, strideU, v, strideV)
  }
}

/// Conversions between pixel layouts and sizes, by libyuv.
public enum PixelConversion {
  /// Converts one frame of `frame.size`; returns false if `bytes` is too short or not decodable.
  ///
  /// `stride` is the stride of the first plane in bytes; 0 stands for `format.minimumStride`.
  public static func convert(
    _ bytes: UnsafeRawBufferPointer, format: PixelFormat, stride: Int = 0, into frame: I420Frame
  ) -> Bool {
    guard let base = bytes.bindMemory(to: UInt8.self).baseAddress else { return false }
    if format == .mjpeg { return decodeJPEG(base, count: bytes.count, into: frame) }
    let smallest = format.minimumStride(width: frame.size.width)
    let stride = stride == 0 ? smallest : stride
    guard stride >= smallest, stride <= Int(Int32.max) / 4,
      let needed = format.byteCount(frame.size, stride: stride), bytes.count >= needed
    else { return false }
    switch format {
    case .i420, .yv12, .i422: return convertPlanar(base, format, stride, frame)
    case .nv12, .nv21: return convertSemiplanar(base, format, stride, frame)
    default: return convertPacked(base, format, stride, frame)
    }
  }

  /// Scales to the size of `target` with a box filter, which averages pixels when downscaling;
  /// returns false if libyuv fails.
  @discardableResult
  public static func scale(_ frame: I420Frame, into target: I420Frame) -> Bool {
    I420Scale(
      frame.y, Int32(frame.strideY), frame.u, Int32(frame.strideUV), frame.v,
      Int32(frame.strideUV), Int32(frame.size.width), Int32(frame.size.height),
      target.y, Int32(target.strideY), target.u, Int32(target.strideUV), target.v,
      Int32(target.strideUV), Int32(target.size.width), Int32(target.size.height),
      kFilterBox) == 0
  }

  static func copy(_ source: PlanePointers, into frame: I420Frame) -> Bool {
    I420Copy(
      source.y, Int32(source.strideY), source.u, Int32(source.strideU), source.v,
      Int32(source.strideV), frame.y, Int32(frame.strideY), frame.u, Int32(frame.strideUV),
      frame.v, Int32(frame.strideUV), Int32(frame.size.width), Int32(frame.size.height)) == 0
  }

  private static func convertPlanar(
    _ base: UnsafePointer<UInt8>, _ format: PixelFormat, _ stride: Int, _ frame: I420Frame
  ) -> Bool {
    let rows = format == .i422 ? frame.size.height : frame.chromaHeight
    let chromaStride = (stride + 1) / 2
    let first = base + stride * frame.size.height
    let second = first + chromaStride * rows
    let isSwapped = format == .yv12
    let source = PlanePointers(
      y: base, strideY: stride, u: isSwapped ? second : first, strideU: chromaStride,
      v: isSwapped ? first : second, strideV: chromaStride)
    guard format == .i422 else { return copy(source, into: frame) }
    return I422ToI420(
      source.y, Int32(stride), source.u, Int32(chromaStride), source.v, Int32(chromaStride),
      frame.y, Int32(frame.strideY), frame.u, Int32(frame.strideUV), frame.v,
      Int32(frame.strideUV), Int32(frame.size.width), Int32(frame.size.height)) == 0
  }

  private static func convertSemiplanar(
    _ base: UnsafePointer<UInt8>, _ format: PixelFormat, _ stride: Int, _ frame: I420Frame
  ) -> Bool {
    let convert = format == .nv12 ? NV12ToI420 : NV21ToI420
    return convert(
      base, Int32(stride), base + stride * frame.size.height, Int32(stride),
      frame.y, Int32(frame.strideY), frame.u, Int32(frame.strideUV), frame.v,
      Int32(frame.strideUV), Int32(frame.size.width), Int32(frame.size.height)) == 0
  }

  private static func convertPacked(
    _ base: UnsafePointer<UInt8>, _ format: PixelFormat, _ stride: Int, _ frame: I420Frame
  ) -> Bool {
    // libyuv names formats by their order in a little-endian register: RAW is R, G, B in memory,
    // RGB24 is B, G, R.
    let convert =
      switch format {
      case .yuyv: YUY2ToI420
      case .uyvy: UYVYToI420
      case .rgb24: RAWToI420
      case .bgr24: RGB24ToI420
      case .bgrx: ARGBToI420
      default: I400ToI420
      }
    return convert(
      base, Int32(stride), frame.y, Int32(frame.strideY), frame.u, Int32(frame.strideUV),
      frame.v, Int32(frame.strideUV), Int32(frame.size.width), Int32(frame.size.height)) == 0
  }

  private static func decodeJPEG(
    _ base: UnsafePointer<UInt8>, count: Int, into frame: I420Frame
  ) -> Bool {
    var width: Int32 = 0
    var height: Int32 = 0
    guard MJPGSize(base, count, &width, &height) == 0, Int(width) == frame.size.width,
      Int(height) == frame.size.height
    else { return false }
    return MJPGToI420(
      base, count, frame.y, Int32(frame.strideY), frame.u, Int32(frame.strideUV), frame.v,
      Int32(frame.strideUV), width, height, width, height) == 0
  }
}

import CMusterShims
import CVPX
import MusterBase

/// A VP8 decoder (RFC 6386) that never returns a damaged frame.
///
/// Not thread-safe: use it from one thread at a time.
public final class VP8Decoder {
  private let context: UnsafeMutablePointer<vpx_codec_ctx_t>
  private var pool: FramePool?

  /// The maximum size of a decoded frame in pixels. A keyframe header can state 16383x16383; the
  /// limit bounds the memory that a hostile sender can occupy (4096x2304: 14 MB per frame buffer,
  /// of which libvpx keeps four).
  public static let maximumPixels = 4096 * 2304

  /// Creates a decoder; throws if libvpx cannot allocate its state.
  public init() throws(CodecError) {
    context = .allocate(capacity: 1)
    context.initialize(to: vpx_codec_ctx_t())
    guard muster_vp8_decoder_init(context) == 0 else {
      // All properties are set, so `deinit` frees the allocated memory.
      throw CodecError("libvpx cannot make a VP8 decoder")
    }
  }

  deinit {
    vpx_codec_destroy(context)
    context.deallocate()
  }

  /// Decodes one frame; nil for a hidden frame (`show_frame` in RFC 6386 section 9.1).
  ///
  /// Throws for a malformed or oversized frame; decoding then resumes only with a keyframe.
  public func decode(_ data: [UInt8]) throws(CodecError) -> I420Frame? {
    // libvpx treats empty input as a lost frame and would repeat the previous frame.
    guard !data.isEmpty, data.count <= Limits.frameBytes else {
      throw CodecError("a VP8 frame of \(data.count) bytes")
    }
    if let size = Self.keyframeSize(data) {
      guard size.width > 0, size.height > 0, size.pixels <= Self.maximumPixels else {
        throw CodecError("a VP8 keyframe of \(size)")
      }
    }
    let result = vpx_codec_decode(context, data, UInt32(data.count), nil, 0)
    guard result == VPX_CODEC_OK else {
      throw CodecError("VP8 decoding failed: \(String(cString: vpx_codec_err_to_string(result)))")
    }
    var iterator: vpx_codec_iter_t?
    guard let image = vpx_codec_get_frame(context, &iterator) else { return nil }
    guard muster_vp8_decoder_is_corrupted(context) == 0 else {
      throw CodecError("the VP8 frame rests on missing data")
    }
    return copy(image.pointee)
  }

  /// The size in a keyframe's header (RFC 6386 section 9.1); nil for other frames and for a
  /// malformed header.
  public static func keyframeSize(_ data: some RandomAccessCollection<UInt8>) -> VideoSize? {
    guard data.count >= 10 else { return nil }
    let header = Array(data.prefix(10))
    guard header[0] & 1 == 0, header[3...5] == [0x9D, 0x01, 0x2A] else { return nil }
    func side(_ low: UInt8, _ high: UInt8) -> Int { Int(high & 0x3F) << 8 | Int(low) }
    return VideoSize(width: side(header[6], header[7]), height: side(header[8], header[9]))
  }

  private func copy(_ image: vpx_image_t) -> I420Frame? {
    let size = VideoSize(width: Int(image.d_w), height: Int(image.d_h))
    guard image.fmt == VPX_IMG_FMT_I420, size.width > 0, size.height > 0,
      let y = image.planes.0, let u = image.planes.1, let v = image.planes.2
    else { return nil }
    if pool?.size != size { pool = FramePool(size: size) }
    guard let frame = pool?.frame() else { return nil }
    let source = PlanePointers(
      y: y, strideY: Int(image.stride.0), u: u, strideU: Int(image.stride.1), v: v,
      strideV: Int(image.stride.2))
    return PixelConversion.copy(source, into: frame) ? frame : nil
  }
}

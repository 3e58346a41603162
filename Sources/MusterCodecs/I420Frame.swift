import MusterBase

/// An uncompressed frame: a luma plane, and two chroma planes of half its width and height.
///
/// Odd chroma sizes are rounded up. All planes are in one allocation with rows aligned to 64 bytes,
/// for the SIMD code of libyuv and libvpx. A producer fills a frame before passing it on and
/// consumers only read, so frames can cross threads.
public final class I420Frame: @unchecked Sendable {
  /// Width and height of the luma plane.
  public let size: VideoSize
  /// The luma plane, `strideY * size.height` bytes.
  public let y: UnsafeMutablePointer<UInt8>
  /// The blue-difference plane, `strideUV * chromaHeight` bytes.
  public let u: UnsafeMutablePointer<UInt8>
  /// The red-difference plane, `strideUV * chromaHeight` bytes.
  public let v: UnsafeMutablePointer<UInt8>
  /// The distance in bytes from one row of `y` to the next.
  public let strideY: Int
  /// The distance in bytes from one row of `u` or `v` to the next.
  public let strideUV: Int

  private let storage: FrameStorage
  private let pool: FramePool?

  /// The maximum width and height in pixels. VP8 allows one pixel less: a keyframe header has
  /// fields of 14 bits (RFC 6386 section 9.1).
  public static let maximumSide = 16384

  /// A frame with undefined content; both sides must be in `1...maximumSide`.
  public convenience init(size: VideoSize) {
    self.init(size: size, storage: FrameStorage(size: size), pool: nil)
  }

  init(size: VideoSize, storage: FrameStorage, pool: FramePool?) {
    self.size = size
    self.storage = storage
    self.pool = pool
    let layout = FrameLayout(size)
    strideY = layout.strideY
    strideUV = layout.strideUV
    let base = storage.bytes.assumingMemoryBound(to: UInt8.self)
    y = base
    u = base + layout.offsetU
    v = base + layout.offsetV
  }

  deinit { pool?.takeBack(storage) }

  /// The number of columns of a chroma plane.
  public var chromaWidth: Int { (size.width + 1) / 2 }
  /// The number of rows of a chroma plane.
  public var chromaHeight: Int { (size.height + 1) / 2 }

  /// The size in bytes of `packedBytes()` for a frame of this size.
  public static func packedByteCount(_ size: VideoSize) -> Int {
    size.pixels + 2 * ((size.width + 1) / 2) * ((size.height + 1) / 2)
  }

  /// The three planes without row padding, the layout of Y4M and of raw `.yuv` files.
  public func packedBytes() -> [UInt8] {
    var result = [UInt8]()
    result.reserveCapacity(Self.packedByteCount(size))
    for row in 0..<size.height {
      result.append(
        contentsOf: UnsafeBufferPointer(start: y + row * strideY, count: size.width))
    }
    for plane in [u, v] {
      for row in 0..<chromaHeight {
        result.append(
          contentsOf: UnsafeBufferPointer(start: plane + row * strideUV, count: chromaWidth))
      }
    }
    return result
  }

  /// Fills the frame from at least `packedByteCount` bytes in the layout of `packedBytes()`.
  public func fill(packed bytes: UnsafeRawBufferPointer) {
    precondition(bytes.count >= Self.packedByteCount(size))
    guard var from = bytes.baseAddress else { return }
    func copy(to plane: UnsafeMutablePointer<UInt8>, stride: Int, width: Int, height: Int) {
      for row in 0..<height {
        UnsafeMutableRawPointer(plane + row * stride).copyMemory(from: from, byteCount: width)
        from += width
      }
    }
    copy(to: y, stride: strideY, width: size.width, height: size.height)
    copy(to: u, stride: strideUV, width: chromaWidth, height: chromaHeight)
    copy(to: v, stride: strideUV, width: chromaWidth, height: chromaHeight)
  }

  /// Fills the frame with one colour.
  public func fill(y luma: UInt8, u blue: UInt8, v red: UInt8) {
    y.update(repeating: luma, count: strideY * size.height)
    u.update(repeating: blue, count: strideUV * chromaHeight)
    v.update(repeating: red, count: strideUV * chromaHeight)
  }
}

/// The strides and plane offsets within the allocation of one frame, in bytes.
struct FrameLayout {
  static let alignment = 64
  let strideY: Int
  let strideUV: Int
  let offsetU: Int
  let offsetV: Int
  let byteCount: Int

  init(_ size: VideoSize) {
    let sides = 1...I420Frame.maximumSide
    precondition(sides.contains(size.width) && sides.contains(size.height))
    func aligned(_ width: Int) -> Int {
      (width + Self.alignment - 1) / Self.alignment * Self.alignment
    }
    strideY = aligned(size.width)
    strideUV = aligned((size.width + 1) / 2)
    let chromaBytes = strideUV * ((size.height + 1) / 2)
    offsetU = strideY * size.height
    offsetV = offsetU + chromaBytes
    byteCount = offsetV + chromaBytes
  }
}

/// The memory of one frame; a pool reuses it for later frames of the same size.
final class FrameStorage: @unchecked Sendable {
  let bytes: UnsafeMutableRawPointer

  init(size: VideoSize) {
    bytes = .allocate(
      byteCount: FrameLayout(size).byteCount, alignment: FrameLayout.alignment)
  }

  deinit { bytes.deallocate() }
}

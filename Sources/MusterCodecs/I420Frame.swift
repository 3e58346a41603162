import MusterBase

/// One uncompressed picture: a luma plane and two chroma planes of half its width and height.
///
/// Odd sizes round the chroma up. One allocation, rows aligned to 64 bytes, which is what the SIMD
/// of libyuv and libvpx likes best. Whoever makes a frame fills it and hands it on; from then on
/// everybody only reads, which is why it may cross threads.
public final class I420Frame: @unchecked Sendable {
  public let size: VideoSize
  public let y: UnsafeMutablePointer<UInt8>
  public let u: UnsafeMutablePointer<UInt8>
  public let v: UnsafeMutablePointer<UInt8>
  public let strideY: Int
  /// The distance between rows of `u` and of `v`.
  public let strideUV: Int

  private let storage: FrameStorage
  private let pool: FramePool?

  /// Pictures larger than this on a side come from nowhere but hostile input.
  public static let maximumSide = 16384

  /// A picture of undefined content; both sides must be in `1...maximumSide`.
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

  public var chromaWidth: Int { (size.width + 1) / 2 }
  public var chromaHeight: Int { (size.height + 1) / 2 }

  /// How many bytes `packedBytes()` gives.
  public static func packedByteCount(_ size: VideoSize) -> Int {
    size.pixels + 2 * ((size.width + 1) / 2) * ((size.height + 1) / 2)
  }

  /// The picture without padding, as Y4M and `--i420` tools lay it out.
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

  /// Fills the picture with `packedByteCount` bytes in the layout of `packedBytes()`.
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

  /// Paints everything in one colour.
  public func fill(y luma: UInt8, u blue: UInt8, v red: UInt8) {
    y.update(repeating: luma, count: strideY * size.height)
    u.update(repeating: blue, count: strideUV * chromaHeight)
    v.update(repeating: red, count: strideUV * chromaHeight)
  }
}

/// Where the planes lie in one allocation.
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

/// The memory of one picture, which may serve several frames one after another.
final class FrameStorage: @unchecked Sendable {
  let bytes: UnsafeMutableRawPointer

  init(size: VideoSize) {
    bytes = .allocate(
      byteCount: FrameLayout(size).byteCount, alignment: FrameLayout.alignment)
  }

  deinit { bytes.deallocate() }
}

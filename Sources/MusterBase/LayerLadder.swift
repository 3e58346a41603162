/// The simulcast layers of a source and their bitrates.
///
/// The table is libwebrtc's (`video/config/simulcast.cc`, kSimulcastFormatsVP8), the most widely
/// used tuning for VP8; sizes between its rows are interpolated by the number of pixels.
public enum LayerLadder {
  /// The bitrates of one layer in kbit/s.
  public struct Bitrate: Equatable, Sendable {
    /// The target bitrate of the largest layer; a higher bitrate gives no visible gain.
    public let max: Int
    /// The bitrate of a layer whose receivers set no limit: for the largest layer the maximum.
    public let target: Int
    /// The bitrate below which the layer is not sent.
    public let min: Int

    public init(max: Int, target: Int, min: Int) {
      self.max = max
      self.target = target
      self.min = min
    }
  }

  /// The bitrates of the layers of a source, smallest first. `cap` is the maximum of the largest
  /// layer; nil selects that of the ladder.
  public static func bitrates(
    of sizes: [VideoSize], framesPerSecond: Int, cap: Int? = nil
  ) -> [Bitrate] {
    sizes.indices.map { index in
      let ladder = bitrate(for: sizes[index], framesPerSecond: framesPerSecond)
      guard index == sizes.count - 1 else { return ladder }
      let most = cap ?? ladder.max
      return Bitrate(max: most, target: most, min: Swift.min(ladder.min, most))
    }
  }

  /// The minimum short side of a scaled layer in pixels; the source itself may be smaller.
  public static let smallestShortSide = 160

  /// The sizes of the layers, smallest first: a quarter and half of the source's width and height,
  /// unless below `smallestShortSide`, and the full size.
  public static func sizes(for source: VideoSize) -> [VideoSize] {
    var result = [source]
    var divisor = 2
    while result.count < Limits.spatialLayers {
      // Sizes are even, so that the chroma planes have exactly half the width and height.
      let size = VideoSize(
        width: source.width / divisor / 2 * 2, height: source.height / divisor / 2 * 2)
      guard size.shortSide >= smallestShortSide else { break }
      result.append(size)
      divisor *= 2
    }
    return result.reversed()
  }

  private struct Row {
    let pixels: Int
    let max: Int
    let target: Int
    let min: Int
  }

  private static let rows = [
    Row(pixels: 320 * 180, max: 200, target: 150, min: 30),
    Row(pixels: 480 * 270, max: 450, target: 350, min: 150),
    Row(pixels: 640 * 360, max: 700, target: 500, min: 150),
    Row(pixels: 960 * 540, max: 1200, target: 1200, min: 350),
    Row(pixels: 1280 * 720, max: 2500, target: 2500, min: 600),
    Row(pixels: 1920 * 1080, max: 5000, target: 4000, min: 800),
  ]

  /// The bitrates of a layer of this size and frame rate.
  ///
  /// The table is for 30 frames per second. Doubling the rate adds half the bits, because
  /// successive frames differ less; lower rates keep the bitrate and gain quality.
  public static func bitrate(for size: VideoSize, framesPerSecond: Int = 30) -> Bitrate {
    let fast = Swift.min(Swift.max(framesPerSecond, 30), 60) - 30
    func scaled(_ kilobits: Int) -> Int { kilobits * (60 + fast) / 60 }
    let row = interpolated(pixels: size.pixels)
    return Bitrate(max: scaled(row.max), target: scaled(row.target), min: scaled(row.min))
  }

  private static func interpolated(pixels: Int) -> Row {
    guard var below = rows.first, pixels > below.pixels else { return rows[0] }
    for above in rows.dropFirst() {
      if pixels <= above.pixels {
        let span = above.pixels - below.pixels
        let part = pixels - below.pixels
        func between(_ a: Int, _ b: Int) -> Int { a + (b - a) * part / span }
        return Row(
          pixels: pixels, max: between(below.max, above.max),
          target: between(below.target, above.target), min: between(below.min, above.min))
      }
      below = above
    }
    return below
  }
}

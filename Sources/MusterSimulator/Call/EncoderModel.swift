import MusterBase
import MusterWire

/// A model of the VP8 simulcast encoders of one camera: frames with the sizes and references of
/// real ones, and tokens as content.
///
/// Sizes follow libvpx's one-pass constant-bitrate control (`vp8/encoder/ratectrl.c`): a virtual
/// buffer fills at the target rate and empties by the size of each frame; its level scales the
/// target of the next frame, and below zero frames are dropped.
package struct EncoderModel: Sendable {
  package static let framesPerSecond = 30
  /// The size of a keyframe, in mean frames of the target rate. Measured with libvpx and three
  /// clips: 4.5 to 8.6 at 320x180 and 150 kbit/s, 2.6 to 6.7 at 640x360 and 500 to 1000 kbit/s, 1.5
  /// to 4.5 at 1280x720 and 2500 kbit/s.
  package static let keyframeFrames = 5.0
  /// The size of a frame of each temporal layer, in mean frames: layers 0 to 2 take 50, 20 and 30 %
  /// of the rate (`TemporalPattern`) in 1, 1 and 2 of 4 frames.
  static let temporalFrames = [2.0, 0.8, 0.6]
  /// The deviation of frame sizes from their target that content causes.
  static let contentDeviation = 0.25

  private struct Layer: Sendable {
    let size: VideoSize
    let kilobitsPerSecond: Int
    var references = FrameReferences()
    /// The level of the virtual buffer as media time in seconds.
    var level = startLevel

    // libvpx's settings in `VP8Encoder`: 500 ms at first, 600 ms aimed at, at most 1 s.
    static let startLevel = 0.5
    static let optimalLevel = 0.6
    static let highestLevel = 1.0
  }

  private let sender: UInt8
  private var layers: [Layer]
  private var encoded: [Int] = []

  /// The encoders for a source of this size. The layers have the bitrates of `LayerLadder`, the
  /// largest `kilobitsPerSecond` if given.
  package init(sender: UInt8, source: VideoSize, kilobitsPerSecond: Int?) {
    self.sender = sender
    let sizes = LayerLadder.sizes(for: source)
    layers = sizes.indices.map { index in
      let bitrate = LayerLadder.bitrate(for: sizes[index])
      let isLargest = index == sizes.count - 1
      return Layer(
        size: sizes[index],
        kilobitsPerSecond: isLargest ? kilobitsPerSecond ?? bitrate.max : bitrate.target)
    }
  }

  /// The offer of the camera.
  var offer: StreamOffer {
    StreamOffer(
      .camera,
      layers: layers.map { VideoLayer(size: $0.size, framesPerSecond: Self.framesPerSecond) })
  }

  /// Encodes exactly these layers from now on; newly encoded layers start with a keyframe.
  package mutating func encode(_ wanted: [Int]) {
    for layer in wanted where !encoded.contains(layer) { requestKeyframe(layer) }
    encoded = wanted.filter(layers.indices.contains)
  }

  /// Makes the layer's next frame a keyframe.
  package mutating func requestKeyframe(_ layer: Int) {
    if layers.indices.contains(layer) { layers[layer].references.needsKeyframe = true }
  }

  /// The next picture, encoded in every layer that is being encoded and does not drop it.
  package mutating func frames(capturedAt: Instant, _ prng: inout PRNG) -> [EncodedFrame] {
    var frames: [EncodedFrame] = []
    for index in encoded {
      guard let bytes = nextSize(of: index, &prng) else { continue }
      let token = layers[index].references.next(
        sender: sender, run: 1, stream: .camera, layer: index)
      frames.append(
        EncodedFrame(
          data: token.frame(size: layers[index].size, bytes: bytes), isKeyframe: token.isKeyframe,
          layer: index, temporalLayer: Int(token.temporalLayer),
          isReference: token.temporalLayer < 2, capturedAt: capturedAt))
    }
    return frames
  }

  /// The size in bytes of a layer's next frame; nil if the frame is dropped.
  private mutating func nextSize(of index: Int, _ prng: inout PRNG) -> Int? {
    var layer = layers[index]
    defer { layers[index] = layer }
    let frameSeconds = 1 / Double(Self.framesPerSecond)
    layer.level = min(layer.level + frameSeconds, Layer.highestLevel)
    let isKeyframe = layer.references.needsKeyframe
    guard isKeyframe || layer.level >= 0 else {
      layer.references.skip()
      return nil
    }
    let content = 1 + Self.contentDeviation * (2 * prng.unit() - 1)
    let share =
      isKeyframe
      ? Self.keyframeFrames
      : Self.temporalFrames[Int(layer.references.nextTemporalLayer)] * Self.correction(layer.level)
    let seconds = share * content * frameSeconds
    layer.level -= seconds
    return Int(seconds * Double(layer.kilobitsPerSecond) * 125)
  }

  /// The factor by which the level of the virtual buffer scales a frame: down by up to half below
  /// the optimum, up by up to 7.5 % above.
  private static func correction(_ level: Double) -> Double {
    let percent = 100 * (Layer.optimalLevel - level) / Layer.optimalLevel
    return 1 - min(max(percent, -15), 100) / 200
  }
}

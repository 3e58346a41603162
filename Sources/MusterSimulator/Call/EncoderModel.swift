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
  /// of the rate (`TemporalLayers`) in 1, 1 and 2 of 4 frames.
  static let temporalFrames = [2.0, 0.8, 0.6]
  /// The deviation of frame sizes from their target that content causes.
  static let contentDeviation = 0.25

  /// The size of the frame after a cut, in mean frames. Measured with `VP8Encoder` and cuts between
  /// three clips: 2.6 to 6.3 at 640x360 and 200 kbit/s, 2.1 to 3.8 at 355, 1.1 to 3.2 at 900.
  static let cutFrames = 4.0

  private struct Layer: Sendable {
    let size: VideoSize
    private(set) var kilobitsPerSecond = 0
    private(set) var temporalLayers = TemporalLayers.count
    var references = FrameReferences()
    /// The level of the virtual buffer as media time in seconds.
    var level = startLevel
    /// Whether the next frame shows another scene than the one before.
    var isAfterCut = false

    init(size: VideoSize) { self.size = size }

    // libvpx's settings in `VP8Encoder`: 500 ms at first, 600 ms aimed at, at most 1 s.
    static let startLevel = 0.5
    static let optimalLevel = 0.6
    static let highestLevel = 1.0

    mutating func start(_ target: EncoderTarget) {
      (kilobitsPerSecond, level) = (target.kilobitsPerSecond, Self.startLevel)
      temporalLayers = target.temporalLayers
      references.needsKeyframe = true
    }

    mutating func set(kilobitsPerSecond new: Int) {
      level = min(level * Double(kilobitsPerSecond) / Double(max(new, 1)), Self.highestLevel)
      kilobitsPerSecond = new
    }

    /// The bits that the target rate has for each encoded frame, in mean frames of all temporal
    /// layers.
    var shareOfFrame: Double {
      Double(
        TemporalLayers.cumulativePercent[temporalLayers - 1]
          * TemporalLayers.decimators[temporalLayers - 1]) / 100
    }

    /// Whether the next frame of the source is not encoded, since nobody gets its temporal layer.
    var leavesOutNext: Bool {
      !references.needsKeyframe && Int(references.nextTemporalLayer) >= temporalLayers
    }
  }

  private let sender: UInt8
  private let cuts: Duration?
  /// The time of the next cut, from the first picture on.
  private var cutsAt: Instant?
  private var layers: [Layer]
  private var encoded: [Int] = []

  /// The encoders for a source of this size.
  package init(sender: UInt8, source: VideoSize, cuts: Duration? = nil) {
    self.sender = sender
    self.cuts = cuts
    layers = LayerLadder.sizes(for: source).map { Layer(size: $0) }
  }

  /// The offer of the camera.
  var offer: StreamOffer {
    StreamOffer(
      .camera,
      layers: layers.map { VideoLayer(size: $0.size, framesPerSecond: Self.framesPerSecond) })
  }

  /// Encodes exactly these layers from now on at these bitrates; newly encoded layers, and those
  /// with another number of temporal layers, start with a keyframe. A new bitrate holds from the
  /// next frame on. The virtual buffer keeps its bits, which then last for another time, as in
  /// libvpx.
  package mutating func encode(_ targets: [EncoderTarget]) {
    let known = targets.filter { layers.indices.contains($0.layer) }
    for target in known {
      if encoded.contains(target.layer),
        layers[target.layer].temporalLayers == target.temporalLayers
      {
        layers[target.layer].set(kilobitsPerSecond: target.kilobitsPerSecond)
      } else {
        layers[target.layer].start(target)
      }
    }
    encoded = known.map(\.layer)
  }

  /// Makes the layer's next frame a keyframe.
  package mutating func requestKeyframe(_ layer: Int) {
    if layers.indices.contains(layer) { layers[layer].references.needsKeyframe = true }
  }

  /// The next picture, encoded in every layer that is being encoded and does not drop it.
  package mutating func frames(capturedAt: Instant, _ prng: inout PRNG) -> [EncodedFrame] {
    var frames: [EncodedFrame] = []
    noteCut(at: capturedAt)
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

  private mutating func noteCut(at now: Instant) {
    guard let cuts else { return }
    let due = cutsAt ?? now + cuts
    cutsAt = due
    guard now >= due else { return }
    cutsAt = due + cuts
    for index in layers.indices {
      layers[index].isAfterCut = true
      layers[index].references.restartWithBase()
    }
  }

  /// The size in bytes of a layer's next frame; nil if the frame is dropped.
  private mutating func nextSize(of index: Int, _ prng: inout PRNG) -> Int? {
    var layer = layers[index]
    defer { layers[index] = layer }
    guard !layer.leavesOutNext else {
      layer.references.skip()
      return nil
    }
    let frameSeconds = 1 / Double(Self.framesPerSecond)
    layer.level = min(layer.level + frameSeconds * layer.shareOfFrame, Layer.highestLevel)
    let isKeyframe = layer.references.needsKeyframe
    guard isKeyframe || layer.level >= 0 else {
      layer.references.skip()
      return nil
    }
    let content = 1 + Self.contentDeviation * (2 * prng.unit() - 1)
    let share =
      if isKeyframe {
        Self.keyframeFrames
      } else if layer.isAfterCut {
        Self.cutFrames
      } else {
        Self.temporalFrames[Int(layer.references.nextTemporalLayer)] * Self.correction(layer.level)
      }
    layer.isAfterCut = false
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

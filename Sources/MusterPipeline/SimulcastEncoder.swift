import MusterBase
import MusterCodecs
import MusterDevices
import MusterMedia
import MusterWire

/// The encoders of one video stream, one for each layer of its format that is needed. Used by one
/// thread.
struct SimulcastEncoder {
  /// What to do with a captured frame.
  struct Work {
    /// All layers that are being encoded, smallest first.
    var targets: [EncoderTarget]
    /// Those of which this frame is encoded.
    var due: [EncoderTarget]
    /// The layers whose frame must be a keyframe.
    var keyframes: Set<Int>
  }

  private var format: VideoFormat?
  private var layers: [VideoLayer] = []
  private var encoders: [VP8Encoder?] = []
  private var cuts = CutDetector()

  /// Sets the format that is offered. With other layers than before all encoders go, so that the
  /// next frame of each is a keyframe; frames of another size are scaled.
  mutating func setFormat(_ format: VideoFormat) {
    guard format != self.format else { return }
    self.format = format
    let layers = format.layers
    guard layers != self.layers else { return }
    self.layers = layers
    release()
  }

  /// Frees all encoders; the next frame of each layer is a keyframe.
  mutating func release() { encoders = [VP8Encoder?](repeating: nil, count: layers.count) }

  /// Encodes one frame in all layers that are due, largest first.
  mutating func encode(
    _ captured: CapturedFrame, _ work: Work, deliver: (EncodedFrame) -> Void
  ) throws(CodecError) {
    for layer in layers.indices where !work.targets.contains(where: { $0.layer == layer }) {
      encoders[layer] = nil  // frees the memory of an unused encoder
    }
    // Those whose turn it is not yet make up for it with their next frame.
    if cuts.isCut(captured.frame) { for encoder in encoders { encoder?.noteCut() } }
    let smallest = work.due.first?.layer ?? 0
    // Largest layer first, because each smaller frame is scaled from the next larger one.
    var frame = captured.frame
    for layer in layers.indices.reversed() where layer >= smallest {
      frame = try Self.scaled(frame, to: layers[layer].size)
      guard let target = work.due.first(where: { $0.layer == layer }) else { continue }
      let former = encoders[layer].flatMap {
        $0.temporalLayers == target.temporalLayers ? $0 : nil
      }
      let encoder: VP8Encoder
      if let former { encoder = former } else { encoder = try makeEncoder(target) }
      encoders[layer] = encoder
      encoder.setBitrate(target.kilobitsPerSecond)
      encoder.setQuick(target.isQuick)
      guard
        let encoded = try encoder.encode(
          frame, at: captured.capturedAt,
          forceKeyframe: former == nil || work.keyframes.contains(layer))
      else { continue }
      deliver(
        EncodedFrame(
          data: encoded.data, isKeyframe: encoded.isKeyframe, layer: layer,
          temporalLayer: encoded.temporalLayer, isReference: encoded.isReference,
          capturedAt: captured.capturedAt))
    }
  }

  private func makeEncoder(_ target: EncoderTarget) throws(CodecError) -> VP8Encoder {
    let layer = layers[target.layer]
    return try VP8Encoder(
      size: layer.size, framesPerSecond: layer.framesPerSecond,
      kilobitsPerSecond: target.kilobitsPerSecond, temporalLayers: target.temporalLayers)
  }

  private static func scaled(
    _ frame: I420Frame, to size: VideoSize
  ) throws(CodecError) -> I420Frame {
    guard frame.size != size else { return frame }
    let target = I420Frame(size: size)
    guard PixelConversion.scale(frame, into: target) else {
      throw CodecError("cannot scale \(frame.size) to \(size)")
    }
    return target
  }
}

extension VideoFormat {
  /// The layers in which a source of this format is offered, smallest first.
  package var layers: [VideoLayer] {
    LayerLadder.sizes(for: size).map { VideoLayer(size: $0, framesPerSecond: framesPerSecond) }
  }
}

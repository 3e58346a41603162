import MusterBase
import MusterWire

/// A node's camera, encoders and microphone: frames with the references of a real encoder and
/// tokens instead of pictures.
public struct SyntheticSource: Sendable {
  public static let framesPerSecond = 5
  static let ladder = [
    VideoSize(width: 160, height: 90), VideoSize(width: 320, height: 180),
    VideoSize(width: 640, height: 360),
  ]
  /// The temporal layers of four frames, as the encoder's pattern has them.
  static let pattern: [UInt8] = [0, 2, 1, 2]

  /// One encoder.
  private struct Stream: Sendable {
    var serial: UInt32 = 0
    var position = 0
    /// The last frame of the base layer, and the last of layer 1 since then; 0 for none.
    var base: UInt32 = 0
    var golden: UInt32 = 0
    var needsKeyframe = true
  }

  private let sender: UInt8
  private let run: UInt8
  private var streams = Array(repeating: Stream(), count: Limits.spatialLayers)
  private var encoded: [Int] = []
  private var audioSerial: UInt32 = 0

  /// On offer, smallest first.
  public private(set) var layers: [VideoLayer] = []

  public init(sender: UInt8, run: UInt8, layers count: Int) {
    self.sender = sender
    self.run = run
    setLayers(count)
  }

  /// Offers the smallest `count` of the ladder.
  public mutating func setLayers(_ count: Int) {
    layers = Self.ladder.prefix(count).map {
      VideoLayer(size: $0, framesPerSecond: Self.framesPerSecond)
    }
  }

  /// Encodes exactly these layers from now on; one that was not begins with a keyframe.
  public mutating func encode(_ wanted: [Int]) {
    for layer in wanted where !encoded.contains(layer) && streams.indices.contains(layer) {
      streams[layer].needsKeyframe = true
    }
    encoded = wanted
  }

  /// Makes the layer's next frame a keyframe.
  public mutating func requestKeyframe(_ layer: Int) {
    if streams.indices.contains(layer) { streams[layer].needsKeyframe = true }
  }

  /// One video frame, encoded in every requested layer.
  public mutating func frames(capturedAt: Instant, _ prng: inout PRNG) -> [EncodedFrame] {
    var frames: [EncodedFrame] = []
    for layer in encoded where layers.indices.contains(layer) {
      frames.append(frame(of: layer, capturedAt, &prng))
    }
    return frames
  }

  /// One audio packet.
  public mutating func audio(capturedAt: Instant, level: UInt8) -> EncodedAudio {
    audioSerial += 1
    let token = AudioToken(sender: sender, run: run, serial: audioSerial)
    return EncodedAudio(data: token.packet, level: level, capturedAt: capturedAt)
  }

  private mutating func frame(
    of layer: Int, _ capturedAt: Instant, _ prng: inout PRNG
  ) -> EncodedFrame {
    let token = nextToken(layer)
    // Mostly one packet, keyframes two or three.
    let bytes = token.isKeyframe ? 1200 + prng.below(1400) : 100 + prng.below(300)
    return EncodedFrame(
      data: token.frame(size: layers[layer].size, bytes: bytes), isKeyframe: token.isKeyframe,
      layer: layer, temporalLayer: Int(token.temporalLayer), isReference: token.temporalLayer < 2,
      capturedAt: capturedAt)
  }

  private mutating func nextToken(_ layer: Int) -> FrameToken {
    var stream = streams[layer]
    defer { streams[layer] = stream }
    stream.serial += 1
    var token = FrameToken(
      sender: sender, run: run, layer: UInt8(layer), temporalLayer: 0, serial: stream.serial,
      base: 0, golden: 0)
    if stream.needsKeyframe {
      stream = Stream(serial: stream.serial, base: stream.serial, needsKeyframe: false)
      return token
    }
    stream.position = (stream.position + 1) % Self.pattern.count
    token.temporalLayer = Self.pattern[stream.position]
    token.base = stream.base
    switch token.temporalLayer {
    case 0: (stream.base, stream.golden) = (stream.serial, 0)
    case 1: stream.golden = stream.serial
    default: token.golden = stream.golden
    }
    return token
  }
}

import MusterBase
import MusterWire

/// A synthetic camera, screen and microphone with encoders. Frames have the references of a real
/// encoder, and tokens as content.
public struct SyntheticSource: Sendable {
  /// The frame rate of every layer of every stream, in hertz.
  public static let framesPerSecond = SyntheticStream.framesPerSecond

  private let sender: UInt8
  private let run: UInt8
  private var streams: [SyntheticStream]
  private var audioSerial: UInt32 = 0
  private var encodesLongPackets = false
  /// The frames of the next long packet.
  private var longPacketFrames: [[UInt8]] = []

  /// Offers `count` layers of the camera and `screen` layers of the screen.
  public init(sender: UInt8, run: UInt8, layers count: Int, screen: Int = 0) {
    self.sender = sender
    self.run = run
    streams = StreamID.all.map { SyntheticStream($0, sender: sender, run: run) }
    setLayers(count)
    setLayers(screen, of: .screen)
  }

  /// The offered layers of a stream, smallest first.
  public func layers(of stream: StreamID = .camera) -> [VideoLayer] { streams[stream.index].layers }

  /// The offers of the sender, one for each stream with at least one layer.
  public var offers: [StreamOffer] {
    streams.filter { !$0.layers.isEmpty }.map { StreamOffer($0.id, layers: $0.layers) }
  }

  /// Offers the smallest `count` layers of `SyntheticStream.ladder`.
  public mutating func setLayers(_ count: Int, of stream: StreamID = .camera) {
    streams[stream.index].setLayers(count)
  }

  /// Encodes exactly these layers from now on; newly encoded layers start with a keyframe.
  public mutating func encode(_ wanted: [Int], of stream: StreamID = .camera) {
    streams[stream.index].encode(wanted)
  }

  /// Makes the layer's next frame a keyframe.
  public mutating func requestKeyframe(_ layer: Int, of stream: StreamID = .camera) {
    streams[stream.index].requestKeyframe(layer)
  }

  /// The next video frame, encoded in every offered layer that `encode` selected.
  public mutating func frames(
    of stream: StreamID = .camera, capturedAt: Instant, _ prng: inout PRNG
  ) -> [EncodedFrame] {
    streams[stream.index].frames(capturedAt: capturedAt, &prng)
  }

  /// Begins or stops to encode long packets of audio.
  public mutating func encodeLongPackets(_ areNeeded: Bool) {
    if areNeeded != encodesLongPackets { longPacketFrames = [] }
    encodesLongPackets = areNeeded
  }

  /// The next frame of audio; `level` is in -dBov (RFC 6464).
  public mutating func audio(capturedAt: Instant, level: UInt8) -> EncodedAudio {
    audioSerial += 1
    let token = AudioToken(sender: sender, run: run, serial: audioSerial)
    var audio = EncodedAudio(data: token.packet, level: level, capturedAt: capturedAt)
    guard encodesLongPackets else { return audio }
    longPacketFrames.append(token.longPacketFrame)
    if longPacketFrames.count == EncodedAudio.framesPerLongPacket {
      audio.longPacket = .init(data: longPacketFrames.flatMap { $0 }, level: level)
      longPacketFrames = []
    }
    return audio
  }
}

/// One video stream of a node, with an encoder for each layer.
struct SyntheticStream: Sendable {
  static let framesPerSecond = 5
  static let ladder = [
    VideoSize(width: 160, height: 90), VideoSize(width: 320, height: 180),
    VideoSize(width: 640, height: 360),
  ]
  let id: StreamID
  private let sender: UInt8
  private let run: UInt8
  private var encoders = Array(repeating: FrameReferences(), count: Limits.spatialLayers)
  private var encoded: [Int] = []
  private(set) var layers: [VideoLayer] = []

  init(_ id: StreamID, sender: UInt8, run: UInt8) {
    self.id = id
    self.sender = sender
    self.run = run
  }

  mutating func setLayers(_ count: Int) {
    layers = Self.ladder.prefix(count).map {
      VideoLayer(size: $0, framesPerSecond: Self.framesPerSecond)
    }
  }

  mutating func encode(_ wanted: [Int]) {
    for layer in wanted where !encoded.contains(layer) { requestKeyframe(layer) }
    encoded = wanted
  }

  mutating func requestKeyframe(_ layer: Int) {
    if encoders.indices.contains(layer) { encoders[layer].needsKeyframe = true }
  }

  /// The next video frame, encoded in every offered layer that `encode` selected.
  mutating func frames(capturedAt: Instant, _ prng: inout PRNG) -> [EncodedFrame] {
    var frames: [EncodedFrame] = []
    for layer in encoded where layers.indices.contains(layer) {
      frames.append(frame(of: layer, capturedAt, &prng))
    }
    return frames
  }

  private mutating func frame(
    of layer: Int, _ capturedAt: Instant, _ prng: inout PRNG
  ) -> EncodedFrame {
    let token = encoders[layer].next(sender: sender, run: run, stream: id, layer: layer)
    // Most frames fit into one packet; keyframes need two or three.
    let bytes = token.isKeyframe ? 1200 + prng.below(1400) : 100 + prng.below(300)
    return EncodedFrame(
      data: token.frame(size: layers[layer].size, bytes: bytes), isKeyframe: token.isKeyframe,
      layer: layer, temporalLayer: Int(token.temporalLayer), isReference: token.temporalLayer < 2,
      capturedAt: capturedAt)
  }
}

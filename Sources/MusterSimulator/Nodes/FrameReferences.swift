import MusterBase

/// The temporal layers and references of one encoder's frames, as those of a real encoder
/// (`TemporalPattern`), expressed as tokens.
struct FrameReferences: Sendable {
  /// The temporal layers in the pattern of four frames.
  static let pattern: [UInt8] = [0, 2, 1, 2]

  /// Whether the next frame must be a keyframe.
  var needsKeyframe = true
  private var serial: UInt32 = 0
  private var position = 0
  /// The serial numbers of the last base-layer frame and of the last layer 1 frame since then; 0
  /// for none.
  private var base: UInt32 = 0
  private var golden: UInt32 = 0

  /// The temporal layer of the next frame, unless that is a keyframe.
  var nextTemporalLayer: UInt8 { Self.pattern[(position + 1) % Self.pattern.count] }

  /// The token of the next frame, which is encoded.
  mutating func next(sender: UInt8, run: UInt8, stream: StreamID, layer: Int) -> FrameToken {
    serial += 1
    var token = FrameToken(
      sender: sender, run: run, stream: stream.number, layer: UInt8(layer), temporalLayer: 0,
      serial: serial, base: 0, golden: 0)
    if needsKeyframe {
      (needsKeyframe, position, base, golden) = (false, 0, serial, 0)
      return token
    }
    position = (position + 1) % Self.pattern.count
    token.temporalLayer = Self.pattern[position]
    token.base = base
    switch token.temporalLayer {
    case 0: (base, golden) = (serial, 0)
    case 1: golden = serial
    default: token.golden = golden
    }
    return token
  }

  /// Begins a pattern with the next frame, so that it is one of the base layer.
  mutating func restartWithBase() { position = Self.pattern.count - 1 }

  /// Skips the next frame, which the rate control drops: an enhancement frame is lost, a base frame
  /// is retried with the next picture.
  mutating func skip() {
    if nextTemporalLayer != 0 { position = (position + 1) % Self.pattern.count }
  }
}

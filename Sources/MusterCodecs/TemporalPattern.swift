/// The temporal layer and the reference buffers of each frame.
///
/// A cycle has four frames, of layers 0, 2, 1, 2. These rules make layers droppable per receiver:
///
/// - layer 0 predicts from LAST and updates LAST, and no other layer updates LAST;
/// - layer 1 predicts from LAST and updates GOLDEN;
/// - layer 2 predicts from LAST, and from GOLDEN if layer 1 updated it since the last base frame,
///   and updates nothing.
///
/// So no enhancement frame is referenced across a base frame, and a receiver can switch to any
/// layer after the next base frame. Enhancement frames do not update the entropy contexts either;
/// otherwise dropping one would change how later frames decode.
struct TemporalPattern {
  struct Step: Equatable {
    let layer: Int
    let reads: Buffers
    let updates: Buffers
    let isReference: Bool
  }

  struct Buffers: OptionSet {
    let rawValue: Int
    static let last = Buffers(rawValue: 1)
    static let golden = Buffers(rawValue: 2)
  }

  /// Cumulative shares of the bitrate in percent, between libwebrtc's two splits 40/60/100 and
  /// 60/80/100 (`simulcast_rate_allocator.cc`). All layers build on the base, so bits there pay
  /// most: measured at 640x360 and 1 Mbit/s, 38.9 dB with the first, 39.4 dB with this, 39.6 dB
  /// with the last. With the last, however, dropping the highest layer would save a slow receiver
  /// only a fifth.
  static let cumulativePercent = [50, 70, 100]
  /// Layer n and those below have one frame in this many.
  static let decimators = [4, 2, 1]
  static let layers = [0, 2, 1, 2]

  private var position = 0
  private var goldenIsFresh = false

  /// Layer, references and updates of the next frame.
  var next: Step {
    switch position {
    case 0: Step(layer: 0, reads: .last, updates: .last, isReference: true)
    case 2: Step(layer: 1, reads: .last, updates: .golden, isReference: true)
    default:
      Step(
        layer: 2, reads: goldenIsFresh ? [.last, .golden] : .last, updates: [],
        isReference: false)
    }
  }

  /// The encoder produced the frame.
  mutating func advance() {
    if position == 0 { goldenIsFresh = false }
    if position == 2 { goldenIsFresh = true }
    position = (position + 1) % Self.layers.count
  }

  /// The rate control dropped the frame. A dropped base frame is retried with the next captured
  /// one; a dropped enhancement frame is skipped.
  mutating func skip() {
    if position != 0 { position = (position + 1) % Self.layers.count }
  }

  /// The encoder produced a keyframe, which is a base frame and fills all buffers.
  mutating func restart() {
    position = 1
    goldenIsFresh = false
  }
}

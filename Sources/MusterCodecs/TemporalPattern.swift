/// Which temporal layer each frame belongs to and which reference buffers it may touch.
///
/// Four frames a cycle: 0, 2, 1, 2. What makes layers droppable for one receiver and not another:
///
/// - layer 0 predicts from LAST and updates LAST, and nothing else ever updates LAST;
/// - layer 1 predicts from LAST and updates GOLDEN;
/// - layer 2 predicts from LAST, and from GOLDEN when layer 1 filled it since the last base frame,
///   and updates nothing.
///
/// So no enhancement frame is used across a base frame, and a receiver may rejoin any layer after
/// the next base frame. Enhancement frames do not carry entropy contexts on either, else a dropped
/// one would change what later ones mean.
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
  /// 60/80/100 (`simulcast_rate_allocator.cc`). Everything builds on the base, so bits there pay
  /// most: measured at 640x360 and 1 Mbit/s 38.9 dB with the first, 39.4 with this, 39.6 with the
  /// last; but then the highest layer would save a slow receiver only a fifth.
  static let cumulativePercent = [50, 70, 100]
  /// Layer n has one frame in so many.
  static let decimators = [4, 2, 1]
  static let layers = [0, 2, 1, 2]

  private var position = 0
  private var goldenIsFresh = false

  /// What the next frame is.
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

  /// The frame came out of the encoder.
  mutating func advance() {
    if position == 0 { goldenIsFresh = false }
    if position == 2 { goldenIsFresh = true }
    position = (position + 1) % Self.layers.count
  }

  /// The encoder left the frame out to keep its bitrate. A base frame left out is tried again with
  /// the next picture; an enhancement frame is simply absent.
  mutating func skip() {
    if position != 0 { position = (position + 1) % Self.layers.count }
  }

  /// A keyframe came out: it is a base frame, and every buffer holds it.
  mutating func restart() {
    position = 1
    goldenIsFresh = false
  }
}

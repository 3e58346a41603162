import MusterBase

/// The cyclic assignment of temporal layers and reference buffers to frames.
///
/// A cycle of all three layers has four frames, of layers 0, 2, 1, 2; of two layers two, and of the
/// base layer alone one. These rules make layers droppable per receiver:
///
/// - layer 0 predicts from LAST and updates LAST, and no other layer updates LAST;
/// - layer 1 predicts from LAST and updates GOLDEN;
/// - layer 2 predicts from LAST, and from GOLDEN if layer 1 updated it since the last base frame,
///   and updates nothing;
/// - nothing predicts from the highest layer that is encoded, and it updates nothing.
///
/// No enhancement frame is referenced across a base frame, so a receiver can switch to any layer
/// after the next base frame. Enhancement frames do not update the entropy contexts either;
/// otherwise, later frames would decode differently after an enhancement frame was dropped.
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

  /// The layer of each frame of the cycle.
  let cycle: [Int]

  private var position = 0
  private var goldenIsFresh = false

  /// The pattern of `count` layers, 1 to 3.
  init(layers count: Int = TemporalLayers.count) {
    cycle = [0, 2, 1, 2].filter { $0 < count }
  }

  /// The next frame's temporal layer, and the buffers that it references and updates.
  var next: Step {
    switch cycle[position] {
    case 0: Step(layer: 0, reads: .last, updates: .last, isReference: true)
    case 1 where cycle.contains(2):
      Step(layer: 1, reads: .last, updates: .golden, isReference: true)
    case 1: Step(layer: 1, reads: .last, updates: [], isReference: false)
    default:
      Step(
        layer: 2, reads: goldenIsFresh ? [.last, .golden] : .last, updates: [],
        isReference: false)
    }
  }

  /// Advances the cycle after the encoder has produced the frame described by `next`.
  mutating func advance() {
    if cycle[position] == 0 { goldenIsFresh = false }
    if cycle[position] == 1 { goldenIsFresh = true }
    position = (position + 1) % cycle.count
  }

  /// Advances the cycle after the rate control has dropped the frame described by `next`. A dropped
  /// base frame is retried with the next captured frame; a dropped enhancement frame is skipped.
  mutating func skip() {
    if cycle[position] != 0 { position = (position + 1) % cycle.count }
  }

  /// Begins a cycle with the next frame, so that it is one of the base layer.
  mutating func restartWithBase() { position = 0 }

  /// Restarts the cycle after a keyframe, which is a base frame and updates all buffers.
  mutating func restart() {
    position = 1 % cycle.count
    goldenIsFresh = false
  }
}

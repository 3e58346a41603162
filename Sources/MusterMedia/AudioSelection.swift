import MusterBase

/// Selects the members whose audio is decoded and mixed: the loudest few, by the audio levels of
/// their packets, so that the cost of playout does not grow with the number of members.
public struct AudioSelection<ID: Comparable & Sendable>: Sendable {
  /// The number of members that are selected. Nobody follows more voices at once; Jitsi mixes three
  /// as well.
  public static var limit: Int { 3 }
  /// The fall of a member's loudness after its loudest frame, in dB per frame: 25 dB/s, so that a
  /// speaker stays selected between words.
  private static var decay: Double { 0.5 }
  /// The advantage in dB of selected members, so that two equally loud members do not
  /// alternate.
  private static var advantage: Double { 6 }

  /// The loudness of each member in dB above silence.
  private var loudness = PeerTable<ID, Double>()
  private var selected: [ID] = []

  /// Creates a selection of nobody.
  public init() {}

  /// Takes the level in -dBov of each member's loudest frame that waits for playout, or nil for
  /// none, once for each frame of 20 ms; returns for each whether it is selected. Other members are
  /// forgotten.
  public mutating func update(_ members: [(id: ID, level: UInt8?)]) -> [Bool] {
    var current = PeerTable<ID, Double>()
    for (id, level) in members {
      let waiting = level.map { 127 - Double(min($0, 127)) } ?? 0
      current[id] = max(waiting, (loudness[id] ?? 0) - Self.decay)
    }
    loudness = current
    let ranked = current.map { id, loudness in
      (id: id, rank: loudness + (selected.contains(id) ? Self.advantage : 0))
    }.sorted { ($1.rank, $0.id) < ($0.rank, $1.id) }
    selected = ranked.prefix(Self.limit).map(\.id)
    return members.map { selected.contains($0.id) }
  }
}

import MusterBase

/// Counters of one sender's frames of audio, by outcome.
public struct AudioStatistics: Equatable, Sendable {
  /// Frames received, duplicates included.
  public var received: UInt64 = 0
  /// Frames played.
  public var played: UInt64 = 0
  /// Frames that were not there at their playout time in spite of retransmissions and copies,
  /// including those recovered by FEC, and frames that were there, but were dropped unplayed.
  public var lost: UInt64 = 0
  /// Frames concealed by the decoder.
  public var concealed: UInt64 = 0
  /// Lost frames recovered from the in-band FEC of the next one.
  public var recovered: UInt64 = 0
  /// Frames that arrived after their playout time, and duplicates.
  public var late: UInt64 = 0
  /// Frames dropped unplayed: without payload, beyond the buffer's capacity, to reduce the delay,
  /// or because the sender restarted.
  public var discarded: UInt64 = 0
  /// Frames removed to reduce the delay: two frames are cross-faded into the time of one.
  public var shortened: UInt64 = 0
  /// Frames inserted to increase the delay.
  public var lengthened: UInt64 = 0

  /// Creates counters that are all zero.
  public init() {}

  /// The share of the sender's frames, in percent, that was not played. What FEC recovers counts as
  /// missing: it is of less quality, and not in packets of silence (86 % of speech has it).
  public var lostPercent: Double {
    let total = played + lost
    return total == 0 ? 0 : 100 * Double(lost) / Double(total)
  }
}

extension AudioStatistics: CounterSet {
  public var counted: [(name: String, value: UInt64)] {
    [
      ("received", received),
      ("played", played),
      ("lost", lost),
      ("concealed", concealed),
      ("recovered", recovered),
      ("late", late),
      ("discarded", discarded),
      ("shortened", shortened),
      ("lengthened", lengthened),
    ]
  }
}

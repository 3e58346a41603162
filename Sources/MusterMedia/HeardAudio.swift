import MusterBase

/// The audio of one participant over a whole call, with the gaps in which it could not be reached.
/// The statistics of the jitter buffer begin anew after each gap.
public struct HeardAudio: Sendable {
  /// The statistics of the media since the last gap.
  public private(set) var statistics = AudioStatistics()

  /// The frames played and missed before the last gap, and those missed in it.
  private var playedBefore: UInt64 = 0
  private var lostBefore: UInt64 = 0
  /// The time at which the last frame was played, as far as the reports show.
  private var playedAt: Instant?
  /// The time since which nothing can be heard although the participant has not left; nil while the
  /// media are there.
  private var missingSince: Instant?

  /// Nothing has been heard.
  public init() {}

  /// Takes a report of the playout.
  public mutating func report(_ newest: AudioStatistics, at now: Instant) {
    if newest.received < statistics.received { endGap(at: now) }
    if newest.played != statistics.played { playedAt = now }
    statistics = newest
  }

  private mutating func endGap(at now: Instant) {
    playedBefore &+= statistics.played
    lostBefore &+= statistics.lost
    if let missingSince {
      let frames = (now - missingSince).wholeNanoseconds / AudioJitterBuffer.frame.wholeNanoseconds
      lostBefore &+= UInt64(max(frames, 0))
    }
    missingSince = nil
  }

  /// Notes that the participant can no longer be reached.
  public mutating func interrupted() { missingSince = playedAt }

  /// Notes that there is nothing to be heard at present, since the participant is muted.
  public mutating func silenced() { missingSince = nil }

  /// The share of the participant's frames, in percent, that was not played
  /// (`AudioStatistics.lostPercent`).
  public var lostPercent: Double {
    var all = statistics
    all.played &+= playedBefore
    all.lost &+= lostBefore
    return all.lostPercent
  }
}

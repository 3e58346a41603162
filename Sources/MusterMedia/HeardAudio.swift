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
  /// The totals of two moments in the last seconds, the older one first.
  private var marks: [(at: Instant, played: UInt64, lost: UInt64)] = []
  /// The time since which nothing can be heard although the participant has not left; nil while the
  /// media are there.
  private var missingSince: Instant?
  /// Whether the participant says that it sends no audio.
  private var isSilent = false
  /// Whether the participant cannot be reached.
  public private(set) var isInterrupted = false

  /// The least and half of the most time that is recent.
  private static let recent = Duration.seconds(2.5)

  /// Nothing has been heard.
  public init() {}

  /// Takes a report of the playout.
  public mutating func report(_ newest: AudioStatistics, at now: Instant) {
    if newest.received < statistics.received { endGap(at: now) }
    if newest.played != statistics.played { playedAt = now }
    statistics = newest
    guard marks.last.map({ now - $0.at >= Self.recent }) ?? true else { return }
    let all = totals
    marks = marks.suffix(1) + [(now, all.played, all.lost)]
  }

  private mutating func endGap(at now: Instant) {
    playedBefore &+= statistics.played
    lostBefore &+= statistics.lost
    if let missingSince {
      let frames = (now - missingSince).wholeNanoseconds / AudioJitterBuffer.frame.wholeNanoseconds
      lostBefore &+= UInt64(max(frames, 0))
    }
    (missingSince, isInterrupted) = (nil, false)
  }

  /// Notes that the participant can no longer be reached.
  public mutating func interrupted() {
    isInterrupted = true
    if !isSilent { missingSince = playedAt }
  }

  /// Notes whether the participant says that it sends no audio.
  public mutating func set(isSilent: Bool) {
    self.isSilent = isSilent
    if isSilent { missingSince = nil }
  }

  /// The share of the participant's frames, in percent, that was not played
  /// (`AudioStatistics.lostPercent`).
  public var lostPercent: Double { totals.lostPercent }

  /// The same for the last seconds, at most five, in which there was audio.
  public var recentLostPercent: Double {
    var recent = totals
    recent.played &-= marks.first?.played ?? 0
    recent.lost &-= marks.first?.lost ?? 0
    return recent.lostPercent
  }

  /// The statistics over all gaps.
  private var totals: AudioStatistics {
    var all = statistics
    all.played &+= playedBefore
    all.lost &+= lostBefore
    return all
  }
}

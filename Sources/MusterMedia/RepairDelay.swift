import MusterBase

/// The time for which video waits so that frames whose packets had to be retransmitted are shown
/// when they are due, rather than in a freeze of a round trip after each loss.
///
/// As in libwebrtc (`jitter_estimator.cc`, `kNackLimit`) it is about one round trip, and only where
/// packets keep being lost. It is the least round trip of late, since a queue that loses packets
/// should not delay what passes it even more.
struct RepairDelay: Sendable {
  /// The number of losses within a time from which on video waits for repairs, and the time without
  /// any after which it no longer does.
  static let losses = 3
  static let interval = Duration.seconds(10)
  static let memory = Duration.seconds(20)
  /// The time until a loss is noticed: that of the next frame, if it was a frame's last packet, and
  /// that of packets in another order.
  static let notice = VideoReceiver.defaultInterval + NackList.reorderedTime
  /// The period of the least round trip, and of the fastest frame.
  static let roundTripPeriod = Duration.seconds(10)
  static let transitPeriod = Duration.seconds(2)
  /// The time by which audio may be ahead of video (ITU-R BT.1359-1, limit of acceptability).
  static let audioLead = Duration.milliseconds(90)
  /// The delay from mouth to ear that audio does not exceed for that (ITU-T G.114).
  static let mouthToEar = Duration.milliseconds(400)

  private var lostAt = RingBuffer<Instant>(capacity: losses)
  private var endsAt: Instant?
  private var roundTrips = PeriodMinimum<Duration>(period: roundTripPeriod)
  private var transits = PeriodMinimum<Duration>(period: transitPeriod)

  /// Records that a packet that had been requested has completed a frame, which took this time from
  /// its capture. If it is not as late as a repair makes it, the packet was merely overtaken.
  mutating func repaired(transit: Duration, roundTrip: Duration, at now: Instant) {
    guard let fastest = transits.value, transit - fastest >= roundTrip / 2 else { return }
    lost(at: now)
  }

  /// Records that a frame was delivered after packets that are lost.
  mutating func lost(at now: Instant) {
    lostAt.append(now)
    guard lostAt.isFull, let first = lostAt.first, now - first <= Self.interval else { return }
    endsAt = now + Self.memory
  }

  /// Takes the time from a frame's capture to its completion, which needs no common clock, and the
  /// round trip.
  mutating func update(transit: Duration, roundTrip: Duration, at now: Instant) {
    transits.add(transit, at: now)
    roundTrips.add(roundTrip, at: now)
  }

  /// The time within which most losses are repaired; nil where video does not wait for repairs.
  func cover(at now: Instant) -> Duration? {
    guard let endsAt, now < endsAt, let roundTrip = roundTrips.value else { return nil }
    return min(roundTrip + Self.notice, LipSync.maximumDelay)
  }

  /// The time from a frame's capture to its display on the clocks of the transits; nil where video
  /// does not wait for repairs.
  func latency(at now: Instant) -> Duration? {
    guard let cover = cover(at: now), let fastest = transits.value else { return nil }
    return fastest + cover
  }

  /// The delay that audio needs in order not to be far ahead of the video.
  func neededAudioDelay(at now: Instant) -> Duration {
    guard let cover = cover(at: now), let roundTrip = roundTrips.value else { return .zero }
    return max(min(cover - Self.audioLead, Self.mouthToEar - roundTrip / 2), .zero)
  }
}

import MusterBase

extension AudioJitterBuffer {
  /// Returns one frame for the next 20 ms, or two to reduce the delay: both must then be compressed
  /// into that time.
  public mutating func next(at now: Instant) -> [Playout] {
    if !isPlaying { startIfReady(at: now) }
    guard isPlaying else { return [.silence] }
    framesSinceCorrection = min(framesSinceCorrection + 1, Self.starvedFrames)
    if waitsForRepair(at: now) { return [starve()] }
    skipWhatIsOver()
    guard let first = frames.first, let expected = nextFrame else { return [starve()] }
    guard first.number == expected else { return [replaceMissing(before: first)] }
    let waited = waitingTime(of: first, at: now)
    // After a gap, playing the first frame at once would soon empty the buffer again, so playout
    // waits for half the target delay (NetEq `decision_logic.cc`, postpone decoding after expand).
    if starved > 0, waited < targetDelay.wholeNanoseconds / 2 { return [starve()] }
    measure(waited)
    if shouldLengthen(first) { return [lengthen()] }
    return play(at: now)
  }

  mutating func stopPlaying() {
    isPlaying = false
    (starved, concealedInARow, framesSinceCorrection, delay) = (0, 0, 0, 0)
  }

  private mutating func startIfReady(at now: Instant) {
    guard let first = frames.first else { return }
    let waited = waitingTime(of: first, at: now)
    // Calls are 20 ms apart. With this tolerance of half a frame, playout starts up to 10 ms early
    // or late, but on time on average.
    guard waited >= (targetDelay - Self.shortage).wholeNanoseconds else { return }
    isPlaying = true
    skip(to: first.number)
    delay = waited
  }

  /// The time in nanoseconds since the frame would have arrived with the fastest transit time,
  /// clamped to ±10 s.
  private func waitingTime(of frame: Frame, at now: Instant) -> Int64 {
    let waited = now.nanoseconds &- frame.mediaTime &- arrival.fastest
    return min(max(waited, -10_000_000_000), 10_000_000_000)
  }

  /// Whether to wait for the retransmission of the next frame.
  private mutating func waitsForRepair(at now: Instant) -> Bool {
    let deadline = repairDeadline
    let isInTime = deadline.map { now < $0 } ?? false
    if awaitsRepair, deadline != nil, !isInTime { isRepaired = false }
    awaitsRepair = isRepaired && isInTime
    return awaitsRepair
  }

  /// The time until which the next frame may be retransmitted; nil if it is here, or has not been
  /// noticed to be missing.
  private var repairDeadline: Instant? {
    guard let repairTime, let nextFrame, let first = frames.first, first.number > nextFrame,
      first.number - nextFrame <= Self.restartDistance
    else { return nil }
    return frames.lazy.map(\.arrivedAt).min().map { $0 + repairTime }
  }

  /// Skips the missing frames that concealment has already covered, and gaps too long to conceal.
  private mutating func skipWhatIsOver() {
    guard let first = frames.first, let expected = nextFrame else { return }
    let hole = first.number - expected
    guard hole > 0 else { return }
    let skipped = hole > Self.restartDistance ? hole : min(hole, Int64(starved))
    starved = max(0, starved - Int(min(skipped, Int64(starved))))
    skip(to: expected + skipped)
  }

  /// Conceals a frame while the next one cannot be played yet. The position does not advance,
  /// because the missing frame may merely be late.
  private mutating func starve() -> Playout {
    starved += 1
    if starved > Self.starvedFrames {
      stopPlaying()
      return .silence
    }
    return makeUp()
  }

  private mutating func makeUp() -> Playout {
    concealedInARow += 1
    guard concealedInARow <= Self.concealedFrames else { return .silence }
    statistics.concealed &+= 1
    return .conceal
  }

  private mutating func replaceMissing(before first: Frame) -> Playout {
    let expected = first.number - 1 == nextFrame
    nextFrame = nextFrame.map { $0 + 1 }
    playingTimestamp = playingTimestamp.map { $0 &+ AudioTimestamps.samplesPerFrame }
    statistics.lost &+= 1
    guard expected else { return makeUp() }
    statistics.recovered &+= 1
    return .recover(from: first.payload)
  }

  private mutating func measure(_ waited: Int64) {
    // After a gap, a new measurement replaces the smoothed delay.
    delay = starved > 0 ? waited : delay + (waited - delay) / 16
    starved = 0
    concealedInARow = 0
  }

  private mutating func play(at now: Instant) -> [Playout] {
    discardIfHopeless(at: now)
    var result = [takeFirst()].compactMap { $0 }
    if shouldShorten(), let second = takeFirst() {
      result.append(second)
      statistics.shortened &+= 1
      corrected(by: .zero - Self.frame)
    }
    return result.isEmpty ? [starve()] : result
  }

  private mutating func takeFirst() -> Playout? {
    guard let first = frames.first else { return nil }
    frames.removeFirst()
    nextFrame = first.number + 1
    playingTimestamp = first.timestamp
    statistics.played &+= 1
    return .decode(first.payload, level: first.level)
  }

  private func shouldLengthen(_ frame: Frame) -> Bool {
    let shortage = targetDelay - currentDelay
    return shortage >= Self.shortage
      && mayCorrect(frame, isUrgent: shortage >= Self.urgentShortage)
  }

  private mutating func lengthen() -> Playout {
    statistics.lengthened &+= 1
    corrected(by: Self.frame)
    concealedInARow = 0
    return makeUp()
  }

  private func shouldShorten() -> Bool {
    guard let second = frames.first, second.number == nextFrame else { return false }
    let excess = currentDelay - targetDelay
    return excess >= Self.excess && mayCorrect(second, isUrgent: excess >= Self.urgentExcess)
  }

  private func mayCorrect(_ frame: Frame, isUrgent: Bool) -> Bool {
    let isQuiet = frame.level.map { $0 >= Self.quietLevel } ?? false
    guard isQuiet || isUrgent else { return false }
    return framesSinceCorrection >= (isQuiet ? Self.quietPause : Self.loudPause)
  }

  private mutating func corrected(by change: Duration) {
    delay += change.wholeNanoseconds
    framesSinceCorrection = 0
  }

  /// Drops frames to reach the target delay at once, if the excess is too large to be reduced
  /// frame by frame.
  private mutating func discardIfHopeless(at now: Instant) {
    guard currentDelay - targetDelay > Self.hopelessExcess else { return }
    let target = targetDelay.wholeNanoseconds
    while frames.count > 1, let first = frames.first, waitingTime(of: first, at: now) > target {
      frames.removeFirst()
      statistics.discarded &+= 1
    }
    guard let first = frames.first else { return }
    skip(to: first.number)
    delay = waitingTime(of: first, at: now)
  }
}

import MusterBase
import MusterCore
import MusterMedia

/// Measures what one participant receives of another, and plays the audio.
struct FlowMeter: Sendable {
  /// The time from the joining of both to the begin of the measurement.
  static let settling = Duration.seconds(5)
  /// The end of a run over which flows are compared.
  static let fairTime = Duration.seconds(30)
  /// The end of a run in which the audio sent is not expected to be played any more.
  static let playoutMargin = Duration.seconds(1)
  /// The interval of the points of a drawing.
  static let interval = Duration.milliseconds(200)

  /// One point of a drawing.
  struct Point: Sendable {
    var bytes = 0
    var longestQueueing = Duration.zero
    var frames = 0
  }

  let joinedAt: Instant
  let end: Instant
  private(set) var points: [Point] = []
  private(set) var layerChanges = 0
  private var estimates: [FlowReport.Estimate] = []
  private var bytes = 0
  private var queueing: [Duration] = []
  private var firstFrameAt: Instant?
  private var frames = 0
  private var freezes: FreezeMeter
  private var size: VideoSize?
  private var buffer = AudioJitterBuffer()
  private var audioPlayed = 0
  private var audioSent = 0

  /// Measures from `settling` after `joinedAt` until `end`.
  init(joinedAt: Instant, end: Instant) {
    self.joinedAt = joinedAt
    self.end = end
    freezes = FreezeMeter(
      interval: .seconds(1) / EncoderModel.framesPerSecond, from: joinedAt + Self.settling)
  }

  private func isMeasured(_ now: Instant) -> Bool {
    joinedAt + Self.settling <= now && now < end
  }

  mutating func received(_ delivery: Network.Delivery, at now: Instant) {
    let size = delivery.datagram.count + Pipe.headerBytes
    note(at: now) {
      $0.bytes += size
      $0.longestQueueing = max($0.longestQueueing, delivery.queueing)
    }
    guard isMeasured(now) else { return }
    bytes += size
    queueing.append(delivery.queueing)
  }

  mutating func shown(size: VideoSize?, at now: Instant) {
    if firstFrameAt == nil { firstFrameAt = now }
    if let size { self.size = size }
    note(at: now) { $0.frames += 1 }
    guard isMeasured(now) else { return }
    frames += 1
    freezes.shown(at: now)
  }

  mutating func changedLayer(at now: Instant) {
    if isMeasured(now) { layerChanges += 1 }
  }

  mutating func estimated(kilobitsPerSecond: Double, at now: Instant) {
    guard isMeasured(now) else { return }
    estimates.append(.init(at: now - .zero, kilobitsPerSecond: kilobitsPerSecond))
  }

  private mutating func note(at now: Instant, _ body: (inout Point) -> Void) {
    let index = Int((now - .zero) / Self.interval)
    while points.count <= index { points.append(Point()) }
    body(&points[index])
  }

  // MARK: Audio

  /// Whether a packet that is captured now is expected to be played.
  private func expects(audioAt now: Instant) -> Bool {
    isMeasured(now) && now + Self.playoutMargin < end
  }

  mutating func sentAudio(at now: Instant) {
    if expects(audioAt: now) { audioSent += 1 }
  }

  mutating func received(_ audio: ReceivedAudio, at now: Instant) {
    buffer.repairTime = audio.repairTime
    buffer.leastDelay = audio.leastDelay
    buffer.insert(
      sequence: audio.sequence, timestamp: audio.timestamp,
      frames: AudioToken.frames(of: audio.payload), level: audio.level, at: now)
  }

  /// Plays the next 20 ms; returns the RTP timestamp that is playing. `captureTime` is the time at
  /// which the source captured the frame with this serial number.
  mutating func play(at now: Instant, captureTime: (UInt32) -> Instant) -> UInt32? {
    for case .decode(let packet, _) in buffer.next(at: now) {
      guard let token = AudioToken(packet), expects(audioAt: captureTime(token.serial)) else {
        continue
      }
      audioPlayed += 1
    }
    return buffer.playingTimestamp
  }

  // MARK: The report

  /// The report of the flow in a scenario, by the indices of both participants.
  mutating func report(
    in scenario: NetworkScenario, from sender: Int, to receiver: Int
  ) -> FlowReport {
    let start = joinedAt + Self.settling
    let seconds = (end - start).inSeconds
    freezes.end(at: end)
    queueing.sort()
    let hasVideo =
      scenario.participants[sender].video != nil && scenario.participants[receiver].watches
    let video = FlowReport.Video(
      firstFrameAfter: firstFrameAt.map { $0 - joinedAt }, frames: frames,
      framesCaptured: Int(seconds * Double(EncoderModel.framesPerSecond)),
      freezes: Int(freezes.freezes), frozen: freezes.frozen, longestFreeze: freezes.longest,
      layerChanges: layerChanges, size: size)
    return FlowReport(
      from: scenario.participants[sender].name, to: scenario.participants[receiver].name,
      kilobitsPerSecond: Double(bytes) * 8 / 1000 / seconds, lastKilobitsPerSecond: lastRate,
      availableKilobitsPerSecond: scenario.capacity(
        from: sender, to: receiver, between: start - .zero, and: end - .zero),
      estimates: estimates, queueingMedian: part(0.5), queueing95: part(0.95),
      video: hasVideo ? video : nil,
      audioLostPercent: audioSent == 0
        ? 0 : 100 * Double(audioSent - min(audioPlayed, audioSent)) / Double(audioSent))
  }

  /// The rate received over the last `fairTime`, in kbit/s.
  private var lastRate: Double {
    let from = Int(((end - .zero) - Self.fairTime) / Self.interval)
    let last = points.dropFirst(max(from, 0)).reduce(0) { $0 + $1.bytes }
    return Double(last) * 8 / 1000 / Self.fairTime.inSeconds
  }

  private func part(_ fraction: Double) -> Duration {
    guard let longest = queueing.last else { return .zero }
    let index = Int(Double(queueing.count) * fraction)
    return index < queueing.count ? queueing[index] : longest
  }
}

import MusterBase
import MusterWire

/// One layer of one sender as it arrives: what is missing, what is complete, what must be asked
/// for.
public struct LayerReceiver: Sendable {
  /// Before a first packet from the middle of a picture, so many are asked for, too: mostly it is
  /// only the first or the second packet of the first keyframe that got lost.
  static let leadIn: Int64 = 3
  /// Sequences this far behind are a sender that started afresh, if two follow each other.
  static let restartDistance = Int64(Limits.packetsInAssembly)
  /// A hole may be jumped once a first retransmission should have been here, and at the latest now.
  static let maximumPatience = Duration.milliseconds(100)
  /// A hole this old is beyond what retransmission mends in time for the next freeze to stay below
  /// half a second: a keyframe takes a round trip and up to 300 ms more.
  static let minimumKeyframePatience = Duration.milliseconds(250)
  /// A keyframe on its way gets so long (libwebrtc `video_receive_stream2.h`: 200 ms).
  static let minimumKeyframeArrival = Duration.milliseconds(200)
  /// Who sends nothing for this long has stopped; asking for a keyframe is no use.
  static let silence = Duration.seconds(1)

  public let ssrc: UInt32
  public let layer: Int
  public internal(set) var clock = SenderClock()
  public private(set) var statistics = RTPReceiverStatistics(
    clockRate: RTPTime.videoClockRate)
  /// When a packet last advanced the sequence.
  public private(set) var lastNewAt: Instant
  /// Whether something was missing since the last picture left.
  public private(set) var isTroubled = false

  private var sequences = SequenceUnwrapper()
  private var assembler = FrameAssembler()
  private var nacks = NackList()
  private var requester = KeyframeRequester()
  private var restartSequence: UInt16?
  /// Since when packets arrive that only a keyframe makes use of.
  private var waitingSince: Instant?
  private var keyframeBegunAt: Instant?

  public init(ssrc: UInt32, layer: Int, at now: Instant) {
    self.ssrc = ssrc
    self.layer = layer
    lastNewAt = now
  }

  /// Takes the place of another source of the same layer: a sender that changes its source with
  /// every packet is not asked for more keyframes than any other.
  public mutating func succeed(_ other: LayerReceiver) { requester = other.requester }

  public enum Arrival: Equatable, Sendable { case new, recovered, late, unusable }

  /// Takes in a packet; pictures that it completes come out of `nextFrame`.
  public mutating func insert(_ packet: RTPPacket, at now: Instant) -> Arrival {
    if isFarBehind(packet.header.sequence) {
      guard packet.header.sequence == restartSequence else {
        restartSequence = packet.header.sequence &+ 1
        return .late
      }
      forgetSequences()
    }
    restartSequence = nil
    let sequence = sequences.extended(packet.header.sequence)
    guard let parsed = VideoPacket(packet, sequence: sequence) else { return .unusable }
    let isNewest = noticeMissing(before: parsed, at: now)
    _ = sequences.unwrap(packet.header.sequence)
    let wasAskedFor = nacks.received(sequence)
    guard assembler.insert(parsed) else { return .late }
    statistics.receive(
      sequence: packet.header.sequence, timestamp: packet.header.timestamp,
      isRetransmission: wasAskedFor, at: now)
    if isNewest { lastNewAt = now }
    if assembler.isWaitingForKeyframe { noteWaiting(parsed, at: now) }
    return wasAskedFor ? .recovered : .new
  }

  /// The next picture that may leave now.
  public mutating func nextFrame(roundTrip: Duration, at now: Instant) -> AssembledFrame? {
    let mayJump = jumpAt(roundTrip: roundTrip).map { $0 <= now } ?? false
    guard let frame = assembler.next(mayJump: mayJump) else { return nil }
    nacks.drop(below: assembler.floor)
    isTroubled = !nacks.isEmpty
    waitingSince = nil
    keyframeBegunAt = nil
    if frame.isKeyframe { requester.satisfied() }
    return frame
  }

  /// What to ask for again; pictures behind a packet given up come out of `nextFrame` after this.
  public mutating func missing(roundTrip: Duration, at now: Instant) -> [UInt16] {
    guard !nacks.isEmpty, let highest = sequences.highest else { return [] }
    let (sequences, gaveUp) = nacks.due(highest: highest, roundTrip: roundTrip, at: now)
    if gaveUp { loseChain(at: now) }
    return sequences
  }

  /// Since when, or from when on, a keyframe has to be asked for; nil while all goes well.
  public func keyframeNeeded(roundTrip: Duration) -> Instant? {
    let patience = max(Self.minimumKeyframePatience, roundTrip * 3)
    guard assembler.isWaitingForKeyframe else { return nacks.oldestNoticedAt.map { $0 + patience } }
    guard let waitingSince else { return nil }
    if let keyframeBegunAt, assembler.holdsKeyframeStart {
      return keyframeBegunAt + max(Self.minimumKeyframeArrival, roundTrip * 3)
    }
    return nacks.isEmpty ? waitingSince : waitingSince + Self.patience(roundTrip: roundTrip)
  }

  /// When to send the next keyframe request; nil when none is needed, or nobody would answer it.
  public func keyframeRequestAt(roundTrip: Duration, at now: Instant) -> Instant? {
    guard let needed = keyframeNeeded(roundTrip: roundTrip) else { return nil }
    let due = requester.nextRequest(neededSince: needed, roundTrip: roundTrip)
    return max(due, now) - lastNewAt <= Self.silence ? due : nil
  }

  public mutating func keyframeRequested(at now: Instant) { requester.asked(at: now) }

  /// When a sink that needs a keyframe may ask for one.
  public func nextKeyframeRequest(roundTrip: Duration, at now: Instant) -> Instant {
    requester.nextRequest(neededSince: now, roundTrip: roundTrip)
  }

  /// Another layer took over: nothing received so far is of use any more.
  public mutating func retire() {
    assembler.restart(at: (sequences.highest ?? 0) + 1)
    nacks.removeAll()
    (waitingSince, keyframeBegunAt, isTroubled) = (nil, nil, false)
  }

  /// When to ask for a packet (again), or to jump a hole, without another packet arriving.
  public func repairDeadline(roundTrip: Duration, after now: Instant) -> Instant? {
    let jump = jumpAt(roundTrip: roundTrip).flatMap { $0 > now ? $0 : nil }
    return soonest(nacks.deadline, jump)
  }

  public mutating func receive(_ report: SenderReport, at now: Instant) {
    clock.update(report)
    statistics.receive(report, at: now)
  }

  public mutating func reportBlock(at now: Instant) -> ReportBlock {
    statistics.reportBlock(ssrc: ssrc, at: now)
  }

  public var packetsHeld: Int { assembler.packetCount }

  private static func patience(roundTrip: Duration) -> Duration {
    min(NackList.interval(roundTrip: roundTrip) + .milliseconds(10), maximumPatience)
  }

  private func jumpAt(roundTrip: Duration) -> Instant? {
    guard !assembler.isWaitingForKeyframe, let hole = nacks.oldestNoticedAt else { return nil }
    return hole + Self.patience(roundTrip: roundTrip)
  }

  private func isFarBehind(_ sequence: UInt16) -> Bool {
    guard let highest = sequences.highest else { return false }
    return highest - sequences.extended(sequence) > Self.restartDistance
  }

  private mutating func forgetSequences() {
    sequences = SequenceUnwrapper()
    assembler.restart(at: 0)
    nacks.removeAll()
    (waitingSince, keyframeBegunAt) = (nil, nil)
  }

  /// Notes the packets skipped over; true when this one is the newest so far.
  private mutating func noticeMissing(before packet: VideoPacket, at now: Instant) -> Bool {
    guard let highest = sequences.highest else {
      let first = packet.sequence - Self.leadIn
      assembler.restart(at: first)
      if !packet.isFrameStart { _ = nacks.notice(first..<packet.sequence, at: now) }
      return true
    }
    guard packet.sequence > highest else { return false }
    if packet.sequence > highest + 1 {
      isTroubled = true
      if !nacks.notice(highest + 1..<packet.sequence, at: now) {
        assembler.restart(at: packet.sequence)
        (waitingSince, keyframeBegunAt) = (nil, nil)
      }
    }
    return true
  }

  private mutating func noteWaiting(_ packet: VideoPacket, at now: Instant) {
    waitingSince = waitingSince ?? now
    if packet.startsKeyframe { keyframeBegunAt = now }
    if !assembler.holdsKeyframeStart { isTroubled = true }
  }

  private mutating func loseChain(at now: Instant) {
    assembler.loseChain()
    isTroubled = true
    if assembler.packetCount > 0 { waitingSince = waitingSince ?? now }
  }
}

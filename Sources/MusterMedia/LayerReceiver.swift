import MusterBase
import MusterWire

/// Receives one simulcast layer of one sender: frame assembly, NACKs and keyframe requests.
public struct LayerReceiver: Sendable {
  /// The number of packets requested before the first received packet if that packet does not start
  /// a frame: usually only the first or second packet of the first keyframe was lost.
  static let leadIn: Int64 = 3
  /// The distance behind the highest sequence number, in packets, beyond which two consecutive
  /// packets mean that the sender restarted.
  static let restartDistance = Int64(Limits.packetsInAssembly)
  /// The maximum time to wait at a gap before skipping it, unless frames wait for their display for
  /// longer. The wait is usually shorter: until the first retransmission should have arrived.
  static let maximumPatience = Duration.milliseconds(100)
  /// The minimum age of a gap that requires a keyframe. A longer wait would prolong the freeze, as
  /// the keyframe takes a round trip and up to 300 ms (`KeyframeLimiter`) more.
  static let minimumKeyframePatience = Duration.milliseconds(250)
  /// The silence and the number of missing packets from which a gap is an outage: it exceeds a
  /// sender's budget (`RetransmissionBudget`), so that only a keyframe helps.
  static let outage = Duration.milliseconds(333)
  static let outagePackets = 16
  /// The minimum time granted for the next packet of a keyframe that has partly arrived (libwebrtc
  /// `video_receive_stream2.h`).
  static let minimumKeyframeArrival = Duration.milliseconds(200)
  /// The silence after which a sender counts as stopped and receives no further requests.
  static let silence = Duration.seconds(1)

  /// The SSRC of the layer.
  public let ssrc: UInt32
  /// The spatial layer; 0 is the smallest.
  public let layer: Int
  /// The mapping from RTP timestamps to the sender's media clock.
  public internal(set) var clock = SenderClock()
  /// The loss and jitter for receiver reports.
  public private(set) var statistics = RTPReceiverStatistics(
    clockRate: RTPTime.videoClockRate)
  /// The time at which the highest sequence number last increased.
  public private(set) var lastNewAt: Instant
  /// Whether packets have been missing since the last delivered frame.
  public private(set) var isTroubled = false

  /// The time for which frames wait for their display so that lost packets are repaired meanwhile.
  var cover = Duration.zero
  /// The timestamp of the last frame that was shown; nil before the first.
  var shownTimestamp: UInt32?

  private var sequences = SequenceUnwrapper()
  private var assembler = FrameAssembler()
  private var nacks = NackList()
  private var requester = KeyframeRequester()
  private var restartSequence: UInt16?
  /// The arrival time of the first packet that cannot be used without a keyframe.
  private(set) var waitingSince: Instant?
  /// The keyframe of which packets arrive, and the arrival time of the last one.
  private var keyframe: (timestamp: UInt32, arrivedAt: Instant)?

  /// Creates a receiver for one SSRC, which waits for a keyframe.
  public init(ssrc: UInt32, layer: Int, at now: Instant) {
    self.ssrc = ssrc
    self.layer = layer
    lastNewAt = now
  }

  /// Continues the keyframe pacing of the layer's former SSRC, so that a sender that changes its
  /// SSRC with every packet does not cause more requests.
  public mutating func succeed(_ other: LayerReceiver) { requester = other.requester }

  /// The outcome of inserting a packet; `late` includes duplicates.
  public enum Arrival: Equatable, Sendable { case new, recovered, late, unusable }

  /// Inserts a packet; `nextFrame` delivers the frames that it completes.
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
    noteKeyframe(parsed, at: now)
    if assembler.isWaitingForKeyframe { noteWaiting(at: now) }
    return wasAskedFor ? .recovered : .new
  }

  /// Returns the next deliverable frame; nil if there is none.
  public mutating func nextFrame(roundTrip: Duration, at now: Instant) -> AssembledFrame? {
    let mayJump = jumpAt(roundTrip: roundTrip).map { $0 <= now } ?? false
    guard let frame = assembler.next(mayJump: mayJump) else { return nil }
    nacks.drop(below: assembler.floor)
    isTroubled = !nacks.isEmpty
    (waitingSince, keyframe) = (nil, nil)
    if frame.isKeyframe { requester.satisfied() }
    return frame
  }

  /// Returns the sequence numbers to request now. Once a packet has been abandoned, `nextFrame` can
  /// deliver a later keyframe.
  public mutating func missing(roundTrip: Duration, at now: Instant) -> [UInt16] {
    guard !nacks.isEmpty, let highest = sequences.highest else { return [] }
    let (sequences, gaveUp) = nacks.due(highest: highest, roundTrip: roundTrip, at: now)
    if gaveUp { loseChain(at: now) }
    return sequences
  }

  /// The past or future time from which a keyframe is needed; nil if none is needed.
  public func keyframeNeeded(roundTrip: Duration) -> Instant? {
    var needed: Instant?
    if !assembler.isWaitingForKeyframe {
      needed = nacks.oldestNoticedAt.map { $0 + Self.keyframePatience(roundTrip: roundTrip) }
    } else if let waitingSince {
      needed = nacks.isEmpty ? waitingSince : waitingSince + patience(roundTrip: roundTrip)
    }
    guard let needed, let keyframe, assembler.holdsKeyframeStart else { return needed }
    return max(needed, keyframe.arrivedAt + max(Self.minimumKeyframeArrival, roundTrip * 3))
  }

  /// The time of the next keyframe request; nil if none is needed or the sender is silent.
  public func keyframeRequestAt(roundTrip: Duration, at now: Instant) -> Instant? {
    guard let needed = keyframeNeeded(roundTrip: roundTrip) else { return nil }
    let due = requester.nextRequest(neededSince: needed, roundTrip: roundTrip)
    return max(due, now) - lastNewAt <= Self.silence ? due : nil
  }

  /// Records a keyframe request.
  public mutating func keyframeRequested(at now: Instant) { requester.asked(at: now) }

  /// The earliest time of a keyframe request for a sink, by the same pacing as for losses.
  public func nextKeyframeRequest(roundTrip: Duration, at now: Instant) -> Instant {
    requester.nextRequest(neededSince: now, roundTrip: roundTrip)
  }

  /// Discards all packets received so far, because another layer has become active.
  public mutating func retire() {
    assembler.restart(at: (sequences.highest ?? 0) + 1)
    nacks.removeAll()
    (waitingSince, keyframe, isTroubled) = (nil, nil, false)
  }

  /// The time at which to repeat a NACK or skip a gap if no further packet arrives.
  public func repairDeadline(roundTrip: Duration, after now: Instant) -> Instant? {
    let jump = jumpAt(roundTrip: roundTrip).flatMap { $0 > now ? $0 : nil }
    return soonest(nacks.deadline, jump)
  }

  /// Handles a sender report.
  public mutating func receive(_ report: SenderReport, at now: Instant) {
    clock.update(report)
    statistics.receive(report, at: now)
  }

  /// Creates a report block, whose fraction lost covers the interval since the previous one.
  public mutating func reportBlock(at now: Instant) -> ReportBlock {
    statistics.reportBlock(ssrc: ssrc, at: now)
  }

  /// The number of packets that wait for missing packets.
  public var packetsHeld: Int { assembler.packetCount }

  /// The age of a gap that requires a keyframe.
  static func keyframePatience(roundTrip: Duration) -> Duration {
    max(minimumKeyframePatience, roundTrip * 3)
  }

  private func patience(roundTrip: Duration) -> Duration {
    min(
      NackList.interval(roundTrip: roundTrip) + .milliseconds(10),
      max(Self.maximumPatience, cover))
  }

  private func jumpAt(roundTrip: Duration) -> Instant? {
    guard !assembler.isWaitingForKeyframe, let hole = nacks.oldestNoticedAt else { return nil }
    return hole + patience(roundTrip: roundTrip)
  }

  private func isFarBehind(_ sequence: UInt16) -> Bool {
    guard let highest = sequences.highest else { return false }
    return highest - sequences.extended(sequence) > Self.restartDistance
  }

  private mutating func forgetSequences() {
    sequences = SequenceUnwrapper()
    assembler.restart(at: 0)
    nacks.removeAll()
    (waitingSince, keyframe) = (nil, nil)
  }

  /// Records the gap before a packet; true if the packet has the highest sequence number so far.
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
      let missing = highest + 1..<packet.sequence
      let isOutage = missing.count >= Self.outagePackets && now - lastNewAt >= Self.outage
      if isOutage { nacks.removeAll() }
      if isOutage || !nacks.notice(missing, at: now) {
        assembler.restart(at: packet.sequence)
        (waitingSince, keyframe) = (nil, nil)
      }
    }
    return true
  }

  private mutating func noteKeyframe(_ packet: VideoPacket, at now: Instant) {
    if packet.startsKeyframe || packet.timestamp == keyframe?.timestamp {
      keyframe = (packet.timestamp, now)
    }
  }

  private mutating func noteWaiting(at now: Instant) {
    waitingSince = waitingSince ?? now
    if !assembler.holdsKeyframeStart { isTroubled = true }
  }

  private mutating func loseChain(at now: Instant) {
    assembler.loseChain()
    isTroubled = true
    if assembler.packetCount > 0 { waitingSince = waitingSince ?? now }
  }
}

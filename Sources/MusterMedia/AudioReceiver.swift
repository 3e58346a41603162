import MusterBase
import MusterWire

/// The reception of one sender's audio: loss and jitter, the sender's clock, and the requests for
/// missing packets. The jitter buffer belongs to the playout.
public struct AudioReceiver: Sendable {
  /// The time from noticing a loss within which the packet must arrive. The jitter buffer grows by
  /// it at most; a longer delay would impair a conversation more than the loss does (a transit of
  /// more than 400 ms is unacceptable, ITU-T G.114).
  static let patience = Duration.milliseconds(200)
  /// The largest gap that is repaired, in packets; most of a longer one would come too late.
  static let longestGap = 32
  /// The time for which it is known that a packet was missing: what arrives later is too late, and
  /// what was requested is a retransmission.
  static let memory = Duration.seconds(1)

  /// The time from noticing a loss after which playout no longer waits for a retransmission: that
  /// of two requests if they are made, otherwise of one, and of one frame, by which the playout may
  /// be early; nil if no request is made.
  public static func repairTime(roundTrip: Duration) -> Duration? {
    let two = timeOfTwoRequests(roundTrip: roundTrip)
    let last = two <= patience ? two : NackList.reorderedTime + roundTrip
    return last <= patience ? last + AudioJitterBuffer.frame : nil
  }

  /// The time from noticing a loss until the answer to the second request.
  static func timeOfTwoRequests(roundTrip: Duration) -> Duration {
    NackList.reorderedTime + NackList.interval(roundTrip: roundTrip) + roundTrip
  }

  /// The synchronisation source of the audio.
  public let ssrc: UInt32
  /// The mapping from RTP timestamps to the sender's media clock.
  public private(set) var clock = SenderClock()

  private var statistics = RTPReceiverStatistics(clockRate: RTPTime.audioClockRate)
  private var sequences = SequenceUnwrapper()
  private var missing = NackList()

  /// Creates a receiver of one SSRC without packets so far.
  public init(ssrc: UInt32) { self.ssrc = ssrc }

  /// One Opus packet that has arrived, by itself or as a copy in a later one.
  public struct Arrival: Equatable, Sendable {
    /// The RTP sequence number.
    public var sequence: UInt16
    /// The RTP timestamp, at 48 kHz.
    public var timestamp: UInt32
    /// The audio level in -dBov (RFC 6464); nil for a copy, and without the header extension.
    public var level: UInt8?
    /// One Opus packet (RFC 7587).
    public var payload: ArraySlice<UInt8>
  }

  /// Handles a packet. Returns its Opus packet, after those that were missing and of which it has
  /// copies. Packets that have arrived before, in whatever way, do not come a second time, nor do
  /// those with a malformed payload.
  public mutating func receive(_ packet: RTPPacket, at now: Instant) -> [Arrival] {
    let header = packet.header
    guard header.payloadType == PayloadType.redundantAudio else {
      let isNew = receive(header, wait: NackList.reorderedTime, at: now)
      return isNew ? [Arrival(header, packet.payload)] : []
    }
    guard let redundant = try? RedundantAudio(decoding: packet.payload) else { return [] }
    // A copy of what is missing may be in one of the next packets.
    let wait = NackList.reorderedTime + AudioJitterBuffer.frame * (AudioSender.copyDistance - 1)
    let isNew = receive(header, wait: wait, at: now)
    let copies = redundant.copies.compactMap { arrival(of: $0, in: header) }
    return isNew ? copies + [Arrival(header, redundant.primary)] : copies
  }

  /// The packet that a copy replaces; nil if that is not missing.
  private mutating func arrival(
    of copy: RedundantAudio.Copy, in header: RTPHeader
  ) -> Arrival? {
    let (distance, rest) = copy.timestampOffset.quotientAndRemainder(
      dividingBy: UInt16(AudioTimestamps.samplesPerFrame))
    let sequence = header.sequence &- distance
    guard rest == 0, !copy.payload.isEmpty, missing.fill(sequences.extended(sequence)) else {
      return nil
    }
    return Arrival(
      sequence: sequence, timestamp: header.timestamp &- UInt32(copy.timestampOffset), level: nil,
      payload: copy.payload)
  }

  /// Records a packet; returns whether it has not arrived before. The first request for packets
  /// that it shows to be missing is made after `wait`.
  private mutating func receive(
    _ header: RTPHeader, wait: Duration, at now: Instant
  ) -> Bool {
    missing.drop(noticedBefore: now + (.zero - Self.memory))
    let sequence = continued(header.sequence)
    if let highest = sequences.highest, sequence > highest + 1 {
      let gap = highest + 1..<sequence
      if gap.count > Self.longestGap || !missing.notice(gap, wait: wait, at: now) {
        missing.removeAll()
      }
    }
    let isNewest = sequences.highest.map { sequence > $0 } ?? true
    _ = sequences.unwrap(header.sequence)
    statistics.receive(
      sequence: header.sequence, timestamp: header.timestamp,
      isRetransmission: missing.isRequested(sequence), at: now)
    return isNewest || missing.fill(sequence)
  }

  /// The extended sequence number; the numbers begin anew if the sender restarted.
  private mutating func continued(_ sequence: UInt16) -> Int64 {
    let extended = sequences.extended(sequence)
    guard let highest = sequences.highest,
      highest - extended > AudioJitterBuffer.restartDistance
    else { return extended }
    sequences = SequenceUnwrapper()
    missing.removeAll()
    return sequences.extended(sequence)
  }

  /// Returns the sequence numbers to request now: those whose retransmission would still be played.
  public mutating func missing(roundTrip: Duration, at now: Instant) -> [UInt16] {
    guard let highest = sequences.highest else { return [] }
    return missing.due(
      highest: highest, roundTrip: roundTrip, patience: Self.patience, at: now
    ).sequences
  }

  /// The time at which `missing` next has sequence numbers; nil if no packets are missing.
  public var deadline: Instant? { missing.deadline }

  /// Handles a sender report.
  public mutating func receive(_ report: SenderReport, at now: Instant) {
    clock.update(report)
    statistics.receive(report, at: now)
  }

  /// Creates a report block, whose fraction lost covers the interval since the previous one.
  public mutating func reportBlock(at now: Instant) -> ReportBlock {
    statistics.reportBlock(ssrc: ssrc, at: now)
  }
}

extension AudioReceiver.Arrival {
  fileprivate init(_ header: RTPHeader, _ payload: ArraySlice<UInt8>) {
    self.init(
      sequence: header.sequence, timestamp: header.timestamp, level: header.audioLevel,
      payload: payload)
  }
}

import MusterBase
import MusterWire

/// The RTP state of one stream on one link: gapless sequence numbers, retransmission history, and
/// reception reports.
public struct RTPSender: Sendable {
  /// The maximum number of retransmissions of one packet. At a random loss of 30 %, all six copies
  /// are lost once in 1,400 packets; with three retransmissions (LiveKit `sequencer.go`) it is once
  /// in 120, and at 20 % still once in 600.
  static let maximumRepeats: UInt8 = 5
  /// The minimum interval between retransmissions of one packet, for very short round trips.
  static let minimumRepeat = Duration.milliseconds(5)
  /// The maximum number of packets that are resent at once after a change of path: 250 ms of a
  /// 2.5 Mbit/s layer.
  static let repeatBurst = 64
  /// The age up to which packets can be retransmitted, unless three round trips are longer
  /// (libwebrtc `rtp_packet_history.h`); older packets would miss their playout.
  static let minimumHistory = Duration.seconds(1)
  /// The longest accepted round trip; a longer value results from a forged or corrupt report.
  static let maximumRoundTrip = Duration.seconds(10)

  private struct Sent {
    var header: RTPHeader
    var payload: ArraySlice<UInt8>
    var sentAt: Instant
    var isBase: Bool
    var requestedAt: Instant?
    var repeatedAt: Instant?
    var repeats: UInt8 = 0
  }

  /// The RTP payload type of the stream.
  public let payloadType: UInt8
  /// The synchronisation source of the stream on this link.
  public let ssrc: UInt32
  /// The number of packets sent, modulo 2^32, excluding retransmissions.
  public private(set) var packets: UInt32 = 0
  /// The number of payload octets sent, modulo 2^32, for sender reports.
  public private(set) var octets: UInt32 = 0
  /// The number of retransmissions.
  public private(set) var packetsRepeated: UInt64 = 0
  /// The smoothed loss from the receiver's reports, in percent.
  public private(set) var lossPercent: Double = 0
  /// The smoothed round trip from the receiver's reports; nil before the first report.
  public private(set) var roundTrip: Duration?
  /// The receiver's interarrival jitter in timestamp units.
  public private(set) var jitter: UInt32 = 0

  /// The highest sequence number of the last report; nil before the first.
  private var reportedSequence: UInt32?
  private var nextSequence: UInt16
  private var history: RingBuffer<Sent>

  /// Creates a sender; `firstSequence` should be random (RFC 3550 section 5.1).
  public init(payloadType: UInt8, ssrc: UInt32, firstSequence: UInt16, historyCapacity: Int) {
    self.payloadType = payloadType
    self.ssrc = ssrc
    nextSequence = firstSequence
    history = RingBuffer(capacity: min(max(historyCapacity, 1), Limits.retransmissionPackets))
  }

  /// Returns the header for the next packet; keeps the packet for retransmission. `isBase` is
  /// whether it belongs to temporal layer 0; `payloadType` is that of the stream unless given.
  public mutating func send(
    _ payload: ArraySlice<UInt8>, marker: Bool, timestamp: UInt32, audioLevel: UInt8?,
    isBase: Bool = true, payloadType: UInt8? = nil, at now: Instant
  ) -> RTPHeader {
    let header = RTPHeader(
      marker: marker, payloadType: payloadType ?? self.payloadType, sequence: nextSequence,
      timestamp: timestamp,
      ssrc: ssrc, audioLevel: audioLevel)
    nextSequence &+= 1
    packets &+= 1
    octets &+= UInt32(truncatingIfNeeded: payload.count)
    history.append(Sent(header: header, payload: payload, sentAt: now, isBase: isBase))
    return header
  }

  /// Returns the packets to retransmit in response to a NACK, unchanged and within the budget, as
  /// far as they can still be shown.
  public mutating func retransmissions(
    of sequences: [UInt16], roundTrip: Duration, within budget: inout RetransmissionBudget,
    at now: Instant
  ) -> [(header: RTPHeader, payload: ArraySlice<UInt8>)] {
    let roundTrip = min(max(roundTrip, .zero), Self.maximumRoundTrip)
    let oldest = max(Self.minimumHistory, roundTrip * 3)
    // Once the keyframe has arrived that the receiver has requested instead, which takes about as
    // long again, a retransmission comes too late. The time counts from the first NACK: the age of
    // the packet includes the delay of a queue, of which the measured round trip may not know yet.
    let patience = LayerReceiver.keyframePatience(roundTrip: roundTrip) * 2
    let pause = max(Self.minimumRepeat, roundTrip)
    var result: [(header: RTPHeader, payload: ArraySlice<UInt8>)] = []
    for sequence in sequences.prefix(Limits.nackEntries) {
      guard let index = index(of: sequence) else { continue }
      let sent = history[index]
      let requestedAt = sent.requestedAt ?? now
      history[index].requestedAt = requestedAt
      guard now - sent.sentAt <= oldest, now - requestedAt <= patience,
        sent.repeats < Self.maximumRepeats
      else { continue }
      if let repeatedAt = sent.repeatedAt, now - repeatedAt < pause { continue }
      guard budget.take(sent.payload.count, isBase: sent.isBase, at: now) else { continue }
      result.append(repeated(index, at: now))
    }
    return result
  }

  /// Returns the packets sent since `start` that are still in the history, oldest first; at most
  /// the newest `repeatBurst`.
  mutating func repeats(
    since start: Instant, at now: Instant
  ) -> [(header: RTPHeader, payload: ArraySlice<UInt8>)] {
    (0..<history.count)
      .filter { history[$0].sentAt >= start && history[$0].repeats < Self.maximumRepeats }
      .suffix(Self.repeatBurst)
      .map { repeated($0, at: now) }
  }

  /// Notes that a packet or its retransmission waited for too long to be sent, and no longer is.
  public mutating func expired(_ sequence: UInt16) {
    if let index = index(of: sequence) { history[index].repeats = Self.maximumRepeats }
  }

  private mutating func repeated(
    _ index: Int, at now: Instant
  ) -> (header: RTPHeader, payload: ArraySlice<UInt8>) {
    history[index].repeatedAt = now
    history[index].repeats += 1
    packetsRepeated &+= 1
    return (history[index].header, history[index].payload)
  }

  /// Creates a sender report (RFC 3550 section 6.4.1); `timestamp` is `now` on the stream's RTP
  /// clock.
  public func report(at now: Instant, timestamp: UInt32) -> SenderReport {
    SenderReport(
      ssrc: ssrc, ntpTime: RTPTime.ntp(of: now), rtpTime: timestamp, packets: packets,
      octets: octets, reports: [])
  }

  /// Handles a report block; ignores blocks about other streams. Returns how many packets were
  /// expected since the block before, and how many of them were lost.
  @discardableResult
  public mutating func receive(
    _ block: ReportBlock, at now: Instant
  ) -> (expected: Int, lost: Int)? {
    guard block.ssrc == ssrc else { return nil }
    let expected = reportedSequence.map { min(block.highestSequence &- $0, packets) } ?? 0
    reportedSequence = block.highestSequence
    note(block, at: now)
    return (Int(expected), Int(expected) * Int(block.fractionLost) / 256)
  }

  private mutating func note(_ block: ReportBlock, at now: Instant) {
    jitter = block.jitter
    lossPercent += (Double(block.fractionLost) / 2.56 - lossPercent) / 2
    guard block.lastReport != 0 else { return }
    let elapsed = RTPTime.compact(RTPTime.ntp(of: now)) &- block.lastReport
    let units = Int64(Int32(bitPattern: elapsed &- block.delaySinceLastReport))
    let sample = Duration.nanoseconds((max(units, 0) * 1_000_000_000) >> 16)
    guard sample <= Self.maximumRoundTrip else { return }
    roundTrip = roundTrip.map { $0 + (sample - $0) / 4 } ?? sample
  }

  /// The index of a packet in the history, which has no gaps.
  private func index(of sequence: UInt16) -> Int? {
    guard let oldest = history.first else { return nil }
    let index = Int(sequence &- oldest.header.sequence)
    return index < history.count ? index : nil
  }
}

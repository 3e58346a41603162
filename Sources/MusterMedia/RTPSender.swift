import MusterBase
import MusterWire

/// One stream on one link: a sequence without gaps, what was sent lately, and what came back.
public struct RTPSender: Sendable {
  /// Sent packets are repeated for this long, or three round trips (libwebrtc
  /// `rtp_packet_history.h`); what is older, nobody waits for.
  static let minimumHistory = Duration.seconds(1)
  /// The smallest pause between two repeats of one packet, where the round trip is next to nothing.
  static let minimumRepeat = Duration.milliseconds(5)
  /// Repeats per 100 ms: a whole lost keyframe at once, then as much as a 2.5 Mbit/s layer at 10 %
  /// loss needs. More would feed the congestion that lost the packets (LiveKit PR 440, RTX storm).
  static let repeatBurst = 64.0
  static let repeatsPerSecond = 320.0
  /// A round trip beyond this is a forged or confused report.
  static let maximumRoundTrip = Duration.seconds(10)

  private struct Sent {
    var header: RTPHeader
    var payload: [UInt8]
    var sentAt: Instant
    var repeatedAt: Instant?
  }

  public let payloadType: UInt8
  public let ssrc: UInt32
  public private(set) var packets: UInt32 = 0
  public private(set) var octets: UInt32 = 0
  public private(set) var packetsRepeated: UInt64 = 0
  /// Of the packets of the last reports, smoothed.
  public private(set) var lossPercent: Double = 0
  public private(set) var roundTrip: Duration?
  /// As the receiver measures it.
  public private(set) var jitter: UInt32 = 0

  private var nextSequence: UInt16
  private var history: RingBuffer<Sent>
  private var repeatBudget = TokenBucket(capacity: repeatBurst, perSecond: repeatsPerSecond)

  public init(payloadType: UInt8, ssrc: UInt32, firstSequence: UInt16, historyCapacity: Int) {
    self.payloadType = payloadType
    self.ssrc = ssrc
    nextSequence = firstSequence
    history = RingBuffer(capacity: min(max(historyCapacity, 1), Limits.retransmissionPackets))
  }

  /// The header of the next packet, which is remembered for repeats.
  public mutating func send(
    _ payload: [UInt8], marker: Bool, timestamp: UInt32, audioLevel: UInt8?, at now: Instant
  ) -> RTPHeader {
    let header = RTPHeader(
      marker: marker, payloadType: payloadType, sequence: nextSequence, timestamp: timestamp,
      ssrc: ssrc, audioLevel: audioLevel)
    nextSequence &+= 1
    packets &+= 1
    octets &+= UInt32(truncatingIfNeeded: payload.count)
    history.append(Sent(header: header, payload: payload, sentAt: now, repeatedAt: nil))
    return header
  }

  /// What to send again of what the receiver misses, unchanged.
  public mutating func retransmissions(
    of sequences: [UInt16], roundTrip: Duration, at now: Instant
  ) -> [(header: RTPHeader, payload: [UInt8])] {
    let roundTrip = min(max(roundTrip, .zero), Self.maximumRoundTrip)
    let oldest = max(Self.minimumHistory, roundTrip * 3)
    // Three quarters: both ends estimate the round trip, and a repeat refused because this end's
    // estimate is the longer one would cost the receiver another whole round trip.
    let pause = max(Self.minimumRepeat, roundTrip * 3 / 4)
    var result: [(header: RTPHeader, payload: [UInt8])] = []
    for sequence in sequences.prefix(Limits.nackEntries) {
      guard let index = index(of: sequence) else { continue }
      let sent = history[index]
      guard now - sent.sentAt <= oldest else { continue }
      if let repeatedAt = sent.repeatedAt, now - repeatedAt < pause { continue }
      guard repeatBudget.take(at: now) else { break }
      history[index].repeatedAt = now
      packetsRepeated &+= 1
      result.append((sent.header, sent.payload))
    }
    return result
  }

  /// What was sent from `start` on and is still remembered, oldest first; of very much the newest,
  /// as many as may be repeated at once.
  public func sequences(since start: Instant) -> [UInt16] {
    (0..<history.count).filter { history[$0].sentAt >= start }
      .map { history[$0].header.sequence }.suffix(Int(Self.repeatBurst))
  }

  /// RFC 3550 6.4.1; `timestamp` is `now` on the stream's clock.
  public func report(at now: Instant, timestamp: UInt32) -> SenderReport {
    SenderReport(
      ssrc: ssrc, ntpTime: RTPTime.ntp(of: now), rtpTime: timestamp, packets: packets,
      octets: octets, reports: [])
  }

  public mutating func receive(_ block: ReportBlock, at now: Instant) {
    guard block.ssrc == ssrc else { return }
    jitter = block.jitter
    lossPercent += (Double(block.fractionLost) / 2.56 - lossPercent) / 2
    guard block.lastReport != 0 else { return }
    let elapsed = RTPTime.compact(RTPTime.ntp(of: now)) &- block.lastReport
    let units = Int64(Int32(bitPattern: elapsed &- block.delaySinceLastReport))
    let sample = Duration.nanoseconds((max(units, 0) * 1_000_000_000) >> 16)
    guard sample <= Self.maximumRoundTrip else { return }
    roundTrip = roundTrip.map { $0 + (sample - $0) / 4 } ?? sample
  }

  /// Sequences in the history are consecutive, so the place follows from the oldest.
  private func index(of sequence: UInt16) -> Int? {
    guard let oldest = history.first else { return nil }
    let index = Int(sequence &- oldest.header.sequence)
    return index < history.count ? index : nil
  }
}

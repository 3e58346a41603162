import MusterBase
import MusterWire

/// The loss and jitter of one received stream (RFC 3550 appendices A.1, A.3 and A.8).
public struct RTPReceiverStatistics: Equatable, Sendable {
  /// MAX_DROPOUT of appendix A.1: a larger jump is a restart if the next packet confirms it.
  static let maximumDropout: Int64 = 3000

  private let clockRate: Int
  private var sequences = SequenceUnwrapper()
  private var base: Int64 = 0
  private var received: Int64 = 0
  private var expectedPrior: Int64 = 0
  private var receivedPrior: Int64 = 0
  private var restartSequence: UInt16?
  /// The jitter in timestamp units, times sixteen as in appendix A.8.
  private var scaledJitter: Int64 = 0
  private var lastTransit: UInt32?
  private var lastReport: (compact: UInt32, at: Instant)?

  /// Creates statistics without packets; `clockRate` is that of the stream's RTP clock in Hz.
  public init(clockRate: Int) { self.clockRate = clockRate }

  /// Counts a packet. Retransmissions do not count towards loss and jitter, so that both describe
  /// the network before repair.
  public mutating func receive(
    sequence: UInt16, timestamp: UInt32, isRetransmission: Bool = false, at now: Instant
  ) {
    guard !isRetransmission, updateSequence(sequence) else { return }
    if sequences.highest == nil { base = sequences.extended(sequence) }
    base = min(base, sequences.unwrap(sequence))
    received &+= 1
    measureJitter(timestamp, at: now)
  }

  /// Records a sender report, for LSR and DLSR of the next report block.
  public mutating func receive(_ report: SenderReport, at now: Instant) {
    lastReport = (RTPTime.compact(report.ntpTime), now)
  }

  /// The number of packets expected minus the number received (RFC 3550 appendix A.3); negative if
  /// duplicates outnumber losses.
  public var cumulativeLost: Int64 { expected - received }

  /// The interarrival jitter (RFC 3550 section 6.4.1).
  public var jitter: Duration {
    .nanoseconds((scaledJitter >> 4) &* 1_000_000_000 / Int64(clockRate))
  }

  /// Whether any packet has arrived.
  public var hasReceived: Bool { sequences.highest != nil }

  /// Creates a report block, whose fraction lost covers the interval since the previous one.
  public mutating func reportBlock(ssrc: UInt32, at now: Instant) -> ReportBlock {
    let expectedNow = expected
    let expectedInterval = expectedNow - expectedPrior
    let lostInterval = expectedInterval - (received - receivedPrior)
    expectedPrior = expectedNow
    receivedPrior = received
    let fraction = expectedInterval > 0 ? (max(lostInterval, 0) << 8) / expectedInterval : 0
    return ReportBlock(
      ssrc: ssrc, fractionLost: UInt8(clamping: fraction),
      cumulativeLost: Int32(clamping: cumulativeLost),
      highestSequence: UInt32(truncatingIfNeeded: (sequences.highest ?? 0x1_0000) &- 0x1_0000),
      jitter: UInt32(clamping: scaledJitter >> 4), lastReport: lastReport?.compact ?? 0,
      delaySinceLastReport: delaySinceLastReport(at: now))
  }

  private var expected: Int64 { sequences.highest.map { $0 - base + 1 } ?? 0 }

  private func delaySinceLastReport(at now: Instant) -> UInt32 {
    guard let lastReport else { return 0 }
    let elapsed = max(0, (now - lastReport.at).wholeNanoseconds)
    let (seconds, rest) = elapsed.quotientAndRemainder(dividingBy: 1_000_000_000)
    return UInt32(clamping: (seconds << 16) + (rest << 16) / 1_000_000_000)
  }

  /// Returns whether a sequence number continues the stream (appendix A.1): a single packet far off
  /// is ignored, while two consecutive packets far off mean that the sender restarted.
  private mutating func updateSequence(_ sequence: UInt16) -> Bool {
    guard let highest = sequences.highest else { return true }
    let distance = sequences.extended(sequence) - highest
    if abs(distance) <= Self.maximumDropout {
      restartSequence = nil
      return true
    }
    if sequence == restartSequence {
      initSequence()
      return true
    }
    restartSequence = sequence &+ 1
    return false
  }

  private mutating func initSequence() {
    sequences = SequenceUnwrapper()
    (received, expectedPrior, receivedPrior) = (0, 0, 0)
    (restartSequence, lastTransit) = (nil, nil)
  }

  private mutating func measureJitter(_ timestamp: UInt32, at now: Instant) {
    let transit = RTPTime.timestamp(of: now, clockRate: clockRate) &- timestamp
    if let lastTransit {
      let difference = abs(Int64(Int32(bitPattern: transit &- lastTransit)))
      scaledJitter += difference - ((scaledJitter + 8) >> 4)
    }
    lastTransit = transit
  }

  public static func == (a: RTPReceiverStatistics, b: RTPReceiverStatistics) -> Bool {
    a.sequences == b.sequences && a.received == b.received && a.scaledJitter == b.scaledJitter
  }
}

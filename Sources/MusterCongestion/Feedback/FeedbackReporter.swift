import MusterBase
import MusterWire

/// The receiving end of congestion control: records the packets of one session, and reports their
/// arrivals to the sender.
public struct FeedbackReporter: HasDeadline, Sendable {
  /// The reporter's index of the session.
  public let session: UInt32

  private var log = ArrivalLog()
  private var schedule = FeedbackSchedule()
  private var growth = TransitGrowth()
  /// The overhead of the last packet that asked for feedback; a report is assumed to have the same.
  private var overhead = 0

  /// Creates the reporter of a session without packets.
  public init(session: UInt32) { self.session = session }

  /// Whether a payload asks for feedback: RTP and padding do. Feedback does not, since the two
  /// ends would then answer each other without end.
  public static func asks(_ payload: [UInt8]) -> Bool {
    switch PayloadKind(of: payload) {
    case .rtp: true
    case .keepalive: payload.count > 1
    case .control, .path, .relay, .feedback, .rtcp, nil: false
    }
  }

  /// Whether a payload that is to be sealed asks for feedback.
  public static func asks(_ payload: OutgoingPayload) -> Bool {
    switch payload.header {
    case .rtp: true
    case .bytes: false
    case .none: asks([UInt8](payload.body.prefix(2)))
    }
  }

  /// Records a packet with any payload, which is no replay; `overhead` is the number of bytes that
  /// the link and the network add to the payload, up to the IP packet. It arrived at `arrivedAt`:
  /// the time for which it then waited for this node is no queue of the path.
  public mutating func received(
    _ number: UInt64, _ payload: [UInt8], overhead: Int, arrivedAt: Instant, at now: Instant
  ) {
    let isGap = log.record(number, at: arrivedAt)
    guard Self.asks(payload) else { return }
    self.overhead = overhead
    let header = try? RTPPacket(decoding: payload).header
    schedule.asked(
      bytes: payload.count + overhead,
      isVideo: header.map { !PayloadType.isAudio($0.payloadType) } ?? true, at: now)
    let isGrowing = header.map { growth.add($0, at: arrivedAt) } ?? false
    if isGap || isGrowing { schedule.hurry() }
  }

  /// The time of the next report; nil if no packet asks for one.
  public var deadline: Instant? { schedule.deadline }

  /// The report that is due, or that may go now along with another's; nil if neither holds.
  public mutating func report(at now: Instant) -> [UInt8]? {
    guard schedule.allows(at: now), let feedback = log.report(of: session, at: now) else {
      return nil
    }
    let payload = feedback.encoded()
    schedule.reported(bytes: payload.count + overhead, at: now)
    growth.reported()
    return payload
  }
}

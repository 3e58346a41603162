import MusterBase

/// The reporters of one link: that of its session, and that of the session before, whose last
/// packets are still to be reported when the next one begins.
public struct LinkReporter: HasDeadline, Sendable {
  /// A link receives under its current and its previous session.
  private static let limit = 2

  /// Oldest first.
  private var reporters: [FeedbackReporter] = []

  /// Creates the reporter of a link without packets.
  public init() {}

  /// Records a packet of the session with this index; see `FeedbackReporter.received`. A session is
  /// reported on from its first packet that asks for feedback.
  public mutating func received(
    _ number: UInt64, _ payload: [UInt8], overhead: Int, of session: UInt32, arrivedAt: Instant,
    at now: Instant
  ) {
    var index = reporters.firstIndex { $0.session == session }
    if index == nil, FeedbackReporter.asks(payload) {
      if reporters.count == Self.limit { reporters.removeFirst() }
      reporters.append(FeedbackReporter(session: session))
      index = reporters.count - 1
    }
    if let index {
      reporters[index].received(
        number, payload, overhead: overhead, arrivedAt: arrivedAt, at: now)
    }
  }

  /// The time of the next report; nil if no packet asks for one.
  public var deadline: Instant? {
    var next: Instant?
    for index in reporters.indices { next = soonest(next, reporters[index].deadline) }
    return next
  }

  /// The reports that are due, or may go now along with another's; see `FeedbackReporter.report`.
  public mutating func reports(at now: Instant) -> [[UInt8]] {
    reporters.indices.compactMap { reporters[$0].report(at: now) }
  }
}

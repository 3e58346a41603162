import MusterBase
import MusterWire

/// The histories of one link: that of its session, and that of the session before, whose last
/// packets are reported when the next one has begun.
public struct LinkHistory: Sendable {
  /// A link seals under its current session; reports on the previous one are under way.
  private static let limit = 2

  /// Oldest first.
  private var histories: [(session: UInt32, history: SendHistory)] = []

  /// Creates the history of a link that has sent nothing.
  public init() {}

  /// Records a packet of the session with this index, which is the receiver's. `asks` says whether
  /// it asks for feedback; a session is recorded from the first such packet on, as its receiver
  /// does.
  public mutating func sent(
    _ number: UInt64, of session: UInt32, bytes: Int, asks: Bool, as serviceClass: ServiceClass,
    over route: Route, probe: ProbeCluster.ID? = nil, at now: Instant
  ) {
    var index = histories.firstIndex { $0.session == session }
    if index == nil, asks {
      if histories.count == Self.limit { histories.removeFirst() }
      histories.append((session, SendHistory()))
      index = histories.count - 1
    }
    if let index {
      histories[index].history.sent(
        number, bytes: bytes, as: serviceClass, over: route, probe: probe, at: now)
    }
  }

  /// Takes a report, which arrived at this time; see `SendHistory.reported`. One on another session
  /// says nothing.
  public mutating func reported(
    _ feedback: CongestionFeedback, at arrivedAt: Instant
  ) -> [PathReport] {
    guard let index = histories.firstIndex(where: { $0.session == feedback.session }) else {
      return []
    }
    return histories[index].history.reported(feedback, at: arrivedAt)
  }
}

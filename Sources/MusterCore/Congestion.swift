import MusterBase
import MusterCongestion
import MusterLink
import MusterWire

/// The congestion control of a node: for each link the reports on what its peer has sent.
struct Congestion: Sendable {
  /// An action that follows from the time.
  enum Output: Equatable, Sendable {
    /// Send a report to the peer.
    case send([UInt8], over: SessionLinkID)
  }

  private(set) var reporters = DeadlineTable<SessionLinkID, LinkReporter>()

  /// The time of the next report; nil if none is due.
  var deadline: Instant? { reporters.deadline }

  mutating func refreshDeadlines() { reporters.refresh() }

  /// Records a packet of a link in use.
  mutating func received(
    _ packet: ReceivedPacket, _ payload: [UInt8], on link: SessionLinkID, over route: Route,
    at now: Instant
  ) {
    guard packet.capabilities.contains(.congestionFeedback) else { return }
    if reporters.index(of: link) == nil { reporters[link] = LinkReporter() }
    _ = reporters.update(link) {
      $0.received(
        packet.number, payload, overhead: packet.bytes - payload.count + route.overheadBytes,
        of: packet.session, at: now)
    }
  }

  /// Forgets a link that is closed.
  mutating func closed(_ link: SessionLinkID) { reporters[link] = nil }

  /// Makes the reports that are due.
  mutating func tick(at now: Instant) -> [Output] {
    var out: [Output] = []
    for index in 0..<reporters.count {
      let isDue = reporters.read(at: index) { $0.deadline.map { $0 <= now } ?? false }
      guard isDue else { continue }
      let link = reporters.keys[index]
      for report in reporters.update(at: index, { $0.reports(at: now) }) {
        out.append(.send(report, over: link))
      }
    }
    return out
  }
}

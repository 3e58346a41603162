import MusterBase
import MusterCongestion
import MusterLink
import MusterWire

/// The congestion control of a node: for each link the reports on what its peer has sent, and the
/// history of what this node has; for each path the estimate.
///
/// The estimate is measured, and nothing follows from it yet.
struct Congestion: Sendable {
  /// An action that follows from the time.
  enum Output: Equatable, Sendable {
    /// Send a report to the peer.
    case send([UInt8], over: SessionLinkID)
  }

  /// A path, and the time of the last packet that asked for feedback on it.
  private struct Entry: Sendable {
    var controller = PathController()
    var usedAt: Instant
  }

  /// The paths to one peer; a peer with more addresses loses the one that was used least recently.
  private static let pathLimit = 8

  private(set) var reporters = DeadlineTable<SessionLinkID, LinkReporter>()
  private var histories = PeerTable<SessionLinkID, LinkHistory>()
  private var paths = PeerTable<PathID, Entry>()

  /// The time of the next report; nil if none is due.
  var deadline: Instant? { reporters.deadline }

  mutating func refreshDeadlines() { reporters.refresh() }

  /// The state of a path; nil if no packet that asks for feedback was sent over it.
  func path(_ id: PathID) -> PathController? { paths[id]?.controller }

  // MARK: Packets

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

  /// Records a sealed packet of a link.
  mutating func sent(
    _ packet: SealedDatagram, _ payload: OutgoingPayload, on link: SessionLinkID, at now: Instant
  ) {
    guard packet.capabilities.contains(.congestionFeedback) else { return }
    let asks = FeedbackReporter.asks(payload)
    let bytes = packet.datagram.count + packet.route.overheadBytes
    if histories.index(of: link) == nil, asks { histories[link] = LinkHistory() }
    _ = histories.update(link) {
      $0.sent(
        packet.packetNumber, of: packet.session, bytes: bytes, asks: asks, over: packet.route,
        at: now)
    }
    let path = PathID(peer: link.peer, route: packet.route)
    if asks, paths.index(of: path) == nil { addPath(path, at: now) }
    _ = paths.update(path) {
      $0.controller.sent(bytes: bytes, asks: asks, at: now)
      if asks { $0.usedAt = now }
    }
  }

  /// Takes a report of a peer. Returns the round trips that it shows.
  mutating func reported(
    _ payload: [UInt8], on link: SessionLinkID, at now: Instant
  ) -> [(path: PathID, roundTrip: Duration)] {
    guard let feedback = try? CongestionFeedback(decoding: payload) else { return [] }
    let reports = histories.update(link) { $0.reported(feedback, at: now) } ?? []
    return reports.compactMap { report in
      let path = PathID(peer: link.peer, route: report.route)
      _ = paths.update(path) { $0.controller.reported(report, at: now) }
      return report.roundTrip.map { (path, $0) }
    }
  }

  private mutating func addPath(_ path: PathID, at now: Instant) {
    let others = paths.keys.indices.filter { paths.keys[$0].peer == path.peer }
    if others.count == Self.pathLimit,
      let oldest = others.min(by: { paths[at: $0].usedAt < paths[at: $1].usedAt })
    {
      paths[paths.keys[oldest]] = nil
    }
    paths[path] = Entry(usedAt: now)
  }

  /// Forgets a link that is closed, and the paths to its peer with the last one.
  mutating func closed(_ link: SessionLinkID) {
    (reporters[link], histories[link]) = (nil, nil)
    guard !histories.keys.contains(where: { $0.peer == link.peer }) else { return }
    for path in paths.keys where path.peer == link.peer { paths[path] = nil }
  }

  /// Descriptions of violated invariants; `isOpen` tells whether a link exists.
  func checkInvariants(isOpen: (SessionLinkID) -> Bool) -> [String] {
    var found: [String] = []
    if !reporters.isConsistent { found.append("congestion control changed its deadline unnoticed") }
    for link in reporters.keys + histories.keys where !isOpen(link) {
      found.append("congestion control of a link with \(link.peer) that is gone")
    }
    for path in paths.keys {
      if !histories.keys.contains(where: { $0.peer == path.peer }) {
        found.append("an estimate of a path to \(path.peer), to whom no link leads")
      }
      if paths.keys.count(where: { $0.peer == path.peer }) > Self.pathLimit {
        found.append("too many estimates of paths to \(path.peer)")
      }
    }
    return found
  }

  // MARK: Time

  /// Makes the reports that are due, and those that may go along with them.
  mutating func tick(at now: Instant) -> [Output] {
    guard let deadline, deadline <= now else { return [] }
    var out: [Output] = []
    for index in 0..<reporters.count {
      let link = reporters.keys[index]
      for report in reporters.update(at: index, { $0.reports(at: now) }) {
        out.append(.send(report, over: link))
      }
    }
    return out
  }
}

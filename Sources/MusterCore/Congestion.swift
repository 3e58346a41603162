import MusterBase
import MusterCongestion
import MusterLink
import MusterWire

/// The congestion control of a node: for each link the reports on what its peer has sent, and the
/// history of what this node has; for each path the estimate, and the packets that wait for their
/// turn.
struct Congestion: Sendable {
  /// An action that follows from the time.
  enum Output: Equatable, Sendable {
    /// Send a report to the peer.
    case send([UInt8], over: SessionLinkID)
    /// Seal this packet and send it: its turn has come. It may be part of a probe.
    case release(QueuedPacket, probe: ProbeCluster.ID?)
    /// Send this padding for a probe.
    case pad([UInt8], over: SessionLinkID, probe: ProbeCluster.ID)
    /// The packet has waited for too long, and is not sent.
    case expired(QueuedPacket)
    /// Ask for a report on this path, if it is still used: more is wanted than it is believed to
    /// carry, or there was no report yet, and nothing is sent that would ask.
    case ask(PathID)
  }

  /// A path, and the time of the last packet that asked for feedback on it.
  struct Entry: HasDeadline, Sendable {
    var controller: PathController
    var pacer = Pacer<QueuedPacket>(
      estimate: PathController.start, initialWindow: initialWindow)
    /// The rate of the packets that do not wait.
    var unpaced = AverageRate(audioRate)
    var usedAt: Instant
    /// The time at which to ask for a report, if nothing else does.
    var asksAt: Instant
    /// The link that used the path last; padding is sent over it.
    var link: SessionLinkID

    /// The share of the uplink that its video gets; nil if the uplink is no limit.
    var uplinkShare: DataRate?
    /// The time of the last report.
    var reportedAt: Instant?
    /// Whether the path itself carries less than its share.
    var isNarrow = false
    /// The last time at which its queue grew.
    var grewAt: Instant?
    /// The time since which its packets have not queued.
    var flowsSince: Instant?
    /// Whether they do not even where those on other paths do: they take another uplink.
    var isApart = false
    var ownLimit = OwnLimit()

    var askDeadline: Instant? {
      controller.demand > controller.estimate || !pacer.isOpen ? asksAt : nil
    }
    var deadline: Instant? { soonest(pacer.deadline, askDeadline) }

    /// Sets the rate of the pacer.
    mutating func pace(at now: Instant) {
      let rate = controller.pacingRate
      let share = uplinkShare.map { $0 + unpaced.value(at: now) }
      pacer.set(rate: min(rate, share ?? rate), at: now)
    }
  }

  /// The paths to one peer; a peer with more addresses loses the one that was used least recently.
  private static let pathLimit = 8
  /// The time after which an estimate of a path that was not used means nothing.
  private static let staleAfter = Duration.seconds(10)
  /// The time after which a packet that still waits is not sent: its frame would come too late, and
  /// the frames after it, too.
  private static let longestWait = Duration.milliseconds(500)
  /// The bytes that leave at once before anything is known of a path, and all that leave until its
  /// first report: ten packets, as in TCP (RFC 6928), so that the first frame is not late.
  private static let initialWindow = 12_000
  /// The time without packets that ask for reports after which padding asks, such as where a path
  /// had no room even for stills, and there is no audio.
  private static let askInterval = Duration.seconds(3)
  /// The time for which a packet may wait for this node's CPU without counting as late. Beyond it
  /// the sender is to send less at once, as for a queue in the network: requests for less would
  /// come too late.
  private static let toleratedWait = Duration.milliseconds(250)
  /// The rate of audio in packets of 20 ms, and of reports on as much, before they are measured.
  private static let audioRate = DataRate(kbps: 70)

  private(set) var reporters = DeadlineTable<SessionLinkID, LinkReporter>()
  private var histories = PeerTable<SessionLinkID, LinkHistory>()
  var paths = DeadlineTable<PathID, Entry>()
  /// The pacer of what all paths share.
  var uplink = UplinkPacer()
  /// What the paths show of its rate.
  var uplinkEstimator = UplinkEstimator()
  /// The path whose turn is next, where the paths share an uplink.
  private var turn = 0

  /// The time of the next report or of the next packet that waits; nil if there is none.
  var deadline: Instant? {
    soonest(reporters.deadline, releaseDeadline)
  }

  private var releaseDeadline: Instant? {
    guard let first = paths.deadline, let opensAt = uplink.opensAt, first < opensAt else {
      return paths.deadline
    }
    return paths.keys.indices.reduce(opensAt) { soonest, index in
      paths.read(at: index) { $0.isApart ? min($0.deadline ?? soonest, soonest) : soonest }
    }
  }

  mutating func refreshDeadlines() {
    reporters.refresh()
    paths.refresh()
  }

  /// The state of a path; nil if no packet that asks for feedback was sent over it.
  func path(_ id: PathID) -> PathController? { paths[id]?.controller }

  /// The highest estimate of a path in use, or that with which paths begin.
  func bestEstimate(at now: Instant) -> DataRate {
    paths.keys.indices.reduce(PathController.start) { best, index in
      paths.read(at: index) {
        now - $0.usedAt > Self.staleAfter ? best : max(best, $0.controller.estimate)
      }
    }
  }

  /// The bandwidth that a path has for video; nil if it is not known. A share as large as that of
  /// the packets that are lost remains for their retransmissions.
  func videoBandwidth(on path: PathID, at now: Instant) -> DataRate? {
    guard let index = paths.index(of: path) else { return nil }
    return paths.read(at: index) {
      let spareRate = max($0.controller.estimate - $0.unpaced.value(at: now), .zero)
      return $0.controller.admitsVideo ? spareRate * (1 - $0.controller.lossWithoutQueue) : .zero
    }
  }

  /// Whether the first probes have yet to show what a path carries.
  func isStarting(_ path: PathID, at now: Instant) -> Bool {
    guard let index = paths.index(of: path) else { return false }
    return paths.read(at: index) { $0.controller.isStarting(at: now) }
  }

  /// Sets the rate of the video that a path could use.
  mutating func set(videoDemand: DataRate, on path: PathID, at now: Instant) {
    _ = paths.update(path) { $0.controller.demand = videoDemand + $0.unpaced.value(at: now) }
  }

  // MARK: Packets

  /// Begins to control a path before its first packet, so that the first video waits for its turn.
  /// The estimate of a path that was not used for a while is forgotten.
  mutating func begin(_ link: SessionLinkID, over route: Route, at now: Instant) {
    let path = PathID(peer: link.peer, route: route)
    if histories.index(of: link) == nil { histories[link] = LinkHistory() }
    if let index = paths.index(of: path) {
      guard paths.read(at: index, { now - $0.usedAt > Self.staleAfter && $0.pacer.deadline == nil })
      else { return }
      paths[path] = nil
    }
    addPath(path, for: link, at: now)
  }

  /// Records a packet of a link in use.
  mutating func received(
    _ packet: ReceivedPacket, _ payload: [UInt8], on link: SessionLinkID, over route: Route,
    at now: Instant
  ) {
    guard packet.capabilities.contains(.congestionFeedback) else { return }
    let arrivedAt = max(packet.arrivedAt, now + (.zero - Self.toleratedWait))
    if reporters.index(of: link) == nil { reporters[link] = LinkReporter() }
    _ = reporters.update(link) {
      $0.received(
        packet.number, payload, overhead: packet.bytes - payload.count + route.overheadBytes,
        of: packet.session, arrivedAt: arrivedAt, at: now)
    }
  }

  /// Records a sealed packet of a link, of the class with which it is sent; `isReleased` says that
  /// it has waited for its turn, and `probe` that it is part of a probe. Returns whether the
  /// estimate of its path falls, since reports are overdue.
  mutating func sent(
    _ packet: SealedDatagram, _ payload: OutgoingPayload, as serviceClass: ServiceClass,
    isReleased: Bool, probe: ProbeCluster.ID?, on link: SessionLinkID, at now: Instant
  ) -> Bool {
    let bytes = packet.datagram.count + packet.route.overheadBytes
    let path = PathID(peer: link.peer, route: packet.route)
    if !isApart(path) { uplink.sent(bytes: bytes, at: now) }
    guard packet.capabilities.contains(.congestionFeedback) else { return false }
    let asks = FeedbackReporter.asks(payload)
    if histories.index(of: link) == nil, asks { histories[link] = LinkHistory() }
    _ = histories.update(link) {
      $0.sent(
        packet.packetNumber, of: packet.session, bytes: bytes, asks: asks,
        as: serviceClass, over: packet.route, probe: probe, at: now)
    }
    if asks, paths.index(of: path) == nil { addPath(path, for: link, at: now) }
    return paths.update(path) {
      let falls = $0.controller.sent(bytes: bytes, asks: asks, at: now)
      if asks { ($0.usedAt, $0.asksAt, $0.link) = (now, now + Self.askInterval, link) }
      $0.pace(at: now)
      guard !isReleased else { return falls }
      $0.pacer.charge(bytes, at: now)
      $0.unpaced.add(bytes, at: now)
      return falls
    } ?? false
  }

  /// Takes a report of a peer, which arrived at this time. Returns the paths that it is about, and
  /// the round trips that it shows.
  mutating func reported(
    _ payload: [UInt8], on link: SessionLinkID, arrivedAt: Instant, at now: Instant
  ) -> [(path: PathID, roundTrip: Duration?)] {
    guard let feedback = try? CongestionFeedback(decoding: payload) else { return [] }
    let reports = histories.update(link) { $0.reported(feedback, at: arrivedAt) } ?? []
    return reports.map { report in
      let path = PathID(peer: link.peer, route: report.route)
      let mayShareQueue = mayShareQueue(path, at: now)
      _ = paths.update(path) {
        $0.reportedAt = now
        $0.controller.mayShareQueue = mayShareQueue
        $0.pacer.open()
        let probe = $0.controller.reported(report, at: now)
        $0.noteQueue(at: now)
        if !$0.isFlowing(at: now) {
          uplinkEstimator.reported(
            $0.controller.delayed(report, at: now), leastTransit: $0.controller.leastTransit,
            at: now)
        }
        $0.pace(at: now)
        if let probe { $0.pacer.probe(probe, at: now) }
      }
      return (path, report.roundTrip)
    }
  }

  // MARK: Pacing

  /// Queues a packet until its turn on a path comes; false if the path has no estimate, since its
  /// peer does not report, or nothing was sent yet.
  mutating func queue(
    _ packet: QueuedPacket, _ priority: QueuedPacket.Priority, on path: PathID, at now: Instant
  ) -> Bool {
    guard let index = paths.index(of: path) else { return false }
    let bytes = packet.payload.count + SealedDatagram.overhead + path.route.overheadBytes
    paths.update(at: index) {
      $0.pacer.add(packet, priority, bytes: bytes, expiresAt: now + Self.longestWait, at: now)
    }
    return true
  }

  /// The time that a packet of video would now wait for its turn on a path, and in the network, as
  /// far as there is more in flight than there should be.
  func wait(on path: PathID, at now: Instant) -> Duration {
    guard let index = paths.index(of: path) else { return .zero }
    return paths.read(at: index) { $0.pacer.wait(at: now) + $0.controller.excessInFlight(at: now) }
  }

  /// Takes a link's packets out of the queue of a path that it no longer uses. Probes of the peer's
  /// paths end, since their packets would now take another one.
  mutating func takeQueue(
    of link: LinkID
  ) -> [(item: QueuedPacket, priority: QueuedPacket.Priority)] {
    var taken: [(item: QueuedPacket, priority: QueuedPacket.Priority)] = []
    for index in 0..<paths.count where paths.keys[index].peer == link.peer {
      taken += paths.update(at: index) {
        $0.pacer.cancelProbes()
        return $0.pacer.remove { $0.link == link }
      }
    }
    return taken
  }

  /// Releases the packets whose turn has come.
  mutating func release(at now: Instant) -> [Output] {
    var out: [Output] = []
    let first = turn
    for offset in 0..<paths.count {
      let index = (first + offset) % paths.count
      if !paths.read(at: index, { $0.isApart }) {
        guard uplink.isOpen(at: now) else { continue }
        turn = index + 1
      }
      let (asks, link, (released, expired)) = paths.update(at: index) { entry in
        let asks = entry.askDeadline.map { $0 <= now } ?? false
        if asks { entry.asksAt = now + Self.askInterval }
        return (asks, entry.link, entry.pacer.release(at: now))
      }
      if asks { out.append(.ask(paths.keys[index])) }
      for release in released {
        switch release {
        case .item(let packet, let probe): out.append(.release(packet, probe: probe))
        case .padding(let bytes, let probe):
          let overhead = SealedDatagram.overhead + paths.keys[index].route.overheadBytes
          let padding = [UInt8](
            repeating: PayloadKind.keepaliveByte, count: max(bytes - overhead, 2))
          out.append(.pad(padding, over: link, probe: probe))
        }
      }
      out += expired.map { .expired($0) }
    }
    return out
  }

  // MARK: Paths

  private mutating func addPath(_ path: PathID, for link: SessionLinkID, at now: Instant) {
    let others = paths.keys.indices.filter { paths.keys[$0].peer == path.peer }
    let usedAt = others.map { index in paths.read(at: index) { $0.usedAt } }
    if others.count == Self.pathLimit,
      let oldest = zip(others, usedAt).min(by: { $0.1 < $1.1 })?.0
    {
      paths[paths.keys[oldest]] = nil
    }
    paths[path] = Entry(
      controller: PathController(), usedAt: now, asksAt: now + Self.askInterval, link: link)
  }

  /// Forgets a link that is closed, and the paths to its peer with the last one.
  mutating func closed(_ link: SessionLinkID) {
    (reporters[link], histories[link]) = (nil, nil)
    guard !histories.keys.contains(where: { $0.peer == link.peer }) else { return }
    for path in paths.keys where path.peer == link.peer { paths[path] = nil }
  }

  /// Forgets the paths to a peer that has restarted, or could not be reached for a while, and what
  /// was sent to it: that it is not reported says nothing of the paths that lead there from now on.
  mutating func interrupted(_ peer: NodeID) {
    for path in paths.keys where path.peer == peer { paths[path] = nil }
    for link in histories.keys where link.peer == peer { histories[link] = LinkHistory() }
  }

  /// Descriptions of violated invariants; `isOpen` returns whether a link exists.
  func checkInvariants(isOpen: (SessionLinkID) -> Bool) -> [String] {
    var found: [String] = []
    if !reporters.isConsistent || !paths.isConsistent {
      found.append("congestion control changed its deadline unnoticed")
    }
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

  /// Releases the packets whose turn has come, and makes the reports that are due, along with those
  /// that may go early.
  mutating func tick(at now: Instant) -> [Output] {
    var out = release(at: now)
    guard let deadline = reporters.deadline, deadline <= now else { return out }
    for index in 0..<reporters.count {
      let link = reporters.keys[index]
      for report in reporters.update(at: index, { $0.reports(at: now) }) {
        out.append(.send(report, over: link))
      }
    }
    return out
  }
}

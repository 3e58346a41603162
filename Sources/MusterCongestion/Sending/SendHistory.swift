import MusterBase
import MusterWire

/// The packets sent in one session, until their receiver reports on them. Packet numbers count per
/// session, and a session may send over several routes, so a report is split by route.
public struct SendHistory: Sendable {
  /// The number of packets that are remembered: 7 s at 3 Mbit/s.
  static let capacity = 2048
  /// A missing packet counts as lost once one of its class has arrived whose number is higher by
  /// this (RFC 9002 section 6.1.1).
  static let reorderingThreshold: UInt64 = 3
  /// A missing packet counts as lost as well once one of any class has arrived that was sent so
  /// much later: where each class has a queue of its own, that of video may be as long.
  static let longestOvertaking = Duration.milliseconds(500)
  /// The routes that are told apart; an older one is forgotten with its packets.
  private static let routeLimit = 8

  private enum State {
    case inFlight
    /// Packets of other classes have overtaken it.
    case overtaken
    case lost
    case arrived
  }

  private struct Sent {
    var number: UInt64
    var at: Instant
    var bytes: Int32
    var route: UInt8
    var serviceClass: ServiceClass
    var state = State.inFlight
    var probe: ProbeCluster.ID?
  }

  /// By packet number modulo `capacity`; empty until the first packet.
  private var sent: [Sent?] = []
  /// By the index in `Sent.route`.
  private var routes: [Route] = []
  /// The index that the next new route takes once there are `routeLimit`.
  private var nextRoute = 0
  /// The time of the last report on the receiver's clock, in units of
  /// `CongestionFeedback.Arrival.unit`, without the wrap at 2^32.
  private var receiverTime: Int64?

  /// The highest number that a report has covered.
  private var covered: UInt64?
  /// The numbers of the packets that are `overtaken`.
  private var overtaken: [UInt64] = []
  /// Of the packets that have arrived, the highest number by class, and the last sending time.
  private var highest = [UInt64](repeating: 0, count: ServiceClass.allCases.count)
  private var newestSentAt = Instant.zero

  /// Creates the history of a session that has sent nothing.
  public init() {}

  /// Records a packet. Numbers increase from packet to packet, and may have gaps.
  public mutating func sent(
    _ number: UInt64, bytes: Int, as serviceClass: ServiceClass = .video, over route: Route,
    probe: ProbeCluster.ID? = nil, at now: Instant
  ) {
    if sent.isEmpty { sent = [Sent?](repeating: nil, count: Self.capacity) }
    sent[Self.slot(of: number)] = Sent(
      number: number, at: now, bytes: Int32(clamping: bytes), route: index(of: route),
      serviceClass: serviceClass, probe: probe)
  }

  /// Takes a report of this session, and returns what it says that was not known before.
  public mutating func reported(_ feedback: CongestionFeedback, at now: Instant) -> [PathReport] {
    guard !sent.isEmpty else { return [] }
    var reports: [PathReport] = []
    let time = unwrappedTime(of: feedback)
    var highestHere: UInt64?
    for (offset, arrival) in feedback.arrivals.enumerated() where arrival.isReceived {
      let number = feedback.base + UInt64(offset)
      guard let packet = self[number] else { continue }
      highestHere = number
      let index = packet.serviceClass.rawValue
      highest[index] = max(highest[index], number)
      newestSentAt = max(newestSentAt, packet.at)
      guard packet.state != .arrived else { continue }
      sent[Self.slot(of: number)]?.state = .arrived
      let arrivedAt = arrival.age.map { time + (.zero - $0) }
      let fate = packet.state == .lost ? PacketResult.Fate.arrivedLate : .arrived(at: arrivedAt)
      let report = add(packet, fate, to: &reports)
      if let age = arrival.age {
        let roundTrip = max(now - packet.at - age, .zero)
        reports[report].roundTrip = min(reports[report].roundTrip ?? roundTrip, roundTrip)
      }
    }
    addLost(to: &reports, coveredFrom: feedback.base, to: highestHere)
    let isAfterGap = covered.map { feedback.base > $0 && feedback.base - $0 > 1 } ?? false
    covered = max(covered ?? 0, feedback.base + UInt64(feedback.arrivals.count - 1))
    for index in reports.indices {
      reports[index].results.sort { $0.sentAt < $1.sentAt }
      reports[index].isAfterGap = isAfterGap
    }
    return reports
  }

  /// Adds the packets that are now lost, of those that a report covers up to the last arrival, and
  /// of those that were overtaken before. What no report covers may have arrived, and have been in
  /// a report that was lost.
  private mutating func addLost(
    to reports: inout [PathReport], coveredFrom first: UInt64, to last: UInt64?
  ) {
    if let last, last >= first + Self.reorderingThreshold {
      for number in first...(last - Self.reorderingThreshold) where self[number]?.state == .inFlight
      {
        sent[Self.slot(of: number)]?.state = .overtaken
        overtaken.append(number)
      }
    }
    var remaining: [UInt64] = []
    for number in overtaken {
      guard let packet = self[number], packet.state == .overtaken else { continue }
      if isLost(packet) {
        sent[Self.slot(of: number)]?.state = .lost
        _ = add(packet, .lost, to: &reports)
      } else {
        remaining.append(number)
      }
    }
    overtaken = remaining
  }

  private func isLost(_ overtaken: Sent) -> Bool {
    highest[overtaken.serviceClass.rawValue] >= overtaken.number + Self.reorderingThreshold
      || newestSentAt - overtaken.at >= Self.longestOvertaking
  }

  /// Adds a result to the report on its route, and returns the index of the report.
  private func add(
    _ packet: Sent, _ fate: PacketResult.Fate, to reports: inout [PathReport]
  ) -> Int {
    let result = PacketResult(
      bytes: Int(packet.bytes), sentAt: packet.at, serviceClass: packet.serviceClass,
      probe: packet.probe, fate: fate)
    let route = routes[Int(packet.route)]
    if let index = reports.firstIndex(where: { $0.route == route }) {
      reports[index].results.append(result)
      return index
    }
    reports.append(PathReport(route: route, results: [result]))
    return reports.count - 1
  }

  /// The packet of a number; nil if it was not sent or is forgotten.
  private subscript(number: UInt64) -> Sent? {
    let packet = sent[Self.slot(of: number)]
    return packet?.number == number ? packet : nil
  }

  private static func slot(of number: UInt64) -> Int { Int(number % UInt64(capacity)) }

  private mutating func index(of route: Route) -> UInt8 {
    if let index = routes.firstIndex(of: route) { return UInt8(index) }
    guard routes.count == Self.routeLimit else {
      routes.append(route)
      return UInt8(routes.count - 1)
    }
    let index = nextRoute
    nextRoute = (nextRoute + 1) % Self.routeLimit
    for slot in sent.indices where sent[slot].map({ Int($0.route) == index }) ?? false {
      sent[slot] = nil
    }
    routes[index] = route
    return UInt8(index)
  }

  /// The time of a report on the receiver's clock. A report may claim any time, so the sum wraps.
  private mutating func unwrappedTime(of feedback: CongestionFeedback) -> Instant {
    let last = receiverTime ?? Int64(feedback.time)
    let step = Int32(bitPattern: feedback.time &- UInt32(truncatingIfNeeded: last))
    let time = last &+ Int64(step)
    receiverTime = time
    return Instant(nanoseconds: time &* CongestionFeedback.Arrival.unit.wholeNanoseconds)
  }
}

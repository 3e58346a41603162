import MusterBase
import MusterWire

/// The byte rate for relaying, shared fairly by the members that send through this node, and by
/// each of them among those to whom it sends: more receivers make no larger share.
///
/// Each direction of a pair of members has a rate of its own. What exceeds it waits, and is dropped
/// only if it would wait for too long: like this the congestion control of both ends finds the rate
/// as it finds that of a link, by the delay.
package struct RelayBudget: Sendable {
  /// What one member sends to another one.
  private struct Direction: Comparable, Sendable {
    let channel: ChannelID
    let from: NodeID
    let to: NodeID

    var reversed: Direction { Direction(channel: channel, from: to, to: from) }

    static func < (a: Direction, b: Direction) -> Bool {
      if a.channel != b.channel { return a.channel < b.channel }
      return a.from == b.from ? a.to < b.to : a.from < b.from
    }
  }

  private struct Carried: Sendable {
    /// The rate of this direction in bytes per second.
    var rate: Double
    /// The number of bytes that may leave now; negative while datagrams wait.
    var credit = RelayBudget.burst
    var refilledAt: Instant
    /// The time at which the last datagram leaves; later ones do not overtake it.
    var leavesAt = Instant.zero
    var askedAt: Instant
    /// The number of bytes offered since the last division, and the smoothed demand in bytes per
    /// second.
    var asked = 0.0
    var demand = 0.0
    var bytes: UInt64 = 0
    var lastAt = Instant.zero
  }

  /// The total rate of 4 Mbit/s, enough for two pairs that exchange video in both directions at the
  /// middle layer.
  private static let bytesPerSecond = 500_000.0
  /// The bytes that all directions together may exceed the total rate by, while their demand is not
  /// known yet.
  private static let totalBurst = 250_000.0
  /// The maximum for both directions of a pair, which leaves room for a new pair.
  private static let mostOfPair = bytesPerSecond / 2
  /// The fraction of the total that is divided; the rest absorbs the arrival of new pairs.
  private static let divided = 0.98
  /// The bytes of a direction that do not wait: one frame of four datagrams of 1200 bytes.
  private static let burst = 4.0 * 1200
  /// The longest time for which a datagram waits: the queue of the links of RFC 8867.
  private static let longestWait = Duration.milliseconds(300)
  private static let directionLimit = 512
  private static let countInterval = Duration.milliseconds(250)
  /// The fractions of the total from which the load is high, and from which it is no longer high.
  private static let (highLoad, lowLoad) = (0.75, 0.5)

  private var total = TokenBucket(capacity: totalBurst, perSecond: bytesPerSecond)
  private var directions = PeerTable<Direction, Carried>()
  /// The rate of a sender's directions whose demand is not known yet, in bytes per second.
  private var newRate = RelayBudget.mostOfPair / 2
  private var countedAt = Instant.zero
  /// The fraction of the total that is in demand.
  private var load = 0.0
  private var reportedHighLoad = false

  package init() {}

  /// Charges `bytes` sent from one member to another one against the budget of this direction and
  /// the total. Returns the time at which they may leave; nil, and charges nothing, if that is too
  /// late.
  package mutating func take(
    _ bytes: Int, from sender: NodeID, to receiver: NodeID, in channel: ChannelID, at now: Instant
  ) -> Instant? {
    divideIfDue(at: now)
    let direction = Direction(channel: channel, from: sender, to: receiver)
    if directions.index(of: direction) == nil {
      if directions.count >= Self.directionLimit { forgetQuietest() }
      let others = directions.keys.count { $0.from == sender }
      directions[direction] = Carried(
        rate: newRate / Double(others + 1), refilledAt: now, askedAt: now)
    }
    let amount = Double(bytes)
    let departure = directions.update(direction) { carried -> Instant? in
      let elapsed = max(now - carried.refilledAt, .zero).inSeconds
      carried.credit = min(Self.burst, carried.credit + elapsed * carried.rate)
      carried.refilledAt = max(now, carried.refilledAt)
      carried.askedAt = carried.refilledAt
      carried.asked += amount
      let wait = Duration.seconds(max(amount - carried.credit, 0) / carried.rate)
      let leavesAt = max(now + wait, carried.leavesAt)
      return leavesAt - now <= Self.longestWait ? leavesAt : nil
    }
    guard case .some(.some(let leavesAt)) = departure, total.take(amount, at: now) else {
      return nil
    }
    _ = directions.update(direction) {
      $0.credit -= amount
      $0.leavesAt = leavesAt
      $0.bytes &+= UInt64(bytes)
      $0.lastAt = now
    }
    return leavesAt
  }

  /// Divides the total among the senders, and the share of each among its directions, by max-min
  /// fairness: small demands are met in full, and larger demands get equal shares (Bertsekas and
  /// Gallager, Data Networks, 6.5.2).
  private mutating func divideIfDue(at now: Instant) {
    guard now - countedAt >= Self.countInterval else { return }
    let seconds = (now - countedAt).inSeconds
    countedAt = now
    for position in 0..<directions.count {
      // The previous demand has half of the weight, to smooth bursts.
      let latest = directions[at: position].asked / seconds
      directions[at: position].demand = (directions[at: position].demand + latest) / 2
      directions[at: position].asked = 0
    }
    // A direction may use what the opposite one leaves of the pair's maximum.
    let most = directions.map { direction, _ in
      let opposite = directions[direction.reversed]?.demand ?? 0
      return max(Self.mostOfPair - opposite, Self.mostOfPair / 2)
    }
    let demands = most.indices.map { min(directions[at: $0].demand, most[$0]) }
    var senders = PeerTable<NodeID, [Int]>()
    for position in demands.indices {
      let sender = directions.keys[position].from
      if senders.index(of: sender) == nil { senders[sender] = [] }
      _ = senders.update(sender) { $0.append(position) }
    }
    let share = Self.level(
      of: senders.map { $0.value.reduce(0) { $0 + demands[$1] } },
      in: Self.bytesPerSecond * Self.divided)
    for (_, positions) in senders {
      let level = Self.level(of: positions.map { demands[$0] }, in: share)
      for position in positions { directions[at: position].rate = min(most[position], level) }
    }
    newRate = min(Self.mostOfPair / 2, share)
    load = demands.reduce(0, +) / Self.bytesPerSecond
  }

  /// The most that each of these demands may get of a rate that they share by max-min fairness.
  private static func level(of demands: [Double], in rate: Double) -> Double {
    var rest = rate
    var level = rate
    for (position, demand) in demands.sorted().enumerated() {
      level = rest / Double(demands.count - position)
      if demand >= level { break }
      rest -= demand
    }
    return level
  }

  private mutating func forgetQuietest() {
    let quietest = directions.min { $0.value.askedAt < $1.value.askedAt }
    if let quietest { directions[quietest.key] = nil }
  }

  /// Whether other relays should be preferred (with hysteresis).
  package mutating func isLoadHigh(at now: Instant) -> Bool {
    divideIfDue(at: now)
    reportedHighLoad = load > (reportedHighLoad ? Self.lowLoad : Self.highLoad)
    return reportedHighLoad
  }

  /// The pairs for which packets were relayed within the last 3 s.
  package func carried(at now: Instant) -> [RelayedPair] {
    var pairs: [RelayedPair] = []
    for (direction, carried) in directions {
      let opposite = directions[direction.reversed]
      // A pair is reported with the direction from the smaller id, or with the only one.
      guard direction.from < direction.to || opposite == nil else { continue }
      let bytes = carried.bytes &+ (opposite?.bytes ?? 0)
      guard bytes > 0, now - max(carried.lastAt, opposite?.lastAt ?? .zero) < Self.recent else {
        continue
      }
      pairs.append(
        RelayedPair(
          channel: direction.channel, first: min(direction.from, direction.to),
          second: max(direction.from, direction.to), bytes: bytes))
    }
    return pairs
  }

  private static let recent = Duration.seconds(3)
}

/// A pair of members whose packets this node relays.
public struct RelayedPair: Equatable, Sendable {
  /// The channel of both members.
  public let channel: ChannelID
  /// The member with the smaller id.
  public let first: NodeID
  /// The member with the larger id.
  public let second: NodeID
  /// The payload bytes relayed in both directions since relaying for the pair began.
  public let bytes: UInt64
}

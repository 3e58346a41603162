import MusterBase

/// Spreads the packets of a path over time, so that they do not queue on it.
///
/// Audio and control messages do not wait here: they are sent at once and counted with `charge`,
/// and the others then have less. Items leave in bursts of at most `burst`, retransmissions before
/// video; what cannot leave in time expires, since a late frame only delays the next one.
@frozen
public struct Pacer<Item: Sendable>: HasDeadline, Sendable {
  /// The urgency of an item, highest first.
  @frozen public enum Priority: Int, CaseIterable, Sendable {
    case retransmission
    case video
  }

  /// A packet that leaves.
  @frozen public enum Release: Sendable {
    /// A queued item; the probe cluster that it belongs to, if any.
    case item(Item, probe: ProbeCluster.ID?)
    /// Padding that fills a probe cluster, to be sent as an IP packet of about this many bytes.
    case padding(bytes: Int, probe: ProbeCluster.ID)
  }

  @usableFromInline struct Entry: Sendable {
    @usableFromInline let item: Item
    @usableFromInline let bytes: Int
    @usableFromInline let expiresAt: Instant

    @inlinable init(_ item: Item, bytes: Int, expiresAt: Instant) {
      self.item = item
      self.bytes = bytes
      self.expiresAt = expiresAt
    }
  }

  @usableFromInline struct Probe: Sendable {
    @usableFromInline let cluster: ProbeCluster
    @usableFromInline var startedAt: Instant?
    @usableFromInline var packets = 0
    @usableFromInline var bytes = 0.0

    @inlinable init(_ cluster: ProbeCluster) { self.cluster = cluster }

    @inlinable var nextAt: Instant? {
      startedAt.map { $0 + .seconds(bytes / max(cluster.rate.bytes(in: .seconds(1)), 1)) }
    }
    @inlinable var isComplete: Bool { packets >= ProbeCluster.packets && bytes >= cluster.bytes }
  }

  /// The burst size, as its duration at the pacing rate.
  @inlinable public static var burst: Duration { .milliseconds(5) }
  /// The pacing rate in multiples of the path's, so that a queue in the pacer empties.
  @inlinable public static var headroom: Double { 1.1 }
  /// The time for which charged packets hold up others, at most.
  @inlinable static var longestDebt: Duration { .milliseconds(500) }
  /// The IP packets of padding are between these sizes.
  @inlinable static var paddingBytes: ClosedRange<Double> { 100...1_200 }

  /// The rate at which items leave.
  @usableFromInline var rate: DataRate
  /// By priority.
  @usableFromInline var queues: [[Entry]]
  @usableFromInline var probes: [Probe] = []
  /// The time at which the rate has paid for all that has left. Nothing is saved up: an idle pacer
  /// has no right to a burst.
  @usableFromInline var paidAt: Instant?
  /// The bytes that may still leave at once since nothing is known of the path.
  @usableFromInline var window: Int
  @usableFromInline var hasOpened: Bool
  @usableFromInline var queued = 0

  /// Creates the pacer of a path with this estimate. The first `initialWindow` bytes do not wait;
  /// those after them wait until `open` is called.
  @inlinable public init(estimate: DataRate, initialWindow: Int = 0) {
    window = initialWindow
    hasOpened = initialWindow == 0
    rate = estimate * Self.headroom
    queues = Priority.allCases.map { _ in [] }
  }

  /// The bytes that are queued.
  @inlinable public var queuedBytes: Int { queued }

  /// Takes a new rate of the path; items leave at `headroom` times that.
  @inlinable public mutating func set(rate pathRate: DataRate, at now: Instant) {
    let new = pathRate * Self.headroom
    guard new != rate else { return }
    if let paidAt, paidAt > now {
      let unpaid = rate.bytes(in: paidAt - now)
      self.paidAt = now + min(time(for: unpaid, at: new), Self.longestDebt)
    }
    rate = new
  }

  /// Whether more than the initial window may leave.
  @inlinable public var isOpen: Bool { hasOpened }

  /// Lets more than the initial window leave: the path is known to carry something.
  @inlinable public mutating func open() { hasOpened = true }

  /// Counts a packet that was sent without waiting.
  @inlinable public mutating func charge(_ bytes: Int, at now: Instant) {
    pay(bytes, at: now)
    paidAt = paidAt.map { min($0, now + Self.longestDebt) }
  }

  /// Queues an item, which leaves before `expiresAt` or not at all.
  @inlinable public mutating func add(
    _ item: Item, _ priority: Priority, bytes: Int, expiresAt: Instant, at now: Instant
  ) {
    paidAt = paidAt ?? now
    queues[priority.rawValue].append(Entry(item, bytes: bytes, expiresAt: expiresAt))
    queued += bytes
  }

  /// Takes out the items that fulfil a condition, in the order in which they would have left.
  @inlinable public mutating func remove(
    where condition: (Item) -> Bool
  ) -> [(item: Item, priority: Priority)] {
    var removed: [(item: Item, priority: Priority)] = []
    for priority in Priority.allCases {
      let index = priority.rawValue
      removed += queues[index].filter { condition($0.item) }.map { ($0.item, priority) }
      queues[index].removeAll { condition($0.item) }
    }
    queued = queues.joined().reduce(0) { $0 + $1.bytes }
    return removed
  }

  /// Begins to send a probe cluster, after those that are under way.
  @inlinable public mutating func probe(_ cluster: ProbeCluster, at now: Instant) {
    probes.append(Probe(cluster))
    if probes.count == 1 { probes[0].startedAt = now }
  }

  /// Ends the probes that are under way and those that are to follow.
  @inlinable public mutating func cancelProbes() { probes = [] }

  /// The time that an item of the lowest priority would now wait.
  @inlinable public func wait(at now: Instant) -> Duration {
    guard queuedBytes >= window else { return .zero }
    let unpaid = paidAt.map { max($0 - now, .zero) } ?? .zero
    return unpaid + time(for: Double(queuedBytes - window), at: rate)
  }

  /// The time at which the next packet leaves; nil if none waits.
  @inlinable public var deadline: Instant? {
    guard probes.isEmpty else { return probes[0].nextAt }
    guard isOpen || window > 0 else { return queues.compactMap { $0.first?.expiresAt }.min() }
    return queuedBytes > 0 ? paidAt : nil
  }

  /// Releases what leaves now, and drops what has expired.
  @inlinable public mutating func release(
    at now: Instant
  ) -> (released: [Release], expired: [Item]) {
    var released: [Release] = []
    var expired: [Item] = []
    while let due = probes.first?.nextAt, due <= now {
      // A small packet goes first: were the first one larger than the others, its bytes, which do
      // not count, would leave a longer gap than theirs.
      let isFirst = probes[0].packets == 0
      let padding =
        isFirst ? Int(Self.paddingBytes.lowerBound) : paddingSize(for: probes[0].cluster)
      let id = probes[0].cluster.id
      if !isFirst, let entry = next(at: now, expired: &expired) {
        released.append(.item(entry.item, probe: id))
        count(entry.bytes, at: now)
      } else {
        released.append(.padding(bytes: padding, probe: id))
        count(padding, at: now)
      }
    }
    guard probes.isEmpty else { return (released, expired) }
    let end = now + Self.burst
    while window > 0 || isOpen && paidAt ?? now < end,
      let entry = next(at: now, expired: &expired)
    {
      released.append(.item(entry.item, probe: nil))
      if window > 0 {
        window = max(window - entry.bytes, 0)
      } else {
        pay(entry.bytes, at: now)
      }
    }
    if !isOpen { dropExpired(at: now, &expired) }
    return (released, expired)
  }

  /// Drops what has expired.
  @inlinable mutating func dropExpired(at now: Instant, _ expired: inout [Item]) {
    for index in queues.indices {
      while let first = queues[index].first, first.expiresAt <= now {
        queues[index].removeFirst()
        queued -= first.bytes
        expired.append(first.item)
      }
    }
  }

  /// Takes the most urgent item that has not expired.
  @inlinable mutating func next(at now: Instant, expired: inout [Item]) -> Entry? {
    dropExpired(at: now, &expired)
    for index in queues.indices where !queues[index].isEmpty {
      let first = queues[index].removeFirst()
      queued -= first.bytes
      return first
    }
    return nil
  }

  /// Counts a packet of the first probe, and goes on to the next one when it is complete.
  @inlinable mutating func count(_ bytes: Int, at now: Instant) {
    pay(bytes, at: now)
    probes[0].packets += 1
    probes[0].bytes += Double(bytes)
    guard probes[0].isComplete else { return }
    probes.removeFirst()
    if !probes.isEmpty { probes[0].startedAt = now }
  }

  @inlinable func paddingSize(for cluster: ProbeCluster) -> Int {
    let share = cluster.bytes / Double(ProbeCluster.packets)
    return Int(min(max(share, Self.paddingBytes.lowerBound), Self.paddingBytes.upperBound))
  }

  @inlinable mutating func pay(_ bytes: Int, at now: Instant) {
    paidAt = max(paidAt ?? now, now) + time(for: Double(bytes), at: rate)
  }

  @inlinable func time(for bytes: Double, at rate: DataRate) -> Duration {
    .seconds(bytes / max(rate.bytes(in: .seconds(1)), 1))
  }
}

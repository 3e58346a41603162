import MusterBase
import MusterCrypto
import MusterWire

/// A rendezvous server, which stores the encrypted announcements of nodes that cannot reach each
/// other by multicast; a state machine without I/O.
///
/// The server learns neither names nor channel keys: a tag is a public key that all members of a
/// channel derive, and a signature by that key gives access to the records under the tag. A node
/// that has not proven its address gets only a cookie, which is smaller than the request (no
/// amplification), and a registered one gets three bytes for each that it has sent. Nothing is
/// persisted.
public struct RendezvousServer: Sendable {
  /// An action for the host.
  public enum Output: Equatable, Sendable {
    /// Send a datagram to one address.
    case send([UInt8], to: Address)
  }

  /// The period in seconds after which tags change. The server's clock is authoritative, so members
  /// need no synchronised clocks.
  public static let period: UInt64 = 3600
  /// The time after which a record expires unless renewed; nodes renew their records every 5 s.
  public static let lifetime = Duration.seconds(60)
  static let recordsPerTag = 128
  /// The maximum number of records of one IPv4 address or one IPv6 /64: enough for a household or a
  /// hotel behind one NAT.
  static let recordsPerSource = 64
  /// The maximum number of records in total.
  public static let recordLimit = 4096
  /// The maximum number of sources with tracked rate limits; the least recently active one is
  /// evicted, so that an attacker with thousands of addresses does not exhaust the budgets of other
  /// sources.
  static let sourceLimit = 4096

  struct Key: Comparable, Hashable, Sendable {
    var tag: Bytes32
    var slot: UInt64

    static func < (a: Key, b: Key) -> Bool {
      a.tag == b.tag ? a.slot < b.slot : a.tag < b.tag
    }
  }

  struct Record: Sendable {
    var announcement: [UInt8]
    var seen: Address
    /// The token of the registration, which later notifications repeat.
    var token: UInt64
    var renewedAt: Instant
    /// The rate limit for notifications to the other members under the tag while the record's
    /// address is unchanged: the announcement may have new content, which only members can decrypt.
    var notifications: TokenBucket
    /// The bytes that may be sent to the record's address: three for each byte of its
    /// registrations, less what was sent.
    var credit: Int
    /// The slot of the last record that was sent to this address; the next answer goes on from
    /// there.
    var lastSlot: UInt64
  }

  /// How many bytes a registration brings for each of its own, and how many can be saved up: for
  /// notifications of some twenty newcomers at once.
  static let multiplication = 3
  static let creditLimit = 8_000
  /// What a repeated notification leaves of the credit of its receiver, for those of newcomers.
  static let saved = 300

  private let cookieKey: SecretBytes
  private var records = PeerTable<Key, Record>()
  private var perSource = PeerTable<Source, Int>()
  private var budgets = PeerTable<Source, Budget>()
  private var commonBudget = TokenBucket(capacity: 2000, perSecond: 2000)
  private var sweepAt: Instant?
  /// Counts of received and rejected datagrams since the start.
  public private(set) var counters = RendezvousCounters()

  /// Creates an empty server with a cookie secret from `entropy`.
  public init(entropy: Entropy) {
    var entropy = entropy
    cookieKey = entropy.secret(32, in: .heap)
  }

  /// The number of records stored now.
  public var count: Int { records.count }
  /// The time at which `tick` next has work; nil without records.
  public var deadline: Instant? { sweepAt }

  /// The rate limit of one source: 64 registrations at once for a household whose members start
  /// together, then 16 per second, enough to renew 64 records every 5 s.
  private struct Budget: Sendable {
    var bucket = TokenBucket(capacity: 64, perSecond: 16)
    var askedAt: Instant
  }

  // MARK: Inputs

  /// Handles a datagram; `seconds` is the host's wall-clock time since 1970-01-01 UTC, which
  /// determines the period.
  public mutating func receive(
    _ datagram: [UInt8], from source: Address, seconds: UInt64, at now: Instant
  ) -> [Output] {
    guard source.isUnicast else { return [] }
    switch DatagramKind(of: datagram) {
    case .rendezvousHello: return receiveHello(datagram, source, seconds, at: now)
    case .rendezvousRegistration: return receiveRegistration(datagram, source, seconds, at: now)
    default: return []
    }
  }

  /// Removes the expired records; harmless before `deadline`.
  public mutating func tick(at now: Instant) {
    guard let sweepAt, sweepAt <= now else { return }
    for key in records.keys {
      guard let record = records[key], now - record.renewedAt >= Self.lifetime else { continue }
      remove(key)
    }
    for source in budgets.keys {
      if let asked = budgets[source]?.askedAt, now - asked >= Self.lifetime {
        budgets[source] = nil
      }
    }
    self.sweepAt = records.isEmpty ? nil : now + Self.lifetime / 4
  }

  private mutating func receiveHello(
    _ datagram: [UInt8], _ source: Address, _ seconds: UInt64, at now: Instant
  ) -> [Output] {
    guard let hello = try? RendezvousHello(decoding: datagram) else {
      counters.malformed += 1
      return []
    }
    counters.hellos += 1
    let answer = RendezvousCookie(
      token: hello.token, cookie: cookie(for: source, slot: Self.slot(now)),
      period: seconds / Self.period, age: UInt16(seconds % Self.period), seen: source)
    return [.send(answer.encoded(), to: source)]
  }

  private mutating func receiveRegistration(
    _ datagram: [UInt8], _ source: Address, _ seconds: UInt64, at now: Instant
  ) -> [Output] {
    let signature = datagram.suffix(RendezvousRegistration.signatureBytes)
    let signed = Array(datagram.dropLast(RendezvousRegistration.signatureBytes))
    guard let registration = try? RendezvousRegistration(decoding: signed) else {
      counters.malformed += 1
      return []
    }
    guard isFresh(registration, from: source, seconds, at: now) else {
      counters.wrongCookie += 1
      return []
    }
    guard takeBudget(Source(source), at: now) else {
      counters.overBudget += 1
      return []
    }
    guard RendezvousTag.isSigned(signed, by: registration.tag, Array(signature)) else {
      counters.forged += 1
      return []
    }
    return register(registration, of: datagram.count, from: source, at: now)
  }

  /// Whether the cookie is valid for this source, and the period is the current or the previous
  /// one.
  private func isFresh(
    _ registration: RendezvousRegistration, from source: Address, _ seconds: UInt64,
    at now: Instant
  ) -> Bool {
    let period = seconds / Self.period
    guard registration.period == period || registration.period &+ 1 == period else {
      return false
    }
    let slot = Self.slot(now)
    return [slot, slot &- 1].contains {
      ConstantTime.equal(cookie(for: source, slot: $0), registration.cookie)
    }
  }

  private mutating func takeBudget(_ source: Source, at now: Instant) -> Bool {
    if budgets.index(of: source) == nil {
      if budgets.count >= Self.sourceLimit { forgetBudget() }
      budgets[source] = Budget(askedAt: now)
    }
    let isAllowed =
      budgets.update(source) { budget in
        budget.askedAt = now
        return budget.bucket.take(at: now)
      } ?? false
    // Verifying a signature takes about 60 us, so 2,000 per second use an eighth of a core.
    return isAllowed && commonBudget.take(at: now)
  }

  private mutating func forgetBudget() {
    if let oldest = budgets.min(by: { $0.value.askedAt < $1.value.askedAt }) {
      budgets[oldest.key] = nil
    }
  }

  // MARK: Records

  /// The rate limit for notifications: four at once, then one every 4 s, as one registration causes
  /// many notifications.
  private static let notifications = TokenBucket(capacity: 4, perSecond: 0.25)

  private mutating func register(
    _ registration: RendezvousRegistration, of bytes: Int, from source: Address, at now: Instant
  ) -> [Output] {
    counters.registered += 1
    let key = Key(tag: registration.tag, slot: registration.slot)
    let others = keys(under: registration.tag).filter { $0 != key }
    let former = records[key]
    guard !registration.announcement.isEmpty else {
      remove(key)
      let empty = RendezvousRecords(token: registration.token, records: [])
      return [.send(empty.encoded(), to: source)]
    }
    let isNews = former?.seen != source
    if isNews {
      remove(key)
      guard makeRoom(for: source, beside: others) else {
        counters.refused += 1
        return []
      }
    }
    var notifications = isNews ? Self.notifications : former?.notifications ?? Self.notifications
    let isNotified = isNews || registration.wantsRecords && notifications.take(at: now)
    records[key] = Record(
      announcement: registration.announcement, seen: source, token: registration.token,
      renewedAt: now, notifications: notifications,
      credit: min((former?.credit ?? 0) + bytes * Self.multiplication, Self.creditLimit),
      lastSlot: former?.lastSlot ?? registration.slot)
    if isNews { perSource[Source(source)] = (perSource[Source(source)] ?? 0) + 1 }
    sweepAt = sweepAt ?? now + Self.lifetime / 4
    var outputs = answer(key, with: registration.wantsRecords ? others : [])
    // The other members are notified, so that both sides probe at the same time (hole punching).
    // The notification is repeated while the registering node is still searching, because its NAT
    // may have blocked the first probes.
    if isNotified {
      let record = RendezvousRecords.Record(
        seen: source, announcement: registration.announcement)
      for other in others { outputs += send([record], to: other, leaving: isNews ? 0 : Self.saved) }
    }
    return outputs
  }

  /// The answer to a registration, with as many of the other records as its credit pays for; the
  /// next answer goes on where this one ends.
  private mutating func answer(_ key: Key, with others: [Key]) -> [Output] {
    guard var own = records[key] else { return [] }
    let start = others.firstIndex { $0.slot > own.lastSlot } ?? 0
    var left = own.credit - RendezvousRecords.headerBytes
    var chosen: [RendezvousRecords.Record] = []
    for other in others[start...] + others[..<start] {
      guard let record = records[other] else { continue }
      let next = RendezvousRecords.Record(seen: record.seen, announcement: record.announcement)
      left -= next.encodedBytes
      guard left >= 0 else { break }
      chosen.append(next)
      own.lastSlot = other.slot
    }
    records[key] = own
    return send(chosen, to: key)
  }

  /// Sends records to the address of another one, if its credit pays for them; without records, an
  /// acknowledgement.
  private mutating func send(
    _ news: [RendezvousRecords.Record], to key: Key, leaving saved: Int = 0
  ) -> [Output] {
    guard let receiver = records[key] else { return [] }
    let datagrams = RendezvousRecords.datagrams(token: receiver.token, news)
    let bytes = datagrams.reduce(0) { $0 + $1.count }
    guard bytes + saved <= receiver.credit else {
      counters.unpaid += 1
      return []
    }
    records[key]?.credit -= bytes
    return datagrams.map { .send($0, to: receiver.seen) }
  }

  private func keys(under tag: Bytes32) -> [Key] {
    let keys = records.keys
    var (low, high) = (0, keys.count)
    while low < high {
      let middle = (low + high) / 2
      if keys[middle].tag < tag { low = middle + 1 } else { high = middle }
    }
    return Array(keys[low...].prefix { $0.tag == tag })
  }

  /// Makes room for one more record from `source`; false if the tag or the source has reached its
  /// limit. If the table is full, the oldest record of the source with the most records is evicted,
  /// or the oldest record of all if that source has at most one record more than `source`.
  private mutating func makeRoom(for source: Address, beside others: [Key]) -> Bool {
    guard others.count < Self.recordsPerTag else { return false }
    let own = perSource[Source(source)] ?? 0
    guard own < Self.recordsPerSource else { return false }
    guard records.count >= Self.recordLimit else { return true }
    guard let greedy = perSource.max(by: { $0.value < $1.value }) else { return false }
    let isGreedy = greedy.value > own + 1
    let candidates = records.filter { !isGreedy || Source($0.value.seen) == greedy.key }
    guard let oldest = candidates.min(by: { $0.value.renewedAt < $1.value.renewedAt }) else {
      return false
    }
    remove(oldest.key)
    return true
  }

  private mutating func remove(_ key: Key) {
    guard let record = records[key] else { return }
    records[key] = nil
    let source = Source(record.seen)
    let left = (perSource[source] ?? 1) - 1
    perSource[source] = left > 0 ? left : nil
  }

  // MARK: Cookies

  /// The length of a time slot. A cookie is valid in the slot of its creation and in the next one.
  private static let slotLength = Duration.seconds(30)

  private static func slot(_ now: Instant) -> Int64 {
    now.nanoseconds / slotLength.wholeNanoseconds
  }

  private func cookie(for source: Address, slot: Int64) -> [UInt8] {
    var writer = Writer(capacity: 64)
    writer.append("muster/1 rendezvous cookie".utf8)
    writer.address(source)
    writer.u32(source.zone)
    writer.u64(UInt64(bitPattern: slot))
    return Blake2b.mac(writer.bytes[...], key: cookieKey, count: RendezvousCookie.cookieBytes)
  }
}

/// The unit of rate limits: an IPv4 address, or an IPv6 /64.
struct Source: Comparable, Sendable {
  private let isIPv6: Bool
  private let network: UInt64

  init(_ address: Address) {
    switch address.host {
    case .v4(let ip): (isIPv6, network) = (false, UInt64(ip))
    case .v6(let high, _, _): (isIPv6, network) = (true, high)
    }
  }

  static func < (a: Source, b: Source) -> Bool {
    a.isIPv6 == b.isIPv6 ? a.network < b.network : !a.isIPv6
  }
}

import MusterBase
import MusterCrypto
import MusterWire

/// Where nodes that cannot hear each other leave their sealed announces: a state machine without
/// I/O.
///
/// It learns neither names nor keys: a tag is a public key that all members of a channel derive,
/// and whoever signs with it gets what is kept under it. Who has not proven an address by a cookie
/// gets nothing but a cookie, which is smaller than the question. Nothing outlives the process.
public struct RendezvousServer: Sendable {
  public enum Output: Equatable, Sendable {
    case send([UInt8], to: Address)
  }

  /// How long tags stay the same: long enough for members whose clocks nobody asks about, since the
  /// rendezvous's own clock counts.
  public static let period: UInt64 = 3600
  /// A record that is not renewed is gone after this; nodes renew theirs twelve times as often.
  public static let lifetime = Duration.seconds(60)
  static let recordsPerTag = 128
  /// Records of one address, or of one IPv6 network of 64 bits: a household, a hotel.
  static let recordsPerSource = 64
  public static let recordLimit = 4096
  /// Sources whose rates are remembered. When more speak, one that has spoken longest ago is
  /// forgotten: an attacker with thousands of addresses does not use up what others have.
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
    /// Of the registration: what it is told later bears this.
    var token: UInt64
    var renewedAt: Instant
    /// How often the others under the tag are told of it although it is no news: the announce may
    /// say something new, which only they can read.
    var notifications: TokenBucket
  }

  private let cookieKey: SecretBytes
  private var records = PeerTable<Key, Record>()
  private var perSource = PeerTable<Source, Int>()
  private var budgets = PeerTable<Source, Budget>()
  private var commonBudget = TokenBucket(capacity: 2000, perSecond: 2000)
  private var sweepAt: Instant?
  public private(set) var counters = RendezvousCounters()

  public init(entropy: Entropy) {
    var entropy = entropy
    cookieKey = entropy.secret(32, in: .heap)
  }

  public var count: Int { records.count }
  public var deadline: Instant? { sweepAt }

  /// A household that comes home at once, then each of its members every 5 s.
  private struct Budget: Sendable {
    var bucket = TokenBucket(capacity: 64, perSecond: 16)
    var askedAt: Instant
  }

  // MARK: Inputs

  /// `seconds` is since 1970, by the host's clock.
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

  /// Forgets what was not renewed; harmless before `deadline`.
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
    return register(registration, from: source, at: now)
  }

  /// The cookie is this source's, and the period the one of now or, for a while, the one before.
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
    // A signature is checked in some 60 us: all of them together take an eighth of a core at most.
    return isAllowed && commonBudget.take(at: now)
  }

  private mutating func forgetBudget() {
    if let oldest = budgets.min(by: { $0.value.askedAt < $1.value.askedAt }) {
      budgets[oldest.key] = nil
    }
  }

  // MARK: Records

  /// Four at once, then one every 4 s: one question is many answers.
  private static let notifications = TokenBucket(capacity: 4, perSecond: 0.25)

  private mutating func register(
    _ registration: RendezvousRegistration, from source: Address, at now: Instant
  ) -> [Output] {
    counters.registered += 1
    let key = Key(tag: registration.tag, slot: registration.slot)
    let others = keys(under: registration.tag).filter { $0 != key }
    guard !registration.announcement.isEmpty else {
      remove(key)
      return acknowledge(registration, [], to: source)
    }
    let isNews = records[key]?.seen != source
    if isNews {
      remove(key)
      guard makeRoom(for: source, beside: others) else {
        counters.refused += 1
        return []
      }
    }
    var notifications = records[key]?.notifications ?? Self.notifications
    let isNotified = isNews || registration.wantsRecords && notifications.take(at: now)
    records[key] = Record(
      announcement: registration.announcement, seen: source, token: registration.token,
      renewedAt: now,
      notifications: notifications)
    if isNews { perSource[Source(source)] = (perSource[Source(source)] ?? 0) + 1 }
    sweepAt = sweepAt ?? now + Self.lifetime / 4
    let wanted = registration.wantsRecords ? others.compactMap { records[$0] } : []
    var outputs = acknowledge(registration, wanted, to: source)
    // Who is there already is told, so that both knock at the same time; also of who still looks
    // for somebody, since the first word may have gone to where a router no longer lets it in.
    if isNotified {
      for other in others.compactMap({ records[$0] }) {
        let news = RendezvousRecords(
          token: other.token,
          records: [.init(seen: source, announcement: registration.announcement)])
        outputs.append(.send(news.encoded(), to: other.seen))
      }
    }
    return outputs
  }

  private func acknowledge(
    _ registration: RendezvousRegistration, _ records: [Record], to source: Address
  ) -> [Output] {
    RendezvousRecords.datagrams(
      token: registration.token,
      records.map { .init(seen: $0.seen, announcement: $0.announcement) }
    ).map { .send($0, to: source) }
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

  /// Whether one more record from `source` is kept; in a full house those who hold most give way,
  /// and where all hold little, what was renewed longest ago.
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

  /// A cookie counts in the slot in which it was made and in the next.
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

/// Whom a household shares: an IPv4 address, or 64 bits of an IPv6 one.
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

/// What came to a rendezvous, and what became of it.
public struct RendezvousCounters: Equatable, Sendable {
  public var hellos: UInt64 = 0
  public var registered: UInt64 = 0
  public var malformed: UInt64 = 0
  /// Registrations without a cookie of this address, or of another time.
  public var wrongCookie: UInt64 = 0
  public var overBudget: UInt64 = 0
  /// Registrations that the tag's key did not sign.
  public var forged: UInt64 = 0
  /// Records for which there was no room.
  public var refused: UInt64 = 0

  public init() {}
}

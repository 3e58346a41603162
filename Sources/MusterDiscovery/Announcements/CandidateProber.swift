import MusterBase
import MusterCrypto

/// UDP hole punching (RFC 5128 section 3.3): announcements to the candidate addresses of peers.
/// Both ends send announcements at the same time, which opens their NATs for each other.
struct CandidateProber: Sendable {
  private struct Candidates: Sendable {
    var addresses: [Address]
    var step = 0
    var nextAt: Instant
    var learnedAt: Instant
    /// The time at which the peer counts as silent; nil once it has answered or was reported.
    var silentAt: Instant?
  }

  static let capacity = 64
  /// The maximum number of addresses per peer: the addresses of an announcement, and four reported
  /// by rendezvous servers.
  static let addressLimit = Limits.addresses + 4
  /// The time after which a candidate expires: three rendezvous rounds (5 s each) without a report.
  private static let lifetime = Duration.seconds(15)
  /// The time without an answer after which a peer counts as silent: six announcements to each of
  /// its addresses.
  static let patience = Duration.seconds(10)
  /// The rate limit for reports of silent peers: with the channel's key, a guest can register peers
  /// that do not exist.
  private var reports = TokenBucket(capacity: 8, perSecond: 0.1)
  /// The rate limit for all announcements, which bounds the traffic that false reports can direct
  /// at a victim.
  private var budget = TokenBucket(capacity: 256, perSecond: 64)
  /// The rate limit for announcements to one host, or one IPv6 /64: more than the members of one
  /// household need.
  private static let hostBudget = TokenBucket(capacity: 32, perSecond: 8)
  private static let hostLimit = 256
  private var hosts = PeerTable<Source, TokenBucket>()
  /// The highest backoff step with which probing continues when a known peer has new candidates;
  /// step 2 is 1 s, slower than the 0.25 s of a new peer.
  private static let laterStep = 2
  private var entries = PeerTable<SessionLinkID, Candidates>()

  var isEmpty: Bool { entries.isEmpty }

  func isProbing(under key: KeyID) -> Bool { entries.contains { $0.key.key == key } }

  var deadline: Instant? {
    entries.compactMap { soonest($0.value.nextAt, $0.value.silentAt) }.min()
  }

  /// Adds `addresses`, best first, at which `peer` may be reachable according to a report.
  mutating func learned(_ peer: SessionLinkID, _ addresses: [Address], at now: Instant) {
    var known = entries[peer]?.addresses ?? []
    let new = addresses.reduce(into: [Address]()) { new, address in
      guard address.isUnicast else { return }
      if !known.contains(address), !new.contains(address) { new.append(address) }
    }
    if new.isEmpty, let position = entries.index(of: peer) {
      entries[at: position].learnedAt = now
      return
    }
    if entries.index(of: peer) == nil, entries.count >= Self.capacity { forgetOldest() }
    known = Array((new + known).prefix(Self.addressLimit))
    let former = entries[peer]
    entries[peer] = Candidates(
      addresses: known, step: former.map { min($0.step, Self.laterStep) } ?? 0, nextAt: now,
      learnedAt: now, silentAt: former.map(\.silentAt) ?? now + Self.patience)
  }

  /// Notes that a peer has answered at one of its addresses.
  mutating func answered(_ peer: SessionLinkID) {
    _ = entries.update(peer) { $0.silentAt = nil }
  }

  /// Takes the peers that have been silent for `patience`, with the addresses that were tried.
  mutating func takeSilent(at now: Instant) -> [(peer: SessionLinkID, addresses: [Address])] {
    var found: [(peer: SessionLinkID, addresses: [Address])] = []
    for (peer, entry) in entries {
      guard let due = entry.silentAt, due <= now else { continue }
      _ = entries.update(peer) { $0.silentAt = nil }
      if reports.take(at: now) { found.append((peer, entry.addresses)) }
    }
    return found
  }

  /// Stops probing a peer, because its link is up or no longer needed.
  mutating func end(_ peer: SessionLinkID) { entries[peer] = nil }

  mutating func end(key: KeyID) {
    for peer in entries.keys where peer.key == key { entries[peer] = nil }
  }

  /// Takes the addresses to probe now, grouped by channel key; all addresses of a group are sent
  /// the same announcement. Removes expired candidates and reschedules the remaining candidates.
  mutating func takeDue(at now: Instant, jitter: inout PRNG) -> [(KeyID, [Address])] {
    for peer in entries.keys {
      if let entry = entries[peer], now - entry.learnedAt >= Self.lifetime {
        entries[peer] = nil
      }
    }
    var due: [(KeyID, [Address])] = []
    for index in 0..<entries.count {
      let entry = entries[at: index]
      guard entry.nextAt <= now + ConfiguredPeers.coalescing else { continue }
      let wait = Backoff.interval(step: entry.step)
      entries[at: index].step += 1
      entries[at: index].nextAt = now + jitter.jittered(wait, by: Backoff.jitter)
      let addresses = entry.addresses.filter { mayProbe(at: $0, now) && budget.take(at: now) }
      let key = entries.keys[index].key
      if let position = due.firstIndex(where: { $0.0 == key }) {
        due[position].1 += addresses.filter { !due[position].1.contains($0) }
      } else {
        due.append((key, addresses))
      }
    }
    return due
  }

  private mutating func mayProbe(at address: Address, _ now: Instant) -> Bool {
    let host = Source(address)
    if hosts.index(of: host) == nil {
      if hosts.count >= Self.hostLimit { hosts = PeerTable() }
      hosts[host] = Self.hostBudget
    }
    return hosts.update(host) { $0.take(at: now) } ?? false
  }

  private mutating func forgetOldest() {
    let oldest = entries.min { $0.value.learnedAt < $1.value.learnedAt }
    if let oldest { entries[oldest.key] = nil }
  }
}

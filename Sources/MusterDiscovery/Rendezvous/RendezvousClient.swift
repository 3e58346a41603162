import MusterBase
import MusterCrypto
import MusterWire

/// The rendezvous at which this node leaves its announces, and how far it is with each.
///
/// A round is a hello, its cookie, and a registration for each channel, which is acknowledged. The
/// first rounds follow each other quickly, so that a lost word costs seconds at most; later ones
/// keep the records, and the way through a NAT, alive.
struct RendezvousClient: Sendable {
  enum Step: Equatable {
    case hello(token: UInt64, to: Address)
    /// Registers these channels with the cookie got there.
    case register([KeyID], RendezvousCookie, wantsRecords: Bool, to: Address)
  }

  private struct Server: Sendable {
    let address: Address
    /// Sent back by the rendezvous: nobody who cannot see it speaks in its name.
    let token: UInt64
    var cookie: RendezvousCookie?
    var cookieAt = Instant.zero
    /// Registrations that were sent with it.
    var cookieUses = 0
    /// Channels whose registration has not been acknowledged in this round.
    var pending: [KeyID] = []
    var rounds = 0
    /// Attempts in a row without an answer.
    var failures = 0
    var nextAt: Instant
    /// Where the rendezvous sees this node.
    var seen: Address?
  }

  /// Twelve in the lifetime of a record. A rendezvous that has forgotten all, and a router that has
  /// forgotten this node, say nothing of it: only the next round mends that.
  private static let interval = RendezvousServer.lifetime / 12
  /// Until the second and the third round.
  private static let eager = [Duration.seconds(1), .seconds(3)]
  private static let longestBackoff = Duration.seconds(5)
  /// Every so many rounds all records are asked for again.
  private static let listingInterval = 12
  /// How long a cookie is used; the rendezvous takes it for 30 s at least.
  private static let cookieLifetime = Duration.seconds(25)
  /// A registration that often unanswered may be from another address by now, or the rendezvous
  /// another one.
  private static let cookieUses = 3

  private var servers: [Server] = []
  /// While somebody is known who cannot be reached directly: every round asks for all records.
  var isSeeking = false

  var deadline: Instant? { servers.map(\.nextAt).min() }
  /// Where this node is seen from outside, as the rendezvous say.
  var outside: [Address] {
    servers.compactMap(\.seen).reduce(into: []) { if !$0.contains($1) { $0.append($1) } }
  }

  /// Those that have answered.
  var answering: [Address] { servers.filter { $0.seen != nil }.map(\.address) }

  /// Replaces the list; those that were in it before go on as they are.
  mutating func set(_ addresses: [Address], entropy: inout Entropy, at now: Instant) {
    var next: [Server] = []
    for address in addresses where address.isUnicast && next.count < Limits.rendezvous {
      guard !next.contains(where: { $0.address == address }) else { continue }
      let known = servers.first { $0.address == address }
      next.append(known ?? Server(address: address, token: entropy.u64(), nextAt: now))
    }
    servers = next
  }

  /// There is news for everyone, or this node is elsewhere: all rounds begin anew.
  mutating func restart(at now: Instant) {
    for index in servers.indices {
      servers[index].rounds = 0
      servers[index].failures = 0
      servers[index].pending = []
      servers[index].cookie = nil
      servers[index].nextAt = now
    }
  }

  /// Somebody has fallen silent, who may be elsewhere, as this node may: rounds follow each other
  /// quickly again, unless they still do.
  mutating func hurry(at now: Instant) {
    for index in servers.indices where servers[index].rounds > Self.eager.count {
      servers[index].rounds = 0
      servers[index].nextAt = now
    }
  }

  /// What is due now; the next steps are then scheduled.
  mutating func takeDue(at now: Instant, jitter: inout PRNG) -> [Step] {
    var steps: [Step] = []
    for index in servers.indices where servers[index].nextAt <= now {
      steps.append(step(index, at: now, jitter: &jitter))
    }
    return steps
  }

  private mutating func step(_ index: Int, at now: Instant, jitter: inout PRNG) -> Step {
    let wait = min(Backoff.first * (1 << min(servers[index].failures, 8)), Self.longestBackoff)
    servers[index].nextAt = now + jitter.jittered(wait, by: Backoff.jitter)
    servers[index].failures += 1
    let server = servers[index]
    let isFresh = now - server.cookieAt < Self.cookieLifetime
    if let cookie = server.cookie, !server.pending.isEmpty, isFresh,
      server.cookieUses < Self.cookieUses
    {
      servers[index].cookieUses += 1
      return .register(
        server.pending, cookie, wantsRecords: wantsRecords(server), to: server.address)
    }
    servers[index].cookie = nil
    return .hello(token: server.token, to: server.address)
  }

  private func wantsRecords(_ server: Server) -> Bool {
    isSeeking || server.rounds <= Self.eager.count || server.rounds % Self.listingInterval == 0
  }

  /// A cookie has come: all of `channels` are to be registered with it.
  mutating func receive(
    _ cookie: RendezvousCookie, from source: Address, keys: [KeyID], at now: Instant
  ) -> Step? {
    guard let index = index(source, cookie.token), servers[index].cookie == nil else { return nil }
    servers[index].cookie = cookie
    servers[index].cookieAt = now
    servers[index].cookieUses = 1
    servers[index].pending = keys
    servers[index].seen = cookie.seen.isUnicast ? cookie.seen.withoutZone : nil
    servers[index].nextAt = now + Backoff.first
    guard !keys.isEmpty else {
      finishRound(index, at: now)
      return nil
    }
    return .register(
      keys, cookie, wantsRecords: wantsRecords(servers[index]), to: servers[index].address)
  }

  /// Whether an answer about `channel` is one that this rendezvous was asked for.
  mutating func acknowledge(
    _ key: KeyID, from source: Address, at now: Instant
  ) -> Bool {
    guard let index = servers.firstIndex(where: { $0.address == source }) else { return false }
    if let position = servers[index].pending.firstIndex(of: key) {
      servers[index].pending.remove(at: position)
      if servers[index].pending.isEmpty { finishRound(index, at: now) }
    }
    return true
  }

  private mutating func finishRound(_ index: Int, at now: Instant) {
    let rounds = servers[index].rounds
    servers[index].rounds += 1
    servers[index].failures = 0
    servers[index].nextAt = now + (rounds < Self.eager.count ? Self.eager[rounds] : Self.interval)
  }

  private func index(_ source: Address, _ token: UInt64) -> Int? {
    servers.firstIndex { $0.address == source && $0.token == token }
  }

  /// A cookie that is good for a last word, with where it goes.
  func deregistrations(at now: Instant) -> [(cookie: RendezvousCookie, to: Address)] {
    servers.compactMap { server in
      guard let cookie = server.cookie, now - server.cookieAt < Self.cookieLifetime else {
        return nil
      }
      return (cookie, server.address)
    }
  }
}

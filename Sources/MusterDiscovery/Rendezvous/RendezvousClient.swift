import MusterBase
import MusterCrypto
import MusterWire

/// The rendezvous servers at which this node registers, and the state of each registration.
///
/// A round consists of a hello, a cookie in reply, and one acknowledged registration per channel.
/// The first rounds are in quick succession, so that a lost datagram delays discovery by seconds at
/// most; later rounds keep the records and the NAT mappings alive.
struct RendezvousClient: Sendable {
  enum Step: Equatable {
    case hello(token: UInt64, to: Address)
    /// Register these channels at a rendezvous server, with the server's cookie.
    case register([KeyID], RendezvousCookie, wantsRecords: Bool, to: Address)
  }

  private struct Server: Sendable {
    var contact: Contact
    /// A random value that the server echoes in its replies, as protection against off-path
    /// spoofing.
    let token: UInt64
    var cookie: RendezvousCookie?
    var cookieAt = Instant.zero
    /// The number of registrations sent with this cookie.
    var cookieUses = 0
    /// The channels whose registration has not been acknowledged in this round.
    var pending: [KeyID] = []
    var rounds = 0
    /// The number of consecutive attempts without an answer.
    var failures = 0
    var nextAt: Instant
    /// This node's address as observed by the server.
    var seen: Address?

    var address: Address { contact.address }

    /// Begins with the first round again, and a new cookie.
    mutating func restart(at now: Instant) {
      rounds = 0
      failures = 0
      pending = []
      cookie = nil
      nextAt = now
    }
  }

  /// The interval of 5 s between rounds, twelve in the lifetime of a record. Neither a restart of a
  /// server nor the loss of a NAT mapping is reported, so only the next round recovers from either.
  private static let interval = RendezvousServer.lifetime / 12
  /// The intervals before the second and the third round.
  private static let eager = [Duration.seconds(1), .seconds(3)]
  private static let longestBackoff = Duration.seconds(5)
  /// The number of rounds after which all records are requested again.
  private static let listingInterval = 12
  /// The age up to which a cookie is used; a server accepts it for at least 30 s.
  private static let cookieLifetime = Duration.seconds(25)
  /// The number of unanswered uses after which a cookie is renewed, because this node's address may
  /// have changed, or the server may have restarted.
  private static let cookieUses = 3

  private var servers: [Server] = []
  /// Whether any known peer lacks a direct path; if so, every round requests all records.
  var isSeeking = false

  var deadline: Instant? { servers.map(\.nextAt).min() }
  /// This node's server-reflexive addresses, as reported by the servers.
  var outside: [Address] {
    servers.compactMap(\.seen).reduce(into: []) { if !$0.contains($1) { $0.append($1) } }
  }

  /// The addresses of the servers that have reported a usable address of this node.
  var answering: [Address] { servers.filter { $0.seen != nil }.map(\.address) }

  /// Replaces the list of servers; known ones keep their state, and restart if they serve other
  /// channels than before.
  mutating func set(_ contacts: [Contact], entropy: inout Entropy, at now: Instant) {
    servers = Contact.merged(contacts, limit: Limits.rendezvous).map { contact in
      guard var known = servers.first(where: { $0.address == contact.address }) else {
        return Server(contact: contact, token: entropy.u64(), nextAt: now)
      }
      if known.contact != contact {
        known.contact = contact
        known.restart(at: now)
      }
      return known
    }
  }

  /// Restarts the rounds at every server after a change to the announcement or to this node's
  /// address.
  mutating func restart(at now: Instant) {
    for index in servers.indices { servers[index].restart(at: now) }
  }

  /// Repeats the quick first rounds, unless they are still in progress, because a peer has become
  /// silent and the peer or this node may have moved.
  mutating func hurry(at now: Instant) {
    for index in servers.indices where servers[index].rounds > Self.eager.count {
      servers[index].rounds = 0
      servers[index].nextAt = now
    }
  }

  /// Takes the steps that are due, and schedules the next steps.
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

  /// Handles a cookie and returns the step that uses the cookie to register those of the `channels`
  /// that the server serves; nil if the cookie was not requested or there are none.
  mutating func receive(
    _ cookie: RendezvousCookie, from source: Address, channels: [(key: KeyID, channel: ChannelID)],
    at now: Instant
  ) -> Step? {
    guard let index = index(source, cookie.token), servers[index].cookie == nil else { return nil }
    let keys = channels.filter { servers[index].contact.serves($0.channel) }.map(\.key)
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

  /// Records the acknowledgement of a registration; false if `source` is not a server in use.
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

  /// The cookies that are still valid for a withdrawal from a channel, each with the address of its
  /// server.
  func deregistrations(
    from channel: ChannelID, at now: Instant
  ) -> [(cookie: RendezvousCookie, to: Address)] {
    servers.compactMap { server in
      guard server.contact.serves(channel), let cookie = server.cookie,
        now - server.cookieAt < Self.cookieLifetime
      else { return nil }
      return (cookie, server.address)
    }
  }
}

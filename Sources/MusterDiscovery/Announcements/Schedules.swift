import MusterBase

/// Exponential backoff for announcements and rendezvous requests.
enum Backoff {
  static let first = Duration.milliseconds(250)
  static let longest = Duration.seconds(5)
  /// A jitter of ±20 % spreads nodes that start together, for example after a power failure.
  static let jitter = 0.2

  /// The interval after a step: 0.25 s, doubling up to 5 s, without jitter.
  static func interval(step: Int) -> Duration {
    step >= settledStep ? longest : first * (1 << max(step, 0))
  }

  /// The first step at which the interval no longer grows.
  static let settledStep = 5
}

/// The schedule of announcements to the local networks: at once, then backing off to every 5 s.
struct BroadcastSchedule: Sendable {
  private(set) var nextAt: Instant
  /// The backoff step, for intervals of 0.25, 0.5, 1 and 2 s, then 5 s.
  private var step = 0
  private static let settledStep = 4

  init(startingAt now: Instant) { nextAt = now }

  mutating func restart(at now: Instant) { self = BroadcastSchedule(startingAt: now) }

  /// Whether an announcement is due; schedules the next one.
  mutating func takeDue(at now: Instant, jitter: inout PRNG) -> Bool {
    guard nextAt <= now else { return false }
    let interval =
      step < Self.settledStep ? Backoff.interval(step: step) : Backoff.longest
    nextAt = now + jitter.jittered(interval, by: Backoff.jitter)
    step = min(step + 1, Self.settledStep)
    return true
  }
}

/// The configured peers' addresses, which receive announcements as long as the node runs.
struct ConfiguredPeers: Sendable {
  /// The interval for linked peers, which need announcements only for newly opened channels and new
  /// addresses.
  static let linkedInterval = Duration.seconds(30)
  /// The time within which due peers share one announcement, and thus one counter.
  static let coalescing = Duration.milliseconds(50)

  private struct ConfiguredPeer: Sendable {
    var contact: Contact
    var isLinked: Bool
    var step: Int
    var sentAt: Instant?
    var nextAt: Instant

    var address: Address { contact.address }

    init(_ contact: Contact, isLinked: Bool, dueAt now: Instant) {
      self.contact = contact
      self.isLinked = isLinked
      step = isLinked ? Backoff.settledStep : 0
      nextAt = now
    }

    mutating func restart(at now: Instant) {
      step = 0
      nextAt = now
    }
  }

  private var peers: [ConfiguredPeer] = []

  var addresses: [Address] { peers.map(\.address) }
  var deadline: Instant? { peers.map(\.nextAt).min() }

  /// Whether a contact that serves the channel has no link.
  func hasUnlinked(for channel: ChannelID) -> Bool {
    peers.contains { !$0.isLinked && $0.contact.serves(channel) }
  }

  /// Replaces the list; known contacts keep their schedule, and new ones are due at once, like
  /// those that serve other channels than before.
  mutating func set(_ contacts: [Contact], linked: [Address], at now: Instant) {
    peers = Contact.merged(contacts, limit: Limits.configuredPeers).map { contact in
      guard var known = peers.first(where: { $0.address == contact.address }) else {
        return ConfiguredPeer(contact, isLinked: linked.contains(contact.address), dueAt: now)
      }
      if known.contact != contact {
        known.contact = contact
        known.restart(at: now)
      }
      return known
    }
  }

  /// Slows down announcements to linked peers, and restarts the backoff for peers that lost their
  /// link.
  mutating func setLinked(_ linked: [Address]) {
    for index in peers.indices {
      let isLinked = linked.contains(peers[index].address)
      guard isLinked != peers[index].isLinked else { continue }
      peers[index].isLinked = isLinked
      peers[index].step = isLinked ? Backoff.settledStep : 0
      guard let sentAt = peers[index].sentAt else { continue }
      peers[index].nextAt = sentAt + (isLinked ? Self.linkedInterval : Backoff.first)
    }
  }

  /// Restarts the backoff for all peers, linked or not, because the announcement has changed.
  mutating func restart(at now: Instant) {
    for index in peers.indices { peers[index].restart(at: now) }
  }

  /// Takes the contacts that are due for an announcement, and schedules the next announcements.
  mutating func takeDue(at now: Instant, jitter: inout PRNG) -> [Contact] {
    guard let deadline, deadline <= now else { return [] }
    var due: [Contact] = []
    for index in peers.indices where peers[index].nextAt <= now + Self.coalescing {
      due.append(peers[index].contact)
      let interval = Self.interval(of: peers[index])
      peers[index].sentAt = now
      peers[index].nextAt = now + jitter.jittered(interval, by: Backoff.jitter)
      peers[index].step = min(peers[index].step + 1, Backoff.settledStep)
    }
    return due
  }

  private static func interval(of peer: ConfiguredPeer) -> Duration {
    peer.isLinked && peer.step >= Backoff.settledStep
      ? linkedInterval : Backoff.interval(step: peer.step)
  }
}

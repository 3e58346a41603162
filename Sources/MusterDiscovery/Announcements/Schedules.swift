import MusterBase

/// How long until something is said again.
enum Backoff {
  static let first = Duration.milliseconds(250)
  static let longest = Duration.seconds(5)
  /// Spreads nodes that started together, as after a power cut.
  static let jitter = 0.2

  /// 0.25 s doubling to 5 s, the jitter not yet added.
  static func interval(step: Int) -> Duration {
    step >= settledStep ? longest : first * (1 << max(step, 0))
  }

  /// The step from which on the interval no longer grows.
  static let settledStep = 5
}

/// When a channel is announced to the local networks: at once, then backing off.
struct BroadcastSchedule: Sendable {
  private(set) var nextAt: Instant
  /// 0.25, 0.5, 1, 2 s after one another, then every 5 s.
  private var step = 0
  private static let settledStep = 4

  init(startingAt now: Instant) { nextAt = now }

  mutating func restart(at now: Instant) { self = BroadcastSchedule(startingAt: now) }

  /// Whether an announce is due; the next one is then scheduled.
  mutating func takeDue(at now: Instant, jitter: inout PRNG) -> Bool {
    guard nextAt <= now else { return false }
    let interval =
      step < Self.settledStep ? Backoff.interval(step: step) : Backoff.longest
    nextAt = now + jitter.jittered(interval, by: Backoff.jitter)
    step = min(step + 1, Self.settledStep)
    return true
  }
}

/// Addresses given by the user, announced to for ever.
struct ConfiguredPeers: Sendable {
  /// A linked peer only needs to hear of a channel opened or an address gained meanwhile.
  static let linkedInterval = Duration.seconds(30)
  /// Peers due this soon go with the ones due now, so that one announce, and one counter, does.
  static let coalescing = Duration.milliseconds(50)

  private struct Peer: Sendable {
    let address: Address
    var isLinked: Bool
    var step: Int
    var sentAt: Instant?
    var nextAt: Instant

    init(_ address: Address, isLinked: Bool, dueAt now: Instant) {
      self.address = address
      self.isLinked = isLinked
      step = isLinked ? Backoff.settledStep : 0
      nextAt = now
    }
  }

  private var peers: [Peer] = []

  var addresses: [Address] { peers.map(\.address) }
  var deadline: Instant? { peers.map(\.nextAt).min() }

  /// Replaces the list; peers that were in it before keep their pace, new ones are due at once.
  mutating func set(_ addresses: [Address], linked: [Address], at now: Instant) {
    var next: [Peer] = []
    for address in addresses where next.count < Limits.configuredPeers {
      guard address.isUnicast, !next.contains(where: { $0.address == address }) else { continue }
      let known = peers.first { $0.address == address }
      next.append(known ?? Peer(address, isLinked: linked.contains(address), dueAt: now))
    }
    peers = next
  }

  /// Slows down for peers that are linked now, and begins anew for those that no longer are.
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

  /// Everything is due at once and backs off from the start, linked or not: there is news for all.
  mutating func restart(at now: Instant) {
    for index in peers.indices {
      peers[index].step = 0
      peers[index].nextAt = now
    }
  }

  /// The addresses to announce to now; their next times are then scheduled.
  mutating func takeDue(at now: Instant, jitter: inout PRNG) -> [Address] {
    guard let deadline, deadline <= now else { return [] }
    var due: [Address] = []
    for index in peers.indices where peers[index].nextAt <= now + Self.coalescing {
      due.append(peers[index].address)
      let interval = Self.interval(of: peers[index])
      peers[index].sentAt = now
      peers[index].nextAt = now + jitter.jittered(interval, by: Backoff.jitter)
      peers[index].step = min(peers[index].step + 1, Backoff.settledStep)
    }
    return due
  }

  private static func interval(of peer: Peer) -> Duration {
    peer.isLinked && peer.step >= Backoff.settledStep
      ? linkedInterval : Backoff.interval(step: peer.step)
  }
}

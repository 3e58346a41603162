import MusterBase

/// When to ask the gateway for a mapping, again and again, and which one there is. A value: whoever
/// drives it asks `begin(at:)` every few seconds.
package struct PortKeeping: Sendable {
  /// What the gateway gave last.
  package private(set) var mapping: PortMapping?
  /// Until when that one holds, even if the gateway says nothing more.
  private var goodUntil = Instant.zero
  private var isAsking = false
  private var dueAt = Instant.zero

  /// A gateway that offered nothing may have been restarting, or be another one by now.
  package static let retry = Duration.seconds(300)
  /// However short a lifetime the gateway gives: it must not keep this node busy.
  package static let soonestRenewal = Duration.seconds(60)
  /// A mapping that lasts for ever is gone when the gateway restarts.
  package static let latestRenewal = Duration.seconds(3600)

  package init() {}

  /// Where others can come in, if they can.
  package var announced: Address? {
    mapping.flatMap { $0.leadsOutside ? $0.outside : nil }
  }

  /// Whether to ask now; if so, `answered` has to follow.
  package mutating func begin(at now: Instant) -> Bool {
    guard !isAsking, now >= dueAt else { return false }
    isAsking = true
    dueAt = Instant(nanoseconds: .max)
    return true
  }

  /// Takes in what was answered; true if the announced address is another now. Where nothing was,
  /// the mapping of before stays until it runs out: questions get lost, too.
  package mutating func answered(_ answer: PortMapping?, at now: Instant) -> Bool {
    let before = announced
    if let answer {
      mapping = answer
      goodUntil = answer.lifetime > .zero ? now + answer.lifetime : Instant(nanoseconds: .max)
    } else if now >= goodUntil {
      mapping = nil
    }
    isAsking = false
    // Addresses that changed meanwhile have it asked at once.
    dueAt = min(dueAt, now + Self.wait(after: answer))
    return announced != before
  }

  /// This machine's addresses changed: there may be another gateway, that knows nothing of before.
  package mutating func addressesChanged(at now: Instant) {
    dueAt = now
    goodUntil = now
  }

  /// RFC 6886 3.3: renewed at half of the lifetime.
  private static func wait(after answer: PortMapping?) -> Duration {
    guard let answer else { return retry }
    guard answer.lifetime > .zero else { return latestRenewal }
    return min(max(answer.lifetime / 2, soonestRenewal), latestRenewal)
  }
}

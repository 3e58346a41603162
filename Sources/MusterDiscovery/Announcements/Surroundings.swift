import MusterBase

/// What this node hears of others without finding any, which hints at why it is alone.
///
/// Sources of datagrams can be forged, so these are hints for people and nothing else.
public struct Surroundings: Equatable, Sendable {
  /// How many datagrams make a hint: one or two may be left over from a run that has just ended.
  package static let enough = 3

  private var unreadable = 0
  private var unreadableFrom: Address?
  private var asked = 0
  private var askedAt: Address?
  private var hasFound = false

  package init() {}

  /// The last source of the announcements that no key of this node decrypts.
  public var otherChannel: Address? { unreadable >= Self.enough ? unreadableFrom : nil }
  /// The last source of the members' announcements, if no member has answered a challenge since
  /// several were sent.
  public var unanswered: Address? { asked >= Self.enough ? askedAt : nil }
  /// Whether no announcement of anybody else has arrived.
  public var isNothing: Bool { unreadable + asked == 0 && !hasFound }

  package mutating func noteUnreadable(from source: Address) {
    unreadable = min(unreadable + 1, Self.enough)
    unreadableFrom = Self.shown(source, after: unreadableFrom)
  }

  package mutating func challenged(_ source: Address) {
    asked = min(asked + 1, Self.enough)
    askedAt = Self.shown(source, after: askedAt)
  }

  package mutating func found() {
    hasFound = true
    asked = 0
  }

  /// The source that tells people more: of the addresses of one host the IPv4 address.
  private static func shown(_ source: Address, after other: Address?) -> Address {
    guard case .v4 = other?.host, case .v6 = source.host else { return source }
    return other ?? source
  }
}

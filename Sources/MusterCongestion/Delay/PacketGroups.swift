import MusterBase

/// Gathers packets into groups that were sent together, since the packets of a burst queue behind
/// one another, and compares each group with the one before ("inter-arrival" in WebRTC).
package struct PacketGroups: Sendable {
  /// The packets of a group are sent within this time.
  static let span = Duration.milliseconds(5)
  /// A packet that arrives this soon after the last one, and took less time, left a queue together
  /// with it, as on a wireless link that stood still. Such a group lasts at most `longestBurst`.
  static let burst = Duration.milliseconds(5)
  static let longestBurst = Duration.milliseconds(100)
  /// A step of the receiver's clock against the sender's, after which old groups mean nothing.
  static let clockStep = Duration.seconds(3)

  /// The intervals between two groups.
  package struct Interval: Equatable {
    package let sending: Duration
    package let arriving: Duration
    /// The arrival of the later group.
    package let arrivedAt: Instant

    package init(sending: Duration, arriving: Duration, arrivedAt: Instant) {
      self.sending = sending
      self.arriving = arriving
      self.arrivedAt = arrivedAt
    }
  }

  private struct Group {
    let firstSentAt: Instant
    var lastSentAt: Instant
    let firstArrivedAt: Instant
    var lastArrivedAt: Instant
  }

  private var previous: Group?
  private var current: Group?

  package init() {}

  /// Adds a packet, in the order of arrival. Returns the interval between the last two complete
  /// groups if the packet begins a new one.
  package mutating func add(sentAt: Instant, arrivedAt: Instant) -> Interval? {
    let new = Group(
      firstSentAt: sentAt, lastSentAt: sentAt, firstArrivedAt: arrivedAt, lastArrivedAt: arrivedAt)
    guard var group = current else {
      current = new
      return nil
    }
    // A packet that was overtaken says nothing about its own group any more.
    guard sentAt >= group.firstSentAt else { return nil }
    if belongs(sentAt: sentAt, arrivedAt: arrivedAt, to: group) {
      group.lastSentAt = max(group.lastSentAt, sentAt)
      group.lastArrivedAt = max(group.lastArrivedAt, arrivedAt)
      current = group
      return nil
    }
    defer { (previous, current) = (group, new) }
    guard let previous else { return nil }
    let interval = Interval(
      sending: group.lastSentAt - previous.lastSentAt,
      arriving: group.lastArrivedAt - previous.lastArrivedAt, arrivedAt: group.lastArrivedAt)
    let step = interval.arriving - interval.sending
    let isSane = interval.arriving >= .zero && abs(step.inSeconds) < Self.clockStep.inSeconds
    return isSane ? interval : nil
  }

  private func belongs(sentAt: Instant, arrivedAt: Instant, to group: Group) -> Bool {
    if sentAt - group.firstSentAt <= Self.span { return true }
    let wait = arrivedAt - group.lastArrivedAt
    return wait >= .zero && wait <= Self.burst && wait < sentAt - group.lastSentAt
      && arrivedAt - group.firstArrivedAt < Self.longestBurst
  }
}

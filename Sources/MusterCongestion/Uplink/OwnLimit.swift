import MusterBase

/// Whether a path that shares an uplink with others is taken to carry less than its share.
///
/// A queue at the uplink delays the packets of all paths alike, and the share follows from what the
/// uplink carries; so the path's own estimate, which falls with every such queue, counts only where
/// the path itself is narrow.
public struct OwnLimit: Sendable {
  /// By how much longer than on the other paths the packets wait where a path itself is narrow.
  fileprivate static let queue = Duration.milliseconds(25)
  /// The share of packets that are lost without a queue where it is.
  fileprivate static let loss = 0.1
  /// The time for which this has to last: the reports on the other paths may be 250 ms old.
  private static let patience = Duration.milliseconds(600)
  /// The time for which the path's own estimate counts from then on. It is twice as long each time
  /// that its share is tried again in vain.
  private static let pauses = Duration.seconds(5)...Duration.seconds(80)
  /// The time after which the share is no longer tried in vain.
  private static let memory = Duration.seconds(60)

  private var narrowSince: Instant?
  private var until: Instant?
  private var pause = pauses.lowerBound

  /// Creates the state of a path that carries its share.
  public init() {}

  /// Takes whether the path itself looks narrow, or `isFound` to be: while packets waited on it,
  /// they did not on the others. Returns whether its own estimate counts.
  public mutating func update(isNarrow: Bool, isFound: Bool, at now: Instant) -> Bool {
    if let until {
      guard now >= until else { return true }
      if now - until > Self.memory { (self.until, pause) = (nil, Self.pauses.lowerBound) }
    }
    narrowSince = isNarrow ? narrowSince ?? now : nil
    guard isFound || narrowSince.map({ now - $0 >= Self.patience }) ?? false else { return false }
    narrowSince = nil
    if until != nil { pause = min(pause + pause, Self.pauses.upperBound) }
    until = now + pause
    return true
  }
}

extension PathController {
  /// Whether the path itself looks narrow, beside others that share its uplink, of which the
  /// shortest queue is given.
  public func isNarrow(besideQueue shortest: Duration) -> Bool {
    !admitsVideo || lossWithoutQueue > OwnLimit.loss
      || queueDelay.map { $0 - shortest > OwnLimit.queue } ?? false
  }
}

import MusterBase

/// Counters of the datagrams that a rendezvous server received, by outcome.
public struct RendezvousCounters: Equatable, Sendable {
  /// Hellos answered with a cookie.
  public var hellos: UInt64 = 0
  /// Registrations with a valid cookie and signature, including withdrawals and those in `refused`.
  public var registered: UInt64 = 0
  /// Malformed hellos and registrations.
  public var malformed: UInt64 = 0
  /// Registrations whose cookie is for another address or has expired, or whose period is neither
  /// the current nor the previous one.
  public var wrongCookie: UInt64 = 0
  /// Registrations beyond the rate limit of their source or of the server.
  public var overBudget: UInt64 = 0
  /// Registrations without a valid signature by the tag's key.
  public var forged: UInt64 = 0
  /// Records not stored because the tag or the source had reached its limit.
  public var refused: UInt64 = 0
  /// Answers and notifications that were not sent because their receiver had not sent enough.
  public var unpaid: UInt64 = 0

  public init() {}
}

extension RendezvousCounters: CounterSet {
  public var counted: [(name: String, value: UInt64)] {
    [
      ("hellos", hellos),
      ("registered", registered),
      ("malformed", malformed),
      ("wrongCookie", wrongCookie),
      ("overBudget", overBudget),
      ("forged", forged),
      ("refused", refused),
      ("unpaid", unpaid),
    ]
  }
}

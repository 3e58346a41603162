import MusterBase

/// Detects whether a member speaks, from the audio levels of its packets (RFC 6464), with
/// hysteresis.
///
/// The algorithm follows LiveKit's `audiolevel.go`: speech begins when 40 % of 400 ms are loud, so
/// that clicks do not count. Speech ends after a whole window without packets nearly as loud, so
/// that pauses between words do not end it.
public struct SpeakingDetector: Equatable, Sendable {
  /// The level in -dBov up to which a packet is loud (lower is louder).
  static let beginLevel: UInt8 = 35
  /// The level in -dBov up to which packets still count as loud during speech.
  static let continueLevel: UInt8 = 42
  static let slot = Duration.milliseconds(20)
  /// The number of slots in the window: 400 ms.
  static let windowSlots = 20
  /// The number of loud slots that begin speech: 40 % of the window.
  static let beginSlots = 8
  /// The time without packets after which a member is considered silent.
  static let silence = Duration.milliseconds(500)

  private var history: UInt32 = 0
  private var updatedAt: Instant?
  private var isSpeakingNow = false

  /// Creates a detector in the silent state.
  public init() {}

  /// Adds the level of one 20 ms packet in -dBov; returns whether the member speaks.
  @discardableResult
  public mutating func update(level: UInt8, at now: Instant) -> Bool {
    let elapsed = updatedAt.map { now - $0 } ?? Self.slot
    let slots = min(max((elapsed.wholeNanoseconds + 10_000_000) / 20_000_000, 0), 32)
    updatedAt = max(updatedAt ?? now, now)
    history = slots >= 32 ? 0 : history << UInt32(slots)
    if level <= (isSpeakingNow ? Self.continueLevel : Self.beginLevel) { history |= 1 }
    let loud = (history & (1 << UInt32(Self.windowSlots) - 1)).nonzeroBitCount
    isSpeakingNow = isSpeakingNow ? loud > 0 : loud >= Self.beginSlots
    return isSpeakingNow
  }

  /// Whether the member speaks; false once packets have stopped.
  public func isSpeaking(at now: Instant) -> Bool {
    guard let updatedAt else { return false }
    return isSpeakingNow && now - updatedAt < Self.silence
  }
}

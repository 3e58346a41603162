import MusterBase

/// Whether a member speaks, from the levels its packets bear (RFC 6464), with hysteresis.
///
/// After LiveKit's `audiolevel.go`: loud for 40 % of 400 ms begins speech, so that a click or a key
/// does not. It ends only after a whole window without anything that is even nearly as loud, so
/// that a pause between words does not end it.
public struct SpeakingDetector: Equatable, Sendable {
  /// At or below this many -dBov a packet is loud.
  static let beginLevel: UInt8 = 35
  /// While speaking, anything up to this counts as still loud.
  static let continueLevel: UInt8 = 42
  static let slot = Duration.milliseconds(20)
  /// 400 ms of slots.
  static let windowSlots = 20
  /// 40 % of the window.
  static let beginSlots = 8
  /// Without packets for this long, nobody speaks.
  static let silence = Duration.milliseconds(500)

  private var history: UInt32 = 0
  private var updatedAt: Instant?
  private var isSpeakingNow = false

  public init() {}

  /// Takes the level of one 20 ms packet: 0 is loudest, 127 silence.
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

  /// The state without a new packet: false once packets have stopped.
  public func isSpeaking(at now: Instant) -> Bool {
    guard let updatedAt else { return false }
    return isSpeakingNow && now - updatedAt < Self.silence
  }
}

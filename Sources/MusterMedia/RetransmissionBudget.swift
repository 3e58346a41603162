import MusterBase

/// The limit of a stream's retransmissions: as much as was sent within the last second.
///
/// A packet that a full queue dropped is missed like any other, and retransmissions fill the queue
/// further. Unlimited, they become most of the traffic of a link that is narrower than the stream.
/// A lower limit does not repair bursts: where a fifth of the packets are lost, it is half of them
/// in some seconds, and some retransmissions are lost, too.
public struct RetransmissionBudget: Sendable {
  /// The bytes that are allowed of a stream that sends hardly anything: two whole packets.
  static let minimum = 2 * Limits.rtpPayloadBytes
  /// The window and its resolution. A part of a lost keyframe is retransmitted at once, the rest as
  /// the frames after it are sent.
  static let slot = Duration.milliseconds(100)
  static let slots = 10

  private struct Bytes {
    var sent = 0
    var retransmitted = 0
  }

  private var ring = [Bytes](repeating: Bytes(), count: slots)
  private var sum = Bytes()
  /// The number of the newest slot since the epoch of `Instant`.
  private var newest: Int64 = 0

  /// Creates the budget of a stream that has sent nothing yet.
  public init() {}

  /// Records the payload of a packet that is sent for the first time.
  public mutating func sent(_ bytes: Int, at now: Instant) {
    advance(to: now)
    ring[index].sent += bytes
    sum.sent += bytes
  }

  /// Takes the payload of a retransmission if it is within the limit; otherwise returns false.
  /// Enhancement frames may use three quarters of the limit, because no frame can be shown without
  /// those of the base layer.
  public mutating func take(_ bytes: Int, isBase: Bool, at now: Instant) -> Bool {
    advance(to: now)
    let whole = max(sum.sent, Self.minimum)
    let limit = isBase ? whole : whole * 3 / 4
    guard sum.retransmitted + bytes <= limit else { return false }
    ring[index].retransmitted += bytes
    sum.retransmitted += bytes
    return true
  }

  private var index: Int { Int(newest % Int64(Self.slots)) }

  /// Empties the slots that have left the window.
  private mutating func advance(to now: Instant) {
    let current = (now - .zero).wholeNanoseconds / Self.slot.wholeNanoseconds
    for _ in 0..<min(max(current - newest, 0), Int64(Self.slots)) {
      newest += 1
      sum.sent -= ring[index].sent
      sum.retransmitted -= ring[index].retransmitted
      ring[index] = Bytes()
    }
    newest = max(newest, current)
  }
}

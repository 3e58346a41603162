/// The counters of a session that have arrived, as a sliding bitmap (RFC 6479).
///
/// 128 blocks of 64 bits, one of which is always partly ahead of the newest counter, so the window
/// covers 8,128 counters: eight seconds at 1,000 packets per second.
public struct ReplayWindow: Sendable {
  /// The number of counters behind the newest that can be checked.
  public static let size: UInt64 = (blocks - 1) * 64
  private static let blocks: UInt64 = 128

  private var bits = [UInt64](repeating: 0, count: Int(blocks))
  /// The largest counter accepted so far.
  public private(set) var highest: UInt64 = 0

  public init() {}

  /// Marks `counter` as seen; false if it was seen before or is too old to check. Requires that the
  /// packet is authenticated: otherwise an outsider could move the window.
  public mutating func accept(_ counter: UInt64) -> Bool {
    if counter > highest {
      clear(from: highest >> 6, to: counter >> 6)
      highest = counter
    } else if highest - counter > Self.size {
      return false
    }
    let block = Int(counter >> 6 & (Self.blocks - 1))
    let bit: UInt64 = 1 << (counter & 63)
    guard bits[block] & bit == 0 else { return false }
    bits[block] |= bit
    return true
  }

  private mutating func clear(from current: UInt64, to next: UInt64) {
    let steps = min(next - current, Self.blocks)
    var step: UInt64 = 1
    while step <= steps {
      bits[Int((current &+ step) & (Self.blocks - 1))] = 0
      step += 1
    }
  }
}

import MusterBase
import MusterCrypto

/// The timeline of a run, one line per event, with a digest of all lines and delivered datagrams.
struct Timeline: Sendable {
  private(set) var lines: [String] = []
  private let keepsLines: Bool
  private var state: [UInt8] = []
  private var pending: [UInt8] = []
  private static let chunk = 1 << 16

  init(keepsLines: Bool) {
    self.keepsLines = keepsLines
    pending.reserveCapacity(Self.chunk + 2048)
  }

  mutating func note(_ label: String, _ text: String, at now: Instant) {
    let line = "\(Self.text(of: now)) \(label) \(text)"
    pending.append(contentsOf: line.utf8)
    pending.append(0x0A)
    apply()
    if keepsLines { lines.append(line) }
  }

  mutating func delivered(
    _ datagram: [UInt8], from sender: Int, to receiver: Int, at now: Instant
  ) {
    withUnsafeBytes(of: now.nanoseconds.littleEndian) { pending.append(contentsOf: $0) }
    pending.append(UInt8(truncatingIfNeeded: sender))
    pending.append(UInt8(truncatingIfNeeded: receiver))
    pending.append(contentsOf: datagram)
    apply()
  }

  /// The digest of the run so far, as 64 hex digits.
  var digest: String { Hex.encode(Blake2b.hash(state + pending)) }

  private mutating func apply() {
    guard pending.count >= Self.chunk else { return }
    state = Blake2b.hash(state + pending)
    pending.removeAll(keepingCapacity: true)
  }

  /// A time in seconds with three decimals, right-aligned to eight characters.
  static func text(of time: Instant) -> String {
    let milliseconds = time.nanoseconds / 1_000_000
    let seconds = String(milliseconds / 1000)
    let fraction = String(1000 + milliseconds % 1000).dropFirst()
    return String(repeating: " ", count: max(4 - seconds.count, 0)) + seconds + "." + fraction
  }
}

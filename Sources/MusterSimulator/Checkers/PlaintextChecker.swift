import MusterBase
import MusterCrypto

/// Checks that datagrams contain no plaintext: no names or media (in simulations both contain
/// `Marker`), no identities (every entry begins with one), and no channel keys.
public struct PlaintextChecker: Sendable {
  private static let marker = word(Marker.bytes)
  private static let markerMask = UInt64.max >> UInt64(64 - 8 * Marker.bytes.count)

  /// The first eight bytes of each identity and key.
  private var secrets: [UInt64] = []
  /// A bitmap of the low six bits of the secrets, so that most windows need no search.
  private var filter: UInt64 = 0

  /// Detects only the marker until identities and keys are added.
  public init() {}

  /// Adds an identity that no datagram may contain from now on.
  public mutating func add(_ identity: NodeID) { add(identity.key.prefix) }

  /// Adds a key that no datagram may contain from now on.
  public mutating func add(key: ChannelKey) {
    add(key.withSecret { $0.prefix(8).reduce(0) { $0 << 8 | UInt64($1) } })
  }

  private mutating func add(_ word: UInt64) {
    guard !secrets.contains(word) else { return }
    secrets.append(word)
    filter |= 1 << (word & 63)
  }

  /// The fault in a datagram that a node sends; nil for none.
  public func sent(_ datagram: [UInt8]) -> String? {
    var window: UInt64 = 0
    var seen = 0
    for byte in datagram {
      window = window << 8 | UInt64(byte)
      seen += 1
      if window & Self.markerMask == Self.marker { return "marked text at byte \(seen)" }
      if seen >= 8, filter & 1 << (window & 63) != 0, secrets.contains(window) {
        return "an identity or a key at byte \(seen - 8)"
      }
    }
    return nil
  }

  private static func word(_ bytes: [UInt8]) -> UInt64 {
    bytes.reduce(0) { $0 << 8 | UInt64($1) }
  }
}

import MusterBase
import MusterCrypto

/// No plaintext on the network: neither names nor media, which all bear the marker, nor identities,
/// which every entry begins with, nor a channel's keys.
public struct PlaintextChecker: Sendable {
  private static let marker = word(Marker.bytes)
  private static let markerMask = UInt64.max >> UInt64(64 - 8 * Marker.bytes.count)

  /// The first eight bytes of each identity and key.
  private var secrets: [UInt64] = []
  /// One bit for the low six bits of each, so that most windows need no search.
  private var filter: UInt64 = 0

  /// Finds only the marker, until identities and keys are added.
  public init() {}

  /// From now on this identity may not be seen.
  public mutating func add(_ identity: NodeID) { add(identity.key.prefix) }

  /// From now on this key may not be seen.
  public mutating func add(key: ChannelKey) {
    add(key.withSecret { $0.prefix(8).reduce(0) { $0 << 8 | UInt64($1) } })
  }

  private mutating func add(_ word: UInt64) {
    guard !secrets.contains(word) else { return }
    secrets.append(word)
    filter |= 1 << (word & 63)
  }

  /// The fault of a datagram that a node sends; nil when it has none.
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

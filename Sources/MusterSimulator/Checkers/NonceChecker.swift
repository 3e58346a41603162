import MusterBase
import MusterWire

/// Checks that nodes use no nonce twice: each counter occurs once per session on the wire.
///
/// A session is identified by the receiver's index of 32 random bits; the probability of a
/// collision within one run is one in millions.
public struct NonceChecker: Sendable {
  private var sessions = PeerTable<UInt32, NumberSet>()

  /// A checker before the first datagram.
  public init() {}

  /// The fault in a datagram that a node sends; nil for none.
  public mutating func sent(_ datagram: [UInt8]) -> String? {
    guard DatagramKind(of: datagram) == .data else { return nil }
    var reader = Reader(datagram.dropFirst())
    guard let index = try? reader.u32(), let counter = try? reader.u64() else {
      return "data datagram of \(datagram.count) bytes"
    }
    if sessions.index(of: index) == nil { sessions[index] = NumberSet() }
    let isNew = sessions.update(index) { $0.insert(counter) } ?? false
    return isNew ? nil : "counter \(counter) used again under index \(Hex.encode(UInt64(index)))"
  }
}

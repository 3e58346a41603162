import MusterBase
import MusterWire

/// No nonce twice: within a session each counter is used once, by what nodes put on the wire.
///
/// A session's key is known by its receiver's index, 32 random bits that no two sessions of one run
/// share but by a chance of one in millions.
public struct NonceChecker: Sendable {
  private var sessions = PeerTable<UInt32, NumberSet>()

  /// No datagram has been sent yet.
  public init() {}

  /// The fault of a datagram that a node sends; nil when it has none.
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

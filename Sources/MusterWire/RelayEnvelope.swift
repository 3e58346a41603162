import MusterBase

/// A link payload that carries a sealed datagram of another link, to or from a relaying member.
///
/// Layout: payload kind 1, direction 1, first 8 bytes of a node id, datagram. The relay learns the
/// two nodes and the size of the datagram, and cannot decrypt it.
public struct RelayEnvelope: Equatable, Sendable {
  /// Which leg of the relayed path the envelope is on.
  public enum Direction: UInt8, Sendable {
    /// To the relay; `member` is the destination.
    case forward = 0
    /// From the relay to the destination; `member` is the origin.
    case forwarded = 1
  }

  /// The leg of the relayed path.
  public var direction: Direction
  /// The first 8 bytes of the id of the node at the other end.
  public var member: UInt64
  /// The datagram that is relayed, at most `datagramLimit` bytes.
  public var datagram: ArraySlice<UInt8>

  static let headerBytes = 10
  /// Envelope header, and header and tag of the carrying link's transport packet.
  private static let overhead = headerBytes + 29
  /// Bytes of the longest datagram that fits into a datagram of the carrying link.
  public static let datagramLimit = Limits.datagramBytes - overhead

  /// The bytes before the datagram.
  public static func header(_ direction: Direction, _ member: UInt64) -> [UInt8] {
    var writer = Writer(capacity: headerBytes)
    writer.u8(PayloadKind.relayByte)
    writer.u8(direction.rawValue)
    writer.u64(member)
    return writer.bytes
  }

  /// Throws for another payload kind, an unknown direction, truncated input and an oversized
  /// datagram.
  public init(decoding payload: [UInt8]) throws(WireError) {
    var reader = Reader(payload)
    guard try reader.u8() == PayloadKind.relayByte,
      let direction = Direction(rawValue: try reader.u8())
    else { throw .invalidValue }
    self.direction = direction
    member = try reader.u64()
    datagram = reader.rest()
    guard datagram.count <= Self.datagramLimit else { throw .tooLong }
  }
}

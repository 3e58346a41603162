import MusterBase

/// A link payload that carries a sealed datagram of another link, to or from a relaying member.
///
/// Layout in bytes: payload kind 1, direction 1, first 8 bytes of a node id, datagram. The relaying
/// member learns the two nodes and the size of the datagram, but cannot decrypt the datagram.
public struct RelayEnvelope: Equatable, Sendable {
  /// The leg of the relayed path that the envelope is on.
  public enum Direction: UInt8, Sendable {
    /// The leg to the relaying member; `member` is the destination.
    case forward = 0
    /// The leg from the relaying member to the destination; `member` is the origin.
    case forwarded = 1
  }

  /// The leg of the relayed path.
  public var direction: Direction
  /// The first 8 bytes of the id of the node at the other end of the relayed path.
  public var member: UInt64
  /// The relayed datagram, at most `datagramLimit` bytes.
  public var datagram: ArraySlice<UInt8>

  static let headerBytes = 10
  /// The size in bytes of the envelope header, plus the carrying link's packet header and tag (29
  /// bytes).
  static let overhead = headerBytes + 29
  /// The size in bytes of the longest datagram that fits into a datagram of the carrying link.
  public static let datagramLimit = Limits.datagramBytes - overhead

  /// Encodes the envelope header, which the relayed datagram follows.
  public static func header(_ direction: Direction, _ member: UInt64) -> [UInt8] {
    var writer = Writer(capacity: headerBytes)
    writer.u8(PayloadKind.relayByte)
    writer.u8(direction.rawValue)
    writer.u64(member)
    return writer.bytes
  }

  /// Decodes an envelope; throws for another payload kind, an unknown direction, truncated input
  /// and an oversized datagram.
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

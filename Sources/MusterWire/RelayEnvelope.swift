import MusterBase

/// A link's payload that carries a datagram of another link: "pass this on", or "this came for
/// you".
///
/// Layout: payload kind 1, direction 1, the first 8 bytes of a node id, the datagram. The relay
/// sees whose it is and how large, and can open none of it.
public struct RelayEnvelope: Equatable, Sendable {
  public enum Direction: UInt8, Sendable {
    /// From the sender to its neighbour: for the member named.
    case forward = 0
    /// From the neighbour on to that member: from the member named.
    case forwarded = 1
  }

  public var direction: Direction
  /// The first 8 bytes of the other end's id.
  public var member: UInt64
  public var datagram: ArraySlice<UInt8>

  static let headerBytes = 10
  /// Header, and header and tag of the link that carries it.
  private static let overhead = headerBytes + 29
  /// The longest datagram that fits into one of the carrying link.
  public static let datagramLimit = Limits.datagramBytes - overhead

  /// What stands before the datagram.
  public static func header(_ direction: Direction, _ member: UInt64) -> [UInt8] {
    var writer = Writer(capacity: headerBytes)
    writer.u8(PayloadKind.relayByte)
    writer.u8(direction.rawValue)
    writer.u64(member)
    return writer.bytes
  }

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

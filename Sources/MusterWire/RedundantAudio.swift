/// The payload of an audio packet that also has copies of earlier ones (RFC 2198).
public struct RedundantAudio: Equatable, Sendable {
  /// The payload of an earlier packet.
  public struct Copy: Equatable, Sendable {
    /// The age of the copy: the timestamp of the packet minus that of the earlier one; at most
    /// `largestOffset`.
    public var timestampOffset: UInt16
    /// One Opus packet, of at most `largestCopy` bytes.
    public var payload: ArraySlice<UInt8>

    public init(timestampOffset: UInt16, payload: ArraySlice<UInt8>) {
      self.timestampOffset = timestampOffset
      self.payload = payload
    }
  }

  /// The largest values of the 14-bit offset and of the 10-bit length.
  public static let largestOffset: UInt16 = 0x3FFF
  public static let largestCopy = 0x3FF
  /// The number of copies from which on a payload is refused.
  public static let copyLimit = 4

  /// The copies, in the order of the payload.
  public var copies: [Copy]
  /// The packet's own Opus packet.
  public var primary: ArraySlice<UInt8>

  /// Fewer than `copyLimit` copies, within the limits of `Copy`.
  public init(copies: [Copy], primary: ArraySlice<UInt8>) {
    self.copies = copies
    self.primary = primary
  }

  /// The encoded payload: a header of four bytes for each copy, one of one byte for the packet's
  /// own, then their bytes.
  public func encoded() -> [UInt8] {
    precondition(copies.count < Self.copyLimit)
    var writer = Writer()
    for copy in copies {
      precondition(
        copy.timestampOffset <= Self.largestOffset && copy.payload.count <= Self.largestCopy)
      writer.u32(
        UInt32(0x80 | PayloadType.opus) << 24 | UInt32(copy.timestampOffset) << 10
          | UInt32(copy.payload.count))
    }
    writer.u8(PayloadType.opus)
    for copy in copies { writer.append(copy.payload) }
    writer.append(primary)
    return writer.bytes
  }

  /// Decodes a payload; throws for truncated input, `copyLimit` and more copies, and content other
  /// than Opus.
  public init(decoding payload: ArraySlice<UInt8>) throws(WireError) {
    var reader = Reader(payload)
    var heads: [(offset: UInt16, count: Int)] = []
    while true {
      let first = try reader.u8()
      guard first & 0x7F == PayloadType.opus else { throw .invalidValue }
      guard first & 0x80 != 0 else { break }
      guard heads.count + 1 < Self.copyLimit else { throw .tooLong }
      let rest = try reader.u24()
      heads.append((UInt16(rest >> 10), Int(rest) & Self.largestCopy))
    }
    copies = []
    for head in heads {
      copies.append(Copy(timestampOffset: head.offset, payload: try reader.slice(head.count)))
    }
    primary = reader.rest()
  }
}

/// A payload of a link before it is sealed: a header, and bytes that several links may share.
///
/// The link writes both into the datagram directly, where they are encrypted.
public struct OutgoingPayload: Equatable, Sendable {
  /// What precedes the shared bytes.
  public enum Header: Equatable, Sendable {
    /// The payload has no header of its own.
    case none
    /// The header of an RTP packet, whose sequence number differs from link to link.
    case rtp(RTPHeader)
    /// The header of a relay envelope.
    case bytes([UInt8])

    /// Bytes of the encoded header.
    public var count: Int {
      switch self {
      case .none: 0
      case .rtp(let header): header.encodedBytes
      case .bytes(let bytes): bytes.count
      }
    }
  }

  /// What precedes the body.
  public let header: Header
  /// The bytes after the header.
  public let body: ArraySlice<UInt8>

  /// A header in front of a body.
  public init(_ header: Header, _ body: ArraySlice<UInt8>) {
    self.header = header
    self.body = body
  }

  /// A payload without a header of its own.
  public init(_ bytes: [UInt8]) { self.init(.none, bytes[...]) }

  /// Bytes of header and body.
  public var count: Int { header.count + body.count }

  /// Writes header and body into the first `count` bytes of `buffer`, which must be that long.
  public func write(into buffer: UnsafeMutableRawBufferPointer) {
    switch header {
    case .none: break
    case .rtp(let header): header.write(into: buffer)
    case .bytes(let bytes): bytes.withUnsafeBytes { buffer.copyMemory(from: $0) }
    }
    body.withUnsafeBytes {
      UnsafeMutableRawBufferPointer(rebasing: buffer[header.count...]).copyMemory(from: $0)
    }
  }
}

import MusterBase

/// An unsealed link payload: a header, and a body whose bytes several links may share.
///
/// The link writes header and body directly into the datagram, and encrypts both in place.
public struct OutgoingPayload: Equatable, Sendable {
  /// The part of a payload in front of the shared bytes.
  public enum Header: Equatable, Sendable {
    /// No header: the body is the whole payload.
    case none
    /// An RTP header, kept apart from the body because sequence numbers differ between links.
    case rtp(RTPHeader)
    /// The encoded header of a relay envelope.
    case bytes([UInt8])

    /// The length of the encoded header in bytes.
    public var count: Int {
      switch self {
      case .none: 0
      case .rtp(let header): header.encodedBytes
      case .bytes(let bytes): bytes.count
      }
    }
  }

  /// The part in front of the body.
  public let header: Header
  /// The bytes after the header.
  public let body: ArraySlice<UInt8>

  /// Puts a header in front of a body.
  public init(_ header: Header, _ body: ArraySlice<UInt8>) {
    self.header = header
    self.body = body
  }

  /// Describes a payload without a header.
  public init(_ bytes: [UInt8]) { self.init(.none, bytes[...]) }

  /// The length of header and body in bytes.
  public var count: Int { header.count + body.count }

  /// The class with which its datagram is sent. Padding takes the place of video, and is to show
  /// what video would find.
  public var serviceClass: ServiceClass {
    switch header {
    case .rtp(let header): PayloadType.isAudio(header.payloadType) ? .audio : .video
    case .none: body.count > 1 && body.first == PayloadKind.keepaliveByte ? .video : .standard
    case .bytes: .standard
    }
  }

  /// Writes header and body into `buffer`, which must have at least `count` bytes.
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

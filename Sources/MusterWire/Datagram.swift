import MusterBase

/// What the first byte of a datagram tells.
public enum DatagramKind: UInt8, Sendable, CaseIterable {
  case announcement = 0x01
  case challenge = 0x02
  case handshakeInitiation = 0x10
  case handshakeResponse = 0x11
  case cookieReply = 0x12
  case data = 0x20
  case rendezvousHello = 0x30
  case rendezvousCookie = 0x31
  case rendezvousRegistration = 0x32
  case rendezvousRecords = 0x33

  /// The kind of a datagram, or nil when it is empty or of no kind known here.
  public init?(of datagram: [UInt8]) {
    guard let first = datagram.first else { return nil }
    self.init(rawValue: first)
  }
}

/// What the first byte of a link's opened payload tells. RTP and RTCP begin with their version
/// bits, 0b10, so that they need no byte of their own (RFC 7983 demultiplexes in the same way).
public enum PayloadKind: Equatable, Sendable {
  /// Nothing but a sign of life.
  case keepalive
  /// TLVs for the node: see `Control`.
  case control
  /// Path messages that the link itself handles: see `PathMessage`.
  case path
  /// A datagram of another link: see `RelayEnvelope`.
  case relay
  case rtp
  case rtcp

  public static let keepaliveByte: UInt8 = 0x00
  public static let controlByte: UInt8 = 0x01
  public static let pathByte: UInt8 = 0x02
  public static let relayByte: UInt8 = 0x03

  /// Nil for anything unknown.
  public init?(of payload: [UInt8]) {
    guard let first = payload.first else {
      self = .keepalive
      return
    }
    switch first {
    case Self.keepaliveByte: self = .keepalive
    case Self.controlByte: self = .control
    case Self.pathByte: self = .path
    case Self.relayByte: self = .relay
    case 0x80...0xBF:
      guard payload.count >= 2 else { return nil }
      // RFC 5761 section 4: RTCP packet types 192 to 223.
      self = (192...223).contains(payload[1]) ? .rtcp : .rtp
    default: return nil
    }
  }
}

/// Path messages: is the peer really at the address its datagrams come from? (After RFC 9000 8.2.)
public enum PathMessage: Equatable, Sendable {
  case challenge(UInt64)
  case response(UInt64)
  /// The peer ends the link.
  case close

  public func encoded() -> [UInt8] {
    var writer = Writer(capacity: 10)
    writer.u8(PayloadKind.pathByte)
    switch self {
    case .challenge(let token):
      writer.u8(0)
      writer.u64(token)
    case .response(let token):
      writer.u8(1)
      writer.u64(token)
    case .close: writer.u8(2)
    }
    return writer.bytes
  }

  public init(decoding payload: [UInt8]) throws(WireError) {
    var reader = Reader(payload)
    guard try reader.u8() == PayloadKind.pathByte else { throw .invalidValue }
    switch try reader.u8() {
    case 0: self = .challenge(try reader.u64())
    case 1: self = .response(try reader.u64())
    case 2: self = .close
    default: throw .unsupported
    }
    try reader.expectEnd()
  }
}

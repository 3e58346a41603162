import MusterBase

/// The kind of a UDP datagram, given by its first byte.
public enum DatagramKind: UInt8, Sendable, CaseIterable {
  /// A sealed `Announcement`.
  case announcement = 0x01
  /// A sealed `Challenge`.
  case challenge = 0x02
  /// Message 1 of the Noise handshake.
  case handshakeInitiation = 0x10
  /// Message 2 of the Noise handshake.
  case handshakeResponse = 0x11
  /// The answer of a node under load, which makes the initiator prove its address before any
  /// Diffie-Hellman computation (WireGuard, section 5.3).
  case cookieReply = 0x12
  /// A transport packet of an established session.
  case data = 0x20
  /// A request for a cookie: see `RendezvousHello`.
  case rendezvousHello = 0x30
  /// The answer to a hello: see `RendezvousCookie`.
  case rendezvousCookie = 0x31
  /// A registration of an announcement: see `RendezvousRegistration`.
  case rendezvousRegistration = 0x32
  /// Records of other members: see `RendezvousRecords`.
  case rendezvousRecords = 0x33

  /// The kind of a datagram; nil if it is empty or of an unknown kind.
  public init?(of datagram: [UInt8]) {
    guard let first = datagram.first else { return nil }
    self.init(rawValue: first)
  }
}

/// The kind of a link's decrypted payload, given by its first byte. RTP and RTCP start with their
/// version bits, 0b10, and have no separate kind byte (demultiplexed as in RFC 7983).
public enum PayloadKind: Equatable, Sendable {
  /// An empty message that keeps NAT mappings and the session alive.
  case keepalive
  /// A sequence of `Control` messages.
  case control
  /// A path message, which the link engine handles itself: see `PathMessage`.
  case path
  /// A relayed datagram: see `RelayEnvelope`.
  case relay
  /// A report of arrivals: see `CongestionFeedback`.
  case feedback
  /// An RTP packet (RFC 3550).
  case rtp
  /// A compound or reduced-size RTCP packet.
  case rtcp

  /// The first byte of a keepalive; an empty payload is a keepalive, too.
  public static let keepaliveByte: UInt8 = 0x00
  /// The first byte of a payload of control messages.
  public static let controlByte: UInt8 = 0x01
  /// The first byte of a path message.
  public static let pathByte: UInt8 = 0x02
  /// The first byte of a relay envelope.
  public static let relayByte: UInt8 = 0x03
  /// The first byte of congestion feedback.
  public static let feedbackByte: UInt8 = 0x04

  /// The kind of a payload; nil if unknown.
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
    case Self.feedbackByte: self = .feedback
    case 0x80...0xBF:
      guard payload.count >= 2 else { return nil }
      // RTCP packet types are 192 to 223 (RFC 5761 section 4).
      self = (192...223).contains(payload[1]) ? .rtcp : .rtp
    default: return nil
    }
  }
}

/// A message for path validation or for closing a link (after RFC 9000 sections 8.2 and 10.2).
public enum PathMessage: Equatable, Sendable {
  /// Requests a `response` with the same token on the path that the challenge arrived on.
  case challenge(UInt64)
  /// Proves that the peer receives datagrams at the challenged address.
  case response(UInt64)
  /// Signals that the sender closes the link.
  case close

  /// Encodes the message. Layout in bytes: payload kind 1, message type 1, token 8 (absent from
  /// `close`).
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

  /// Decodes a path message; throws for another payload kind, an unknown type, truncated input and
  /// trailing bytes.
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

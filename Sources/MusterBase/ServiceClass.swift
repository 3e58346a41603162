/// How urgent a datagram is, which its IP header says to the network: Wi-Fi has a queue for each
/// class, and routers may have (RFC 8837, RFC 8325).
public enum ServiceClass: Int, CaseIterable, Sendable {
  /// The default: handshakes, gossip, pings, reports, and what is relayed for others.
  case standard
  /// Video: AF41 (RFC 2597).
  case video
  /// Audio: EF, expedited forwarding (RFC 3246).
  case audio

  /// The code point (DSCP, RFC 2474).
  public var codePoint: UInt8 {
    switch self {
    case .standard: 0
    case .video: 34
    case .audio: 46
    }
  }

  /// The IPv4 type of service or the IPv6 traffic class: the code point, and no ECN (RFC 3168),
  /// because a sender that asks for its marks has to react to them.
  public var trafficClass: UInt8 { codePoint << 2 }
}

/// The bound of everything that grows with what others send. `docs/LIMITS.md` says why each is so.
public enum Limits {
  /// Payload of a UDP datagram: 1,280 (IPv6 minimum MTU) less IPv6 and UDP headers, less 32 spare.
  public static let datagramBytes = 1200
  /// VP8 or Opus bytes in one RTP packet, leaving room for every header, tag and a relay envelope.
  public static let rtpPayloadBytes = 1100

  public static let channels = 32
  /// Keys under which datagrams are understood: every channel's own and its former ones.
  public static let channelKeys = 160
  /// Members of one channel that this version links to.
  public static let peersPerChannel = 64
  public static let links = 256
  /// Addresses in one announce, and remembered for one peer.
  public static let addresses = 8
  public static let nameBytes = 64
  public static let channelNameBytes = 64
  public static let configuredPeers = 64
  /// Rendezvous at which one node registers.
  public static let rendezvous = 8
  /// Services of others that DNS-SD names and one node looks up.
  public static let services = 16
  /// Nodes of a DHT that are given to begin with.
  public static let dhtNodes = 8
  /// Answered handshakes of a link that wait for the initiator to use one.
  public static let sessionsPerLink = 3

  /// Video streams that one member announces: camera, screen and two more.
  public static let videoStreams = 4
  /// Bytes of a stream's name in UTF-8, which are ASCII characters.
  public static let streamNameBytes = 16
  /// Layers of one stream.
  public static let spatialLayers = 3
  /// One encoded picture; a larger one is dropped by sender and receiver alike.
  public static let frameBytes = 1 << 20
  /// Pictures being put together for one sender.
  public static let framesInAssembly = 64
  /// Packets waiting for a missing one, for one sender: two seconds of a 2.5 Mbit/s layer.
  public static let packetsInAssembly = 1024
  /// Sent packets kept for retransmission, per link and layer.
  public static let retransmissionPackets = 1024
  public static let nackEntries = 256
  /// Opus packets in one jitter buffer: 2 s.
  public static let audioPackets = 100

  /// One signed entry of a channel document: with its framing it fits into one datagram.
  public static let entryBytes = 1080
  /// UTF-8 of one message.
  public static let textBytes = 768
  /// Authors whose presence, hearing or redemption a channel document holds.
  public static let authors = 2048
  /// Messages that a channel document holds, and those of one author.
  public static let messages = 4096
  public static let messagesPerAuthor = 2048
  /// Claims and ends of calls, and those of one author.
  public static let callEntries = 256
  public static let callEntriesPerAuthor = 64
  /// Grants of the owner, and those of all others.
  public static let grants = 2048
  public static let grantsPerAuthor = 128
  public static let epochs = 1024
  /// Entries of kinds unknown to this version, and those of one author.
  public static let unknownEntries = 256
  public static let unknownEntriesPerAuthor = 32
  /// Authors known to have signed two entries under one sequence.
  public static let quarantinedAuthors = 256
  /// Entries on their way to one neighbour; what does not fit waits for the next comparison.
  public static let outboxEntries = 512
  /// Former keys of a channel under which members who were away are still heard.
  public static let formerKeys = 4
  /// Where-to-find-others hints in one invite, of each kind.
  public static let inviteHints = 8
}

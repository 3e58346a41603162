/// The bounds of everything that grows with remote input. `docs/LIMITS.md` gives the reason for
/// each.
public enum Limits {
  /// Bytes of a UDP payload: 1,280 (the IPv6 minimum MTU, RFC 8200 section 5) less 48 for the IPv6
  /// and UDP headers, less 32 spare.
  public static let datagramBytes = 1200
  /// Bytes of VP8 or Opus in one RTP packet; leaves room for headers, AEAD tag and a relay
  /// envelope.
  public static let rtpPayloadBytes = 1100

  /// Channels that one node is in.
  public static let channels = 32
  /// Keys under which a node accepts datagrams: each channel's current key and its former ones.
  public static let channelKeys = 160
  /// Members of one channel that a node links to.
  public static let peersPerChannel = 64
  /// Links of one node, over all channels.
  public static let links = 256
  /// Addresses in one announcement, and candidate addresses kept for one peer.
  public static let addresses = 8
  /// UTF-8 bytes of a member's name.
  public static let nameBytes = 64
  /// UTF-8 bytes of a channel's name.
  public static let channelNameBytes = 64
  /// Addresses given with `--peer`.
  public static let configuredPeers = 64
  /// Rendezvous servers at which one node registers.
  public static let rendezvous = 8
  /// DNS-SD services of other nodes that one node resolves.
  public static let services = 16
  /// Bootstrap nodes of the DHT.
  public static let dhtNodes = 8
  /// Handshake responses of one link that await the initiator's first data packet.
  public static let sessionsPerLink = 3

  /// Video streams that one member announces: camera, screen and two more.
  public static let videoStreams = 4
  /// Bytes of a stream's name in UTF-8, which are ASCII characters.
  public static let streamNameBytes = 16
  /// Spatial layers of one video stream.
  public static let spatialLayers = 3
  /// Bytes of one encoded frame; sender and receiver drop larger ones.
  public static let frameBytes = 1 << 20
  /// Incomplete frames of one sender in assembly.
  public static let framesInAssembly = 64
  /// Packets of one sender that wait for a missing one: two seconds of a 2.5 Mbit/s layer.
  public static let packetsInAssembly = 1024
  /// Sent packets kept for retransmission, per link and layer.
  public static let retransmissionPackets = 1024
  /// Sequence numbers in one NACK, and missing packets tracked per layer.
  public static let nackEntries = 256
  /// Opus packets in one jitter buffer: 2 s at 20 ms.
  public static let audioPackets = 100

  /// Bytes of one signed document entry: it fits into one datagram together with its framing.
  public static let entryBytes = 1080
  /// UTF-8 bytes of one text message.
  public static let textBytes = 768
  /// Authors whose presence, neighbour report or redemption a channel document holds.
  public static let authors = 2048
  /// Messages in a channel document.
  public static let messages = 4096
  /// Messages of one author.
  public static let messagesPerAuthor = 2048
  /// Call claims and call ends in a channel document.
  public static let callEntries = 256
  /// Call claims and call ends of one author.
  public static let callEntriesPerAuthor = 64
  /// Grants by the owner, and grants by all others together.
  public static let grants = 2048
  /// Grants by one author other than the owner.
  public static let grantsPerAuthor = 128
  /// Key epochs of a channel.
  public static let epochs = 1024
  /// Entries of kinds that this version does not know.
  public static let unknownEntries = 256
  /// Entries of unknown kinds of one author.
  public static let unknownEntriesPerAuthor = 32
  /// Authors quarantined for equivocation: two different entries signed under one sequence number.
  public static let quarantinedAuthors = 256
  /// Entries queued for one neighbour; the next reconciliation round transfers those that do not
  /// fit.
  public static let outboxEntries = 512
  /// Former keys of a channel under which returning members are still accepted.
  public static let formerKeys = 4
  /// Peer hints in one invite, and rendezvous hints.
  public static let inviteHints = 8
}

/// The bounds of all state that grows with remote input; `docs/LIMITS.md` gives the reasons.
public enum Limits {
  /// The maximum size of a UDP payload in bytes: 1,280 (the IPv6 minimum MTU, RFC 8200 section 5)
  /// minus 48 for the IPv6 and UDP headers and 32 spare.
  public static let datagramBytes = 1200
  /// The maximum size in bytes of the VP8 or Opus data in one RTP packet; the rest of the datagram
  /// is for headers, AEAD tag and a relay envelope.
  public static let rtpPayloadBytes = 1100

  /// The maximum number of channels that one node may be in.
  public static let channels = 32
  /// The maximum number of keys under which a node accepts datagrams: current and former keys of
  /// all channels.
  public static let channelKeys = 160
  /// The maximum number of members of one channel that a node links to.
  public static let peersPerChannel = 64
  /// The maximum number of links of one node, over all channels.
  public static let links = 256
  /// The maximum number of addresses in one announcement, and of candidate addresses for one peer.
  public static let addresses = 8
  /// The maximum length of a member's name in UTF-8 bytes.
  public static let nameBytes = 64
  /// The maximum length of a channel's name in UTF-8 bytes.
  public static let channelNameBytes = 64
  /// The maximum number of peer addresses given with the option `--peer`.
  public static let configuredPeers = 64
  /// The maximum number of rendezvous servers at which one node registers.
  public static let rendezvous = 8
  /// The maximum number of DNS-SD services of other nodes that one node resolves.
  public static let services = 16
  /// The maximum number of bootstrap nodes of the DHT.
  public static let dhtNodes = 8
  /// The maximum number of handshake responses per link that await the initiator's first data
  /// packet.
  public static let sessionsPerLink = 3

  /// The maximum number of video streams that one member offers: camera, screen and two more.
  public static let videoStreams = 4
  /// The maximum length of a stream's name in bytes; the name is ASCII text.
  public static let streamNameBytes = 16
  /// The maximum number of spatial layers of one video stream.
  public static let spatialLayers = 3
  /// The maximum size of one encoded frame in bytes; sender and receiver drop larger frames.
  public static let frameBytes = 1 << 20
  /// The maximum number of frames of one layer that await assembly: 2 s at 30 frames per second.
  public static let framesInAssembly = 64
  /// The maximum number of packets of one layer that wait for a missing packet: about 3.6 s at
  /// 2.5 Mbit/s.
  public static let packetsInAssembly = 1024
  /// The maximum number of sent packets kept for retransmission, per link and layer.
  public static let retransmissionPackets = 1024
  /// The maximum number of sequence numbers in one NACK, and of missing packets tracked per layer.
  public static let nackEntries = 256
  /// The maximum number of Opus frames in one jitter buffer: 2 s at 20 ms.
  public static let audioFrames = 100

  /// The maximum size of one signed document entry in bytes; with its framing it fits into a
  /// datagram.
  public static let entryBytes = 1080
  /// The maximum length of one text message in UTF-8 bytes.
  public static let textBytes = 768
  /// The maximum number of authors whose presence, neighbour report or redemption a channel
  /// document holds.
  public static let authors = 2048
  /// The maximum number of messages in a channel document.
  public static let messages = 4096
  /// The maximum number of messages by one author.
  public static let messagesPerAuthor = 2048
  /// The maximum number of call claims and call ends in a channel document.
  public static let callEntries = 256
  /// The maximum number of call claims and call ends by one author.
  public static let callEntriesPerAuthor = 64
  /// The maximum number of moderations in a channel document: mutings and removals from calls.
  public static let moderations = 256
  /// The maximum number of moderations by one author.
  public static let moderationsPerAuthor = 64
  /// The maximum number of grants by the channel's owner and, separately, by all other members
  /// together.
  public static let grants = 4096
  /// The maximum number of grants by one author other than the channel's owner.
  public static let grantsPerAuthor = 128
  /// The maximum number of key epochs of a channel.
  public static let epochs = 1024
  /// The maximum number of entries in a channel document whose kinds are unknown to this version.
  public static let unknownEntries = 256
  /// The maximum number of entries of unknown kinds by one author.
  public static let unknownEntriesPerAuthor = 32
  /// The maximum number of authors quarantined for equivocation: two different entries signed under
  /// one sequence number.
  public static let quarantinedAuthors = 256
  /// The maximum number of entries queued for one neighbour; a later reconciliation transfers the
  /// entries that do not fit.
  public static let outboxEntries = 512
  /// The maximum number of former keys of a channel under which returning members are still
  /// accepted.
  public static let formerKeys = 4
  /// The maximum number of peer hints, and of rendezvous hints, in one invite.
  public static let inviteHints = 8
}

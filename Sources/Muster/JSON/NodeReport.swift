/// The round-trip times of one `ping`, one for each link to the member.
public struct PingReply: Codable, Equatable, Sendable {
  /// The member's id, 16 hex digits.
  public var member: String
  /// The name that the member chose.
  public var name: String
  /// The results, one for each link to the member.
  public var paths: [Path]

  /// The path of one link and the round-trip time over this path.
  public struct Path: Codable, Equatable, Sendable {
    /// The channel's name.
    public var channel: String
    /// `HOST:PORT` of a direct path; null for a relayed path.
    public var address: String?
    /// The relaying member's id; null for a direct path.
    public var via: String?
    /// The name that the relaying member chose; null for a direct path.
    public var viaName: String?
    /// The round-trip time in ms; null if no answer arrived in time.
    public var rttMs: Double?
  }
}

/// The internal state of a running node, shown by `muster doctor --node`.
public struct NodeReport: Codable, Equatable, Sendable {
  /// The node's id, 16 hex digits.
  public var id: String
  /// Seconds since the process started.
  public var uptime: Double
  /// The non-zero counters since the start.
  public var counters: CounterRecord
  /// One entry for each established or attempted link, in the order of member ids, then of channel
  /// ids.
  public var links: [Link]
  /// One entry for each known path, in the order of member ids.
  public var paths: [Path]
  /// The queues between the event loop, threads and consumers.
  public var queues: [Queue]

  /// A link, or an attempt to set one up, and the path in use.
  public struct Link: Codable, Equatable, Sendable {
    /// The channel's name.
    public var channel: String
    /// The member's id, 16 hex digits.
    public var member: String
    /// `active`, `rekeying` or `draining` while the link is in use; else `connecting`,
    /// `suspended`, `restricted` or `refused`.
    public var phase: String
    /// `HOST:PORT` of a direct path; null for a relayed path and while the link is not in use.
    public var address: String?
    /// The relaying member's id; null for a direct path.
    public var via: String?
    /// The smoothed round-trip time in ms; null before the first answer.
    public var rttMs: Double?
    /// The smoothed packet loss from this node to the member, as reported by the member, in
    /// percent.
    public var lossPercent: Double
  }

  /// A path: a route to a member, shared by the links to this member in all channels.
  public struct Path: Codable, Equatable, Sendable {
    /// The member's id, 16 hex digits.
    public var member: String
    /// `HOST:PORT` of a direct path; null for a relayed path.
    public var address: String?
    /// The relaying member's id; null for a direct path.
    public var via: String?
    /// Whether a link uses the path.
    public var inUse: Bool
    /// `unvalidated`, `validating`, `validated` or `failed` (RFC 9000 section 8.2).
    public var validation: String
    /// The smoothed round-trip time in ms; null before the first sample.
    public var rttMs: Double?
    /// The estimated bandwidth in kbit/s, and the queueing delay in ms; null before the first
    /// report on media that this node sends.
    public var estimateKbps: Double?
    public var queueMs: Double?
    /// The sealed datagrams sent and received over the path.
    public var datagramsOut: UInt64
    public var datagramsIn: UInt64
    /// The UDP payload bytes of these datagrams.
    public var bytesOut: UInt64
    public var bytesIn: UInt64
  }

  /// A queue between threads.
  public struct Queue: Codable, Equatable, Sendable {
    /// The name of the queue, such as `store` or `recorder`.
    public var name: String
    /// The number of elements that are waiting.
    public var waiting: Int
    /// The number of elements dropped since the start.
    public var dropped: Int
  }
}

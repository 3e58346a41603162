/// The round trips of one `ping`, one for each link to the member.
public struct PingReply: Codable, Equatable, Sendable {
  /// 16 hex digits.
  public var member: String
  /// The name that the member chose.
  public var name: String
  /// One for each link to the member.
  public var paths: [Path]

  /// One link's path.
  public struct Path: Codable, Equatable, Sendable {
    /// The channel's name.
    public var channel: String
    /// `HOST:PORT` of a direct path; null for a relayed one.
    public var address: String?
    /// The relaying member's id; null for a direct path.
    public var via: String?
    /// Milliseconds; null when nothing came back in time.
    public var rttMs: Double?
  }
}

/// The inside of a running node, as `muster doctor --node` shows it.
public struct NodeReport: Codable, Equatable, Sendable {
  /// 16 hex digits.
  public var id: String
  /// Seconds since the process started.
  public var uptime: Double
  /// Counters that are not 0, since the start.
  public var counters: CounterRecord
  /// One for each peer that the node has or seeks a link with, in the order of ids.
  public var links: [Link]
  /// Between the event loop, threads and consumers.
  public var queues: [Queue]

  /// One link, or the attempt at one, and the path that it uses.
  public struct Link: Codable, Equatable, Sendable {
    /// The channel's name.
    public var channel: String
    /// The member's id, 16 hex digits.
    public var member: String
    /// `active`, `rekeying` or `draining` while the link is in use; else `connecting`,
    /// `suspended`, `restricted` or `refused`.
    public var phase: String
    /// `HOST:PORT` of a direct path; null for a relayed one, and while the link is not in use.
    public var address: String?
    /// The relaying member's id; null for a direct path.
    public var via: String?
    /// Smoothed round trip in ms; nil before the first answer.
    public var rttMs: Double?
    /// Percent of what this node sends, as the member reports it, smoothed.
    public var lossPercent: Double
  }

  /// One queue between threads.
  public struct Queue: Codable, Equatable, Sendable {
    /// Such as `store` or `recorder`.
    public var name: String
    /// Elements waiting now.
    public var waiting: Int
    /// Elements dropped since the start.
    public var dropped: Int
  }
}

/// The round trips of one `ping`, one for each link to the member.
public struct PingReply: Codable, Equatable, Sendable {
  /// 16 hex digits.
  public var member: String
  public var name: String
  public var paths: [Path]

  /// One link's path.
  public struct Path: Codable, Equatable, Sendable {
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
  public var links: [Link]
  public var queues: [Queue]

  /// One link and the path that it uses.
  public struct Link: Codable, Equatable, Sendable {
    public var channel: String
    public var member: String
    /// `HOST:PORT` of a direct path; null for a relayed one.
    public var address: String?
    /// The relaying member's id; null for a direct path.
    public var via: String?
    public var rttMs: Double?
    public var lossPercent: Double
  }

  /// One queue between threads.
  public struct Queue: Codable, Equatable, Sendable {
    public var name: String
    public var waiting: Int
    /// Elements dropped since the start.
    public var dropped: Int
  }
}

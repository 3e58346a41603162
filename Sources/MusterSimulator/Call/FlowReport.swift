import MusterBase

/// The outcome of one scenario.
public struct CallResult: Sendable {
  public let scenario: NetworkScenario
  /// The media from each participant to each other, by receiver, then by sender.
  public let flows: [FlowReport]
  /// The rate of the TCP flow in kbit/s of IP packets, over the time that it ran; nil without one.
  public let tcpKilobitsPerSecond: Double?
  /// How fairly the video flows to the first receiver shared its downlink over the last
  /// `FlowMeter.fairTime`: Jain's index of their rates, from 1/n, where one of n has all, to 1,
  /// where all have the same; nil for fewer than two flows, or without a bottleneck.
  public let fairness: Double?
  /// The violation that ended the run; nil for a run without violations.
  public let violation: Violation?
  /// The digest of all events and delivered datagrams, with their times.
  public let digest: String
  /// The drawing of the run as an SVG document; nil unless requested.
  public let drawing: String?
}

/// What one participant received of another, from `FlowMeter.settling` after both had joined until
/// the end.
public struct FlowReport: Equatable, Sendable {
  public let from: String
  public let to: String
  /// The rate received in kbit/s of IP packets, everything between the two nodes included.
  public let kilobitsPerSecond: Double
  /// The same over the last `FlowMeter.fairTime`.
  public let lastKilobitsPerSecond: Double
  /// The mean rate of the bottleneck in kbit/s; nil for none.
  public let availableKilobitsPerSecond: Double?
  /// The sender's estimate of the path, each second.
  public let estimates: [Estimate]
  /// The time that packets waited at bottlenecks.
  public let queueingMedian: Duration
  public let queueing95: Duration
  /// The video; nil if the sender has no camera or the receiver requests no video.
  public let video: Video?
  /// The fraction of audio packets that were not there when they were due, in percent.
  public let audioLostPercent: Double

  /// The mean of the estimates in kbit/s; nil if there are none.
  public var estimatedKilobitsPerSecond: Double? {
    guard !estimates.isEmpty else { return nil }
    return estimates.reduce(0) { $0 + $1.kilobitsPerSecond } / Double(estimates.count)
  }

  /// A sender's estimate at one time.
  public struct Estimate: Equatable, Sendable {
    /// The time since the start of the scenario.
    public let at: Duration
    public let kilobitsPerSecond: Double
  }

  public struct Video: Equatable, Sendable {
    /// The time from the joining of both to the first frame; nil if no frame was ever shown.
    public let firstFrameAfter: Duration?
    public let frames: Int
    /// The frames that the source captured in the same time.
    public let framesCaptured: Int
    public let freezes: Int
    public let frozen: Duration
    public let longestFreeze: Duration
    public let layerChanges: Int
    /// The size of the last frame shown; nil for none.
    public let size: VideoSize?
  }
}

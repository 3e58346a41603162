import MusterBase
import MusterChannel
import MusterCore
import MusterWire

/// An event and the time at which it happened.
public struct TimedEvent: Sendable {
  /// Seconds since the process started, by the boot clock.
  public var secondsSinceStart: Double
  /// The event.
  public var event: Event

  /// An event at the given time.
  public init(secondsSinceStart: Double, event: Event) {
    self.secondsSinceStart = secondsSinceStart
    self.event = event
  }
}

/// An event of a node. `channel` is the channel's name; events without a channel concern the whole
/// node.
public enum Event: Sendable {
  case memberJoined(channel: String, Member)
  case memberUpdated(channel: String, Member)
  case memberLeft(channel: String, Member, LeaveReason)
  case callStarted(channel: String, ActiveCall)
  case callJoined(channel: String, ActiveCall, NodeID)
  case callLeft(channel: String, ActiveCall, NodeID, LeaveReason)
  /// The initiator of a call that was ended (`CallEndReason.ended`) is the member that did so.
  case callEnded(channel: String, CallInfo, reason: String)
  /// The initiator became unreachable or has left the call to others, and another participant leads
  /// it now.
  case callHandedOver(channel: String, ActiveCall)
  /// A member of a higher role, `by`, mutes a member in the call for everyone, or removes it.
  case callModerated(channel: String, Moderation, by: NodeID)
  case message(channel: String, TextMessage)
  case callState(channel: String, CallState)
  /// The steps that this node has taken in the call for lack of CPU have changed; 0 for none, up to
  /// 8.
  case callCPU(channel: String, step: Int)
  /// The dominant speaker of the call, which may be this node; nil after the former one has gone.
  case callSpeaker(channel: String, NodeID?)
  case linkUp(channel: String, NodeID, address: Address?, via: NodeID?)
  case linkDown(channel: String, NodeID, reason: String)
  /// `stream` is the name in the member's offer; `after` is the time since the link came up.
  case firstFrame(channel: String, NodeID, stream: String, after: Duration, size: VideoSize)
  /// `stream` names this node's stream for a sent layer, the member's for a received layer.
  case layer(
    channel: String, NodeID, stream: String, LayerDirection, from: VideoLayer?, to: VideoLayer?,
    why: String)
  case statistics(Statistics)
  case warning(MusterError)
  /// `command` is the text of the command that failed; nil if no command caused the error.
  case error(MusterError, command: String?)
}

/// Statistics of the node and its peers over the last second.
public struct Statistics: Sendable {
  /// CPU use of the process, in cores.
  public var cpu: Double
  /// Resident memory in 10^6 bytes.
  public var residentMegabytes: Double
  /// UDP payload sent over the last second, in kbit/s.
  public var uplinkKilobitsPerSecond: Double
  /// What the node may send in all in kbit/s of IP packets, as given or as learnt; nil if no limit
  /// is known.
  public var uplinkLimitKilobitsPerSecond: Double?
  /// One entry for each link, in the order of member ids, then of channel ids.
  public var peers: [Peer]
  /// Pairs of members that cannot reach each other and that this node relays for.
  public var relayed: [Relayed]
  /// The counters of the engines and queues since the start.
  public var counters: [CounterRecord.Counter]

  /// A pair of members that this node relays for.
  public struct Relayed: Sendable {
    /// The channel's name.
    public var channel: String
    /// The two members.
    public var members: [NodeID]
    /// The sum of both directions in kbit/s.
    public var kilobitsPerSecond: Double
  }

  /// The statistics of the link to one member in one channel.
  public struct Peer: Sendable {
    /// The channel's name.
    public var channel: String
    /// The member at the other end.
    public var member: NodeID
    /// The relaying member; nil for a direct path.
    public var via: NodeID?
    /// The smoothed round-trip time; nil before the first measurement.
    public var roundTrip: Duration?
    /// The smoothed packet loss from this node to the member, as reported by the member, in
    /// percent.
    public var lossPercent: Double
    /// The estimated bandwidth of the path in kbit/s; nil before the first report on sent media.
    public var estimatedKilobitsPerSecond: Double?
    /// The queueing delay of the path; nil before the first report on sent media.
    public var queueingDelay: Duration?
    /// Camera and audio to the member; nil while not in a call together.
    public var sent: Direction?
    /// Camera and audio from the member; nil while not in a call together.
    public var received: Direction?
    /// The camera's latency from capture to decoded frame; nil unless the member sends the test
    /// pattern and shares this node's boot clock.
    public var latency: (p50: Duration, p95: Duration)?
    /// The video streams other than the camera.
    public var streams: [Stream]
  }

  /// The statistics of a video stream other than the camera, in both directions.
  public struct Stream: Sendable {
    /// The name in the sender's offer.
    public var name: String
    /// This node's stream of that name; nil if there is none.
    public var sent: Direction?
    /// The member's stream of that name; nil if there is none.
    public var received: Direction?
    /// The latency of the member's stream from capture to decoded frame, as for the camera.
    public var latency: (p50: Duration, p95: Duration)?
  }

  /// The media statistics of one direction.
  public struct Direction: Sendable {
    /// The current layer; nil for none.
    public var layer: VideoLayer?
    /// The payload bit rate of audio and video over the last second, in kbit/s.
    public var kilobitsPerSecond: Double
    /// Frames sent, or received completely, since both nodes joined the call.
    public var frames: UInt64
    /// Frames that were not delivered, counted from gaps in the VP8 PictureID; 0 when sending.
    public var framesLost: UInt64
    /// The number of freezes: gaps between shown frames of more than three mean intervals and more
    /// than the mean and 150 ms.
    public var freezes: UInt64
    /// The total duration of the freezes.
    public var totalFreezesDuration: Duration
    /// The share of the member's frames of audio that were not played, in percent, also while it
    /// could not be reached; 0 when sending.
    public var audioLostPercent: Double
    /// The same for the last seconds, at most five.
    public var recentAudioLostPercent: Double
    /// The reason for the current layer.
    public var why: String
  }
}

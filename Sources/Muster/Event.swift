import MusterBase
import MusterChannel
import MusterCore
import MusterWire

/// An event and the time at which it happened.
public struct TimedEvent: Sendable {
  /// Since the process started, by a clock that does not jump.
  public var secondsSinceStart: Double
  /// What happened.
  public var event: Event

  /// A value of these fields.
  public init(secondsSinceStart: Double, event: Event) {
    self.secondsSinceStart = secondsSinceStart
    self.event = event
  }
}

/// Something that happened on a node. `channel` is the channel's name; events without it concern
/// the whole node.
public enum Event: Sendable {
  case memberJoined(channel: String, Member)
  case memberUpdated(channel: String, Member)
  case memberLeft(channel: String, Member, LeaveReason)
  case callStarted(channel: String, ActiveCall)
  case callJoined(channel: String, ActiveCall, NodeID)
  case callLeft(channel: String, ActiveCall, NodeID, LeaveReason)
  case callEnded(channel: String, CallInfo, reason: String)
  /// The initiator has vanished, and another participant takes its place.
  case callHandedOver(channel: String, ActiveCall)
  case message(channel: String, TextMessage)
  case callState(channel: String, CallState)
  case linkUp(channel: String, NodeID, address: Address?, via: NodeID?)
  case linkDown(channel: String, NodeID, reason: String)
  /// `stream` is what the member calls it; `after` counts from when its link came up.
  case firstFrame(channel: String, NodeID, stream: String, after: Duration, size: VideoSize)
  /// A layer that is sent is of this node's own `stream`, one that is received of the member's.
  case layer(
    channel: String, NodeID, stream: String, LayerDirection, from: VideoLayer?, to: VideoLayer?,
    why: String)
  case statistics(Statistics)
  case warning(MusterError)
  /// `command` is the text of the command that could not be done.
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
  /// One for each link, in the order of ids.
  public var peers: [Peer]
  /// Pairs of members that cannot reach each other and that this node relays for.
  public var relayed: [Relayed]
  /// The counters of the engines and queues since the start.
  public var counters: [CounterRecord.Counter]

  /// One such pair.
  public struct Relayed: Sendable {
    /// The channel's name.
    public var channel: String
    /// The two ends.
    public var members: [NodeID]
    /// In both directions together.
    public var kilobitsPerSecond: Double
  }

  /// One peer, in one channel.
  public struct Peer: Sendable {
    /// The channel's name.
    public var channel: String
    /// The member at the other end.
    public var member: NodeID
    /// The member through whom the link leads; nil for a direct one.
    public var via: NodeID?
    /// Smoothed; nil before the first answer.
    public var roundTrip: Duration?
    /// Percent of what this node sends, as the member reports it, smoothed.
    public var lossPercent: Double
    /// Camera and audio to the member; nil while not in a call together.
    public var sent: Direction?
    /// Camera and audio from the member; nil while not in a call together.
    public var received: Direction?
    /// From capture to decoded frame; nil without the test pattern or a shared clock.
    public var latency: (p50: Duration, p95: Duration)?
    /// Further video streams.
    public var streams: [Stream]
  }

  /// A further video stream, in both directions.
  public struct Stream: Sendable {
    /// The name that its owner gives it.
    public var name: String
    /// Nil where this node has no such stream.
    public var sent: Direction?
    /// Nil where the member has none.
    public var received: Direction?
    /// The figures of the member's stream, as for the camera.
    public var latency: (p50: Duration, p95: Duration)?
  }

  /// Media of one direction.
  public struct Direction: Sendable {
    /// The layer now; nil for none.
    public var layer: VideoLayer?
    /// Payload of audio and video over the last second, in kbit/s.
    public var kilobitsPerSecond: Double
    /// Frames since the two came into the call together.
    public var frames: UInt64
    /// Frames that were skipped; 0 when sending.
    public var framesLost: UInt64
    /// Gaps of more than 200 ms, and their sum.
    public var freezes: UInt64
    /// Sum of the gaps of more than 200 ms between frames.
    public var frozen: Duration
    /// Percent of the audio packets that were not there in time.
    public var audioLostPercent: Double
    /// Why the layer is what it is.
    public var why: String
  }
}

import MusterBase
import MusterChannel
import MusterCore
import MusterWire

/// Something a node tells its host, with the seconds since the node started.
public struct TimedEvent: Sendable {
  public var secondsSinceStart: Double
  public var event: Event

  public init(secondsSinceStart: Double, event: Event) {
    self.secondsSinceStart = secondsSinceStart
    self.event = event
  }
}

/// What a node tells. `channel` is the channel's name; nil for what concerns the whole node.
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

/// How the node and its peers fared in the last second.
public struct Statistics: Sendable {
  /// CPU use of the process, in cores.
  public var cpu: Double
  public var residentMegabytes: Double
  public var uplinkKilobitsPerSecond: Double
  public var peers: [Peer]
  /// Members who cannot reach each other and whose packets this node passes on.
  public var relayed: [Relayed]

  /// One such pair.
  public struct Relayed: Sendable {
    public var channel: String
    public var members: [NodeID]
    /// In both directions together.
    public var kilobitsPerSecond: Double
  }

  /// One peer, in one channel.
  public struct Peer: Sendable {
    public var channel: String
    public var member: NodeID
    /// The member through whom the link leads; nil for a direct one.
    public var via: NodeID?
    public var roundTrip: Duration?
    public var lossPercent: Double
    /// The camera and the audio; nil without media.
    public var sent: Direction?
    public var received: Direction?
    /// Capture to decoded picture; nil without the test pattern or a shared clock.
    public var latency: (p50: Duration, p95: Duration)?
    /// Further video streams.
    public var streams: [Stream]
  }

  /// A further video stream, in both directions.
  public struct Stream: Sendable {
    public var name: String
    /// Nil where this node has no such stream.
    public var sent: Direction?
    /// Nil where the member has none.
    public var received: Direction?
    /// Of the member's stream, as for the camera.
    public var latency: (p50: Duration, p95: Duration)?
  }

  /// Media of one direction.
  public struct Direction: Sendable {
    public var layer: VideoLayer?
    public var kilobitsPerSecond: Double
    /// Pictures since the call began.
    public var frames: UInt64
    public var framesLost: UInt64
    /// Gaps of more than 200 ms, and their sum.
    public var freezes: UInt64
    public var frozen: Duration
    public var audioLostPercent: Double
    public var why: String
  }
}

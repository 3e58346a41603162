import MusterBase
import MusterChannel
import MusterLink
import MusterMedia
import MusterWire

/// Something that happened in a channel and that people or scripts may want to know.
public enum NodeEvent: Equatable, Sendable {
  case channel(ChannelEvent)
  /// A link stands, at an address or through another member.
  case linkUp(NodeID, Address?, via: NodeID?)
  case linkDown(NodeID, LinkCloseReason)
  /// This node wanted into the call, and may not.
  case callRefused(CommandRefusal)
  /// This node's own way into and out of the call.
  case callState(CallState)
  /// The first frame of a member's stream; `after` counts from when its link came up.
  case firstFrame(NodeID, StreamID, after: Duration, size: VideoSize)
  /// The layer of a stream that goes to a member or comes from it has changed.
  case layer(NodeID, StreamID, LayerDirection, LayerChange)
}

/// How far this node is into the call.
public enum CallState: String, Sendable {
  case connecting, connected, reconnecting, disconnected
}

/// Whether a layer is sent to a member or received from it.
public enum LayerDirection: String, Sendable {
  case sent = "out"
  case received = "in"
}

/// One Opus packet of a member, for the playout.
public struct ReceivedAudio: Equatable, Sendable {
  public var sequence: UInt16
  /// 48 kHz.
  public var timestamp: UInt32
  public var level: UInt8?
  public var payload: [UInt8]
  /// When it was captured, by the sender's clock; nil before its first report.
  public var capturedAt: Instant?

  public init(
    sequence: UInt16, timestamp: UInt32, level: UInt8?, payload: [UInt8], capturedAt: Instant?
  ) {
    self.sequence = sequence
    self.timestamp = timestamp
    self.level = level
    self.payload = payload
    self.capturedAt = capturedAt
  }
}

/// What a member's connection is like right now.
public struct PeerStatistics: Equatable, Sendable {
  public var link: LinkID
  /// Where it leads; nil through another member.
  public var address: Address?
  /// The member through whom it leads.
  public var via: NodeID?
  public var roundTrip: Duration?
  /// Of what this node sends, as the member reports it.
  public var lossPercent: Double
  /// Of the camera and the audio; nil while there is no media with the member.
  public var sent: MediaStatistics?
  public var received: MediaStatistics?
  /// Of further video streams, in rising order.
  public var streams: [StreamStatistics] = []
}

/// Both directions of one video stream between this node and a member.
public struct StreamStatistics: Equatable, Sendable {
  public var stream: StreamID
  /// Nil for a direction in which the stream has not been offered.
  public var sent: MediaStatistics?
  public var received: MediaStatistics?

  public init(stream: StreamID, sent: MediaStatistics?, received: MediaStatistics?) {
    self.stream = stream
    self.sent = sent
    self.received = received
  }
}

/// Totals of one direction of one stream since media with the member began; the camera's include
/// the audio.
public struct MediaStatistics: Equatable, Sendable {
  public var layer: VideoLayer?
  /// RTP payload bytes.
  public var bytes: UInt64 = 0
  public var frames: UInt64 = 0
  public var framesLost: UInt64 = 0
  public var freezes: UInt64 = 0
  public var frozen: Duration = .zero
  public var audioPackets: UInt64 = 0
  public var why = LayerReason.started
}

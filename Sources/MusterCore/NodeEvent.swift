import MusterBase
import MusterChannel
import MusterCongestion
import MusterLink
import MusterMedia
import MusterWire

/// An event in a channel that may be of interest to users or scripts.
public enum NodeEvent: Equatable, Sendable {
  /// An event of the roster, the call, the text messages or the rights.
  case channel(ChannelEvent)
  /// The link with a member was established, directly at an address or through the member `via`.
  case linkUp(NodeID, Address?, via: NodeID?)
  /// The link with a member closed.
  case linkDown(NodeID, LinkCloseReason)
  /// This node tried to start or join the call, but was refused for this reason. With `joinsNext`
  /// it joins the next call that a member starts.
  case callRefused(CommandRefusal, joinsNext: Bool)
  /// This node, the channel's owner, has changed the key because the roles of these members have
  /// expired.
  case rolesExpired([NodeID])
  /// Roles have expired, and this node, the channel's owner, cannot change the key.
  case keyChangeRefused(CommandRefusal)
  /// This node's new role would have started these media, which are muted instead.
  case mediaHeld(OwnMedia, Role)
  /// The state of this node's participation in the call has changed.
  case callState(CallState)
  /// Another participant, or this node, has become the dominant speaker; nil if the former one has
  /// gone.
  case dominantSpeaker(NodeID?)
  /// The first frame of a member's stream arrived; `after` is the time since the link came up.
  case firstFrame(NodeID, StreamID, after: Duration, size: VideoSize)
  /// The layer of a stream to or from a member has changed.
  case layer(NodeID, StreamID, LayerDirection, LayerChange)
  /// What this node gives up in calls for lack of CPU has changed.
  case cpu(CPUAdaptation.Step)
  /// This node closed its link with a peer that is not a member, for this reason.
  case peerRefused(NodeID, Refusal)
  /// A peer whose address others know has answered at none of these, and is in touch with no member
  /// either.
  case unreached(NodeID, tried: [Address])
  /// This node's own identity runs on another machine, too, at this address.
  case twin(Address)
  /// A member's reply to a ping of the host arrived over this route.
  case pong(NodeID, roundTrip: Duration, over: Route)
}

/// The state of this node's participation in the call.
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
  /// The RTP sequence number.
  public var sequence: UInt16
  /// The RTP timestamp, at 48 kHz.
  public var timestamp: UInt32
  /// The audio level in -dBov, 0 (loudest) to 127 (RFC 6464); nil without the header extension.
  public var level: UInt8?
  /// One Opus packet (RFC 7587).
  public var payload: [UInt8]
  /// The capture time on the sender's media clock; nil before its first sender report.
  public var capturedAt: Instant?
  /// The time from noticing a loss within which retransmissions arrive; nil if there are none.
  public var repairTime: Duration?
  /// The least delay of playout: what the member's video needs in order to stay in sync.
  public var leastDelay: Duration

  /// Creates a packet; `timestamp` counts samples at 48 kHz.
  public init(
    sequence: UInt16, timestamp: UInt32, level: UInt8?, payload: [UInt8], capturedAt: Instant?,
    repairTime: Duration?, leastDelay: Duration = .zero
  ) {
    self.sequence = sequence
    self.timestamp = timestamp
    self.level = level
    self.payload = payload
    self.capturedAt = capturedAt
    self.repairTime = repairTime
    self.leastDelay = leastDelay
  }
}

/// The current path to a linked peer, and the statistics of the media exchanged with that peer.
public struct PeerStatistics: Equatable, Sendable {
  /// The channel and the member.
  public var link: LinkID
  /// The remote address; nil if the path is relayed.
  public var address: Address?
  /// The member that relays the path; nil for a direct path.
  public var via: NodeID?
  /// The smoothed round trip of the path in use; nil before the first measurement.
  public var roundTrip: Duration?
  /// The estimate of the path in use; nil before the first report on media that this node sends.
  public var estimate: PathEstimate?
  /// The loss of the media that this node sends, in percent, from the member's RTCP reports.
  public var lossPercent: Double
  /// Sent media of the camera and the audio; nil while there is no media with the member.
  public var sent: MediaStatistics?
  /// Received media of the camera and the audio; nil while there is no media with the member.
  public var received: MediaStatistics?
  /// The statistics of the video streams other than the camera, in ascending order of their ids.
  public var streams: [StreamStatistics] = []
}

/// The statistics of one video stream between this node and a member, in both directions.
public struct StreamStatistics: Equatable, Sendable {
  /// The video stream.
  public var stream: StreamID
  /// Media sent to the member; nil while this node has not offered the stream.
  public var sent: MediaStatistics?
  /// Media received from the member; nil while the member has not offered the stream.
  public var received: MediaStatistics?

  /// Creates statistics; a direction in which the stream has not been offered is nil.
  public init(stream: StreamID, sent: MediaStatistics?, received: MediaStatistics?) {
    self.stream = stream
    self.sent = sent
    self.received = received
  }
}

/// The totals of one direction of one stream since media with the member began; the totals of the
/// camera include the audio.
public struct MediaStatistics: Equatable, Sendable {
  /// The simulcast layer in use; nil while no video is sent or received.
  public var layer: VideoLayer?
  /// The number of RTP payload bytes.
  public var bytes: UInt64 = 0
  /// The number of video frames sent, or received complete.
  public var frames: UInt64 = 0
  /// The number of frames not delivered, from gaps in the PictureID; received media only.
  public var framesLost: UInt64 = 0
  /// The number of freezes (`FreezeMeter`): intervals between shown frames of more than three mean
  /// intervals and more than the mean and 150 ms, except pauses of the source; received media only.
  public var freezes: UInt64 = 0
  /// The total duration of the intervals counted in `freezes`.
  public var totalFreezesDuration: Duration = .zero
  /// The number of audio packets; always 0 for streams other than the camera.
  public var audioPackets: UInt64 = 0
  /// The reason for the last change of `layer`.
  public var why = LayerReason.started
}

import MusterBase
import MusterWire

/// A VP8 frame for the call page, as encoded by its sender.
public struct ViewedFrame: Sendable {
  /// The channel of the frame's call; nil for this node's own preview.
  public var channel: String?
  /// The member that sent the frame; nil for this node's own preview.
  public var member: NodeID?
  /// The member's video stream; `camera` for the preview.
  public var stream: StreamID
  /// Whether the frame can be decoded by itself.
  public var isKeyframe: Bool
  /// The temporal layer; 0 is the base layer.
  public var temporalLayer: Int
  /// One VP8 frame (RFC 6386).
  public var data: [UInt8]
  /// Whether to show the frame, or only to decode it, because later frames refer to it.
  public var isShown = true
  /// The time of capture (preview) or complete reception, by this node's boot clock.
  public var at: Instant

  /// A frame of a member, or of the preview without `channel` and `member`.
  package init(
    channel: String?, member: NodeID?, stream: StreamID, isKeyframe: Bool, temporalLayer: Int,
    data: [UInt8], isShown: Bool = true, at: Instant
  ) {
    self.channel = channel
    self.member = member
    self.stream = stream
    self.isKeyframe = isKeyframe
    self.temporalLayer = temporalLayer
    self.data = data
    self.isShown = isShown
    self.at = at
  }
}

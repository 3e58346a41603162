import MusterBase

/// The layer of a video stream that the sender of this message sends to its receiver, and the
/// reason.
///
/// Layout in bytes: stream 1, width 2, height 2, frames per second 1, reason 1. A width or height
/// of 0 means that no video is sent.
public struct SentLayer: Equatable, Sendable {
  /// The stream, which the sender of this message sends.
  public var stream: StreamID
  /// The layer with the frame rate at which it is sent; nil if no video is sent.
  public var layer: VideoLayer?
  /// The reason for the layer, or for the absence of video.
  public var why: LayerReason

  /// Describes what a node sends of one of its streams; nil means no video.
  public init(_ stream: StreamID, _ layer: VideoLayer?, why: LayerReason) {
    self.stream = stream
    self.layer = layer
    self.why = why
  }

  func write(to writer: inout Writer) {
    writer.u8(stream.number)
    writer.u16(UInt16(clamping: layer?.size.width ?? 0))
    writer.u16(UInt16(clamping: layer?.size.height ?? 0))
    writer.u8(UInt8(clamping: layer?.framesPerSecond ?? 0))
    writer.u8(why.rawValue)
  }

  /// Decodes a sent layer; nil for a stream number that this version does not support.
  static func read(from reader: inout Reader) throws(WireError) -> SentLayer? {
    let stream = StreamID(Int(try reader.u8()))
    let size = VideoSize(width: Int(try reader.u16()), height: Int(try reader.u16()))
    let rate = Int(try reader.u8())
    let why = LayerReason(rawValue: try reader.u8()) ?? .unknown
    let layer = size.pixels > 0 ? VideoLayer(size: size, framesPerSecond: rate) : nil
    return stream.map { SentLayer($0, layer, why: why) }
  }
}

/// The reason for the layer that is sent or received, or for the absence of video.
public enum LayerReason: UInt8, CaseIterable, Sendable {
  /// A reason that this version does not know.
  case unknown = 0
  /// The call has started; the best layer is used until a subscription arrives.
  case started = 1
  /// The receiver's subscription changed.
  case requested = 2
  /// The sender muted its video.
  case muted = 3
  /// The sender unmuted its video.
  case unmuted = 4
  /// The sender's role forbids sending, or has just been changed to allow it.
  case role = 5
  /// The sender has no source for the stream, or has changed the source.
  case source = 6
  /// One side has left the call.
  case ended = 7
  /// The path has no room for more, or now has room for more.
  case bandwidth = 8
  /// The receiver receives the videos of others instead, which rank higher for it.
  case rank = 9
  /// The sender or the receiver is short of CPU.
  case cpu = 10
  /// The sender's uplink is shared by all receivers, and this one's share has no room for more.
  case uplinkShare = 11

  /// Whether a way to the receiver has no room for more, or now has room for more.
  public var isOfRoom: Bool { self == .bandwidth || self == .uplinkShare }

  /// The reason as it appears in events.
  public var name: String {
    switch self {
    case .unknown: "unknown"
    case .started: "call-started"
    case .requested: "receiver-request"
    case .muted: "video-muted"
    case .unmuted: "video-unmuted"
    case .role: "role-changed"
    case .source: "source-changed"
    case .ended: "left-call"
    case .bandwidth: "bandwidth"
    case .rank: "rank"
    case .cpu: "cpu"
    case .uplinkShare: "uplink-share"
    }
  }
}

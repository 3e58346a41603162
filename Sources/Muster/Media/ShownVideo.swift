import MusterBase
import MusterWire

/// A video that a viewer shows, and how much of it is useful there.
public struct ShownVideo: Sendable {
  /// The origin of a video.
  public enum Source: Sendable {
    /// This node's own camera.
    case preview
    /// A stream of a member, in a channel given by its name.
    case member(NodeID, StreamID, channel: String)
  }

  /// The origin of the video.
  public var source: Source
  /// The largest useful size; the shorter side counts.
  public var size: VideoSize
  /// The highest useful frame rate, within `VideoRequest.rates`; nil for any.
  public var framesPerSecond: Int?
  /// Whether the video ranks before all that are not pinned; see `Configuration.maxStreams`.
  public var isPinned: Bool

  /// A video of which this size and frame rate are useful.
  public init(
    source: Source, size: VideoSize, framesPerSecond: Int? = nil, isPinned: Bool = false
  ) {
    self.source = source
    self.size = size
    self.framesPerSecond = framesPerSecond
    self.isPinned = isPinned
  }
}

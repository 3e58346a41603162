import MusterBase

/// The frames of a layer to which its next frames may refer, from the newest keyframe on, with
/// which a receiver can begin without a keyframe of its own: media servers call it a GOP cache.
///
/// A further keyframe would cost all other receivers of the layer some of their quality. No frame
/// refers to the enhancement frames before the latest base-layer frame, so these are left out.
public struct FrameCache: Sendable {
  /// The age of the keyframe up to which the frames are of use: the older it is, the more they cost
  /// the path, and the longer a receiver takes to catch up.
  public static let lifetime = Duration.seconds(2)
  /// The time within which all of them must be sent, so that the next frame is admitted.
  public static let longestWait = FrameAdmission.longestWait[0]
  /// The limit in payload bytes: two thirds of what a layer of 2.5 Mbit/s puts into its keyframe
  /// and the base layer of `lifetime`.
  static let capacity = 1 << 18

  private var frames: [PacketizedFrame] = []
  private var bytes = 0
  /// The number of enhancement frames at the end, after the latest base-layer frame.
  private var enhancements = 0
  private var begunAt = Instant.zero

  /// Creates an empty cache.
  public init() {}

  /// Adds the layer's next frame. A keyframe replaces all others; without one, and beyond the
  /// limits, nothing is kept until the next.
  public mutating func add(_ frame: PacketizedFrame, at now: Instant) {
    if frame.isKeyframe {
      removeAll()
      begunAt = now
    } else if frames.isEmpty || !frame.isReference {
      return
    } else if frame.temporalLayer == 0 {
      removeEnhancements()
    }
    if frame.temporalLayer > 0 { enhancements += 1 }
    bytes += frame.bytes
    frames.append(frame)
    if bytes > Self.capacity || now - begunAt > Self.lifetime { removeAll() }
  }

  /// Removes all frames.
  public mutating func removeAll() { (frames, bytes, enhancements) = ([], 0, 0) }

  private mutating func removeEnhancements() {
    bytes -= frames.suffix(enhancements).reduce(0) { $0 + $1.bytes }
    frames.removeLast(enhancements)
    enhancements = 0
  }

  /// Frames in order, of which the first is a keyframe.
  public struct Content: Sendable {
    public let frames: [PacketizedFrame]
    /// The bytes of all payloads.
    public let bytes: Int

    /// The capture time of the keyframe.
    public var keyframeCapturedAt: Instant { frames[0].capturedAt }
  }

  /// What the cache holds; nil if that is nothing, or too old.
  public func content(at now: Instant) -> Content? {
    if frames.isEmpty || now - begunAt > Self.lifetime { return nil }
    return Content(frames: frames, bytes: bytes)
  }
}

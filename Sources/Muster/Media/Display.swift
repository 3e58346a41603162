import MusterBase
import MusterCore
import MusterMedia
import MusterPipeline
import MusterSystem

/// Passes frames to a viewer on a thread of its own, each when it is due, so that a slow viewer
/// stalls nothing else: it misses frames. Confined to the event loop; ends with this object.
package final class Display {
  /// The stream of a member, or nil for this node's own preview.
  private typealias Key = MemberStream?

  private struct Entry {
    var frame: ViewedFrame
    var stream: MemberStream?
  }

  /// The maximum number of frames that wait for the viewer: a quarter of a second of 8 streams at
  /// 30 frames per second, two seconds of one.
  private static let capacity = 64

  private let queue = FrameQueue<Entry, Key>(encoded: capacity, independent: 1) { entry in
    .encoded(
      entry.stream, temporalLayer: entry.frame.temporalLayer, isKeyframe: entry.frame.isKeyframe)
  }
  /// The number of frames that the viewer has taken.
  private let taken = Monitor(0)
  /// The streams that need a keyframe, and the frames taken when the last of them was noted.
  private var broken: [MemberStream?] = []
  private var takenBefore = 0
  /// The frames that are not due yet.
  private var early: [MemberStream: DisplayQueue<ViewedFrame>] = [:]

  /// Calls `sink` with one frame at a time until this object is released.
  package init(_ sink: @escaping @Sendable (ViewedFrame) -> Void) {
    let (queue, taken) = (queue, taken)
    WorkerThread("muster-display") {
      while let entry = queue.take() {
        sink(entry.frame)
        taken.withLock { $0 += 1 }
      }
    }
  }

  deinit { queue.close() }

  /// The number of frames that wait for the viewer, and of those that it missed.
  package var queueLevel: QueueLevel { queue.level }

  /// Adds a frame that is to be shown after `delay`, and passes those that are due. `showDue` has
  /// to be called at the time that is returned.
  package func add(
    _ frame: ViewedFrame, of stream: MemberStream, after delay: Duration, at now: Instant
  ) -> Instant {
    let due = early[stream, default: DisplayQueue()].add(frame, after: delay, at: now)
    showDue(of: stream, at: now)
    return due
  }

  /// Passes the frames of a stream that are due.
  package func showDue(of stream: MemberStream, at now: Instant) {
    for frame in early[stream]?.due(at: now) ?? [] { show(frame, of: stream) }
  }

  /// Passes a frame at once; `stream` is nil for this node's own preview.
  package func show(_ frame: ViewedFrame, of stream: MemberStream?) {
    if case .needsKeyframe(let other) = queue.add(Entry(frame: frame, stream: stream)),
      !broken.contains(other)
    {
      broken.append(other)
      takenBefore = taken.withLock { $0 }
    }
  }

  /// Whether the viewer has missed frames and takes frames again.
  package var hasRecovered: Bool {
    !broken.isEmpty && taken.withLock { $0 } > takenBefore
  }

  /// Takes the streams that need a keyframe, since the viewer has missed frames: once it takes
  /// frames again, because a keyframe costs all receivers.
  package func takeBroken() -> [MemberStream?] {
    guard hasRecovered else { return [] }
    defer { broken = [] }
    return broken
  }

  /// Drops the frames of a stream that are not due yet.
  package func forget(_ stream: MemberStream) { early[stream] = nil }
}

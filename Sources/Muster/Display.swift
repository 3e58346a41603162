import MusterBase
import MusterCore
import MusterMedia
import MusterPipeline
import MusterSystem

/// Passes frames to a viewer on a thread of its own, each when it is due, so that a slow viewer
/// stalls nothing else: it misses frames. Confined to the event loop; ends with this object.
final class Display {
  /// The stream of a member, or nil for this node's own preview.
  private typealias Key = MemberStream?

  private struct Entry {
    var frame: ViewedFrame
    var stream: MemberStream?
  }

  /// The maximum number of frames that wait for the viewer: half a second of 8 streams at 30 frames
  /// per second.
  private static let capacity = 128

  private let queue = FrameQueue<Entry, Key>(encoded: capacity, independent: 1) { entry in
    .encoded(
      entry.stream, temporalLayer: entry.frame.temporalLayer, isKeyframe: entry.frame.isKeyframe)
  }
  /// The frames that are not due yet.
  private var early: [MemberStream: DisplayQueue<ViewedFrame>] = [:]

  /// Calls `sink` with one frame at a time until this object is released.
  init(_ sink: @escaping @Sendable (ViewedFrame) -> Void) {
    let queue = queue
    WorkerThread("muster-display") { while let entry = queue.take() { sink(entry.frame) } }
  }

  deinit { queue.close() }

  /// The number of frames that wait for the viewer, and of those that it missed.
  var queueLevel: QueueLevel { queue.level }

  /// Adds a frame that is to be shown after `delay`, and passes what is due; the caller has to call
  /// `showDue` at the time that is returned. `broken` is called with each stream that needs a
  /// keyframe because the viewer is too slow.
  func add(
    _ frame: ViewedFrame, of stream: MemberStream, after delay: Duration, at now: Instant,
    broken: (MemberStream?) -> Void
  ) -> Instant {
    let due = early[stream, default: DisplayQueue()].add(frame, after: delay, at: now)
    showDue(of: stream, at: now, broken: broken)
    return due
  }

  /// Passes the frames of a stream that are due.
  func showDue(of stream: MemberStream, at now: Instant, broken: (MemberStream?) -> Void) {
    for frame in early[stream]?.due(at: now) ?? [] { show(frame, of: stream, broken: broken) }
  }

  /// Passes a frame at once; `stream` is nil for this node's own preview.
  func show(_ frame: ViewedFrame, of stream: MemberStream?, broken: (MemberStream?) -> Void) {
    guard case .needsKeyframe(let other) = queue.add(Entry(frame: frame, stream: stream)) else {
      return
    }
    broken(other)
  }

  /// Drops the frames of a stream that are not due yet.
  func forget(_ stream: MemberStream) { early[stream] = nil }
}

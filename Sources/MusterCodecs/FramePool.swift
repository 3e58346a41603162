import MusterBase
import Synchronization

/// A pool of memory for frames of one size, so that a stream allocates memory only at its start.
///
/// A frame returns its memory when the last reference to the frame is released.
public final class FramePool: Sendable {
  /// The size of all frames of the pool.
  public let size: VideoSize
  /// The maximum number of free frames kept for reuse; additional frames are freed when released.
  public let capacity: Int
  private let free = Mutex<[FrameStorage]>([])

  /// Creates an empty pool. The default capacity covers one frame at the source, two queued frames
  /// and one frame that is being encoded.
  public init(size: VideoSize, capacity: Int = 4) {
    self.size = size
    self.capacity = capacity
  }

  /// Returns a frame with undefined content, in reused memory if any is free.
  public func frame() -> I420Frame {
    let storage = free.withLock { $0.popLast() } ?? FrameStorage(size: size)
    return I420Frame(size: size, storage: storage, pool: self)
  }

  func takeBack(_ storage: FrameStorage) {
    free.withLock { storages in
      if storages.count < capacity { storages.append(storage) }
    }
  }
}

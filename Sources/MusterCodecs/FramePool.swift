import MusterBase
import Synchronization

/// Reuses the memory of frames of one size, so that a stream allocates at its start only.
///
/// A frame returns its memory when the last reference to it goes.
public final class FramePool: Sendable {
  /// The size of all frames of the pool.
  public let size: VideoSize
  /// Free frames kept for reuse; more can be in use, and are freed when released.
  public let capacity: Int
  private let free = Mutex<[FrameStorage]>([])

  /// Four by default: one at the source, two queued, one being encoded.
  public init(size: VideoSize, capacity: Int = 4) {
    self.size = size
    self.capacity = capacity
  }

  /// A frame with undefined content.
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

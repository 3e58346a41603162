import MusterBase
import Synchronization

/// Reuses the memory of pictures of one size, so that a stream allocates only at its start.
///
/// A frame returns its memory by itself when nobody holds it any longer.
public final class FramePool: Sendable {
  public let size: VideoSize
  /// Pictures kept for reuse; more than these may be in use, and are freed when they return.
  public let capacity: Int
  private let free = Mutex<[FrameStorage]>([])

  /// Four: one at the source, two waiting, one being encoded.
  public init(size: VideoSize, capacity: Int = 4) {
    self.size = size
    self.capacity = capacity
  }

  /// A picture of undefined content.
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

/// A queue of raw media between threads that never blocks the producer: when full, the oldest
/// element goes. Encoded frames, and anything that must not be lost, go through `FrameQueue`.
package final class BoundedQueue<Element: Sendable>: Sendable {
  private struct Contents {
    var elements: [Element] = []
    var isClosed = false
    var dropped: UInt64 = 0
  }

  private let capacity: Int
  private let contents: Monitor<Contents>

  package init(capacity: Int) {
    precondition(capacity > 0)
    self.capacity = capacity
    contents = Monitor(Contents())
  }

  package func add(_ element: Element) {
    contents.withLock {
      guard !$0.isClosed else { return }
      if $0.elements.count >= capacity {
        $0.elements.removeFirst()
        $0.dropped += 1
      }
      $0.elements.append(element)
    }
  }

  /// Everything queued, waiting for something where there is nothing; nil once closed and empty.
  package func takeAll() -> [Element]? {
    contents.wait { contents -> [Element]?? in
      if contents.elements.isEmpty { return contents.isClosed ? .some(nil) : nil }
      defer { contents.elements = [] }
      return .some(contents.elements)
    }
  }

  /// Everything queued right now.
  package func takeWithoutWaiting() -> [Element] {
    contents.withLock { contents in
      defer { contents.elements = [] }
      return contents.elements
    }
  }

  package var isClosed: Bool { contents.withLock { $0.isClosed } }
  package var dropped: UInt64 { contents.withLock { $0.dropped } }

  package func close() { contents.withLock { $0.isClosed = true } }
}

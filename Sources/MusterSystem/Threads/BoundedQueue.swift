/// A bounded queue between threads. Adding never blocks: a full queue drops its oldest element.
package final class BoundedQueue<Element: Sendable>: Sendable {
  private struct Contents {
    var elements: [Element] = []
    var isClosed = false
  }

  private let capacity: Int
  private let contents: Monitor<Contents>

  /// Creates a queue of at most `capacity` elements, which must be positive.
  package init(capacity: Int) {
    precondition(capacity > 0)
    self.capacity = capacity
    contents = Monitor(Contents())
  }

  /// Appends an element; has no effect on a closed queue.
  package func add(_ element: Element) {
    contents.withLock {
      guard !$0.isClosed else { return }
      if $0.elements.count >= capacity {
        $0.elements.removeFirst()
      }
      $0.elements.append(element)
    }
  }

  /// Takes all queued elements; blocks while the queue is empty, and returns nil once it is closed
  /// and empty.
  package func takeAll() -> [Element]? {
    contents.wait { contents -> [Element]?? in
      if contents.elements.isEmpty { return contents.isClosed ? .some(nil) : nil }
      defer { contents.elements = [] }
      return .some(contents.elements)
    }
  }

  /// Takes all queued elements without blocking.
  package func takeWithoutWaiting() -> [Element] {
    contents.withLock { contents in
      defer { contents.elements = [] }
      return contents.elements
    }
  }

  /// Whether `close()` has been called.
  package var isClosed: Bool { contents.withLock { $0.isClosed } }

  /// Closes the queue: queued elements can still be taken, new ones are ignored.
  package func close() { contents.withLock { $0.isClosed = true } }
}

/// A bounded queue between threads. Adding never blocks: a full queue drops its oldest element.
package final class BoundedQueue<Element: Sendable>: Sendable {
  private struct Contents {
    var elements: [Element] = []
    var isClosed = false
  }

  private let capacity: Int
  private let contents: Monitor<Contents>

  /// An open queue for `capacity` elements, at least 1.
  package init(capacity: Int) {
    precondition(capacity > 0)
    self.capacity = capacity
    contents = Monitor(Contents())
  }

  /// Appends an element; has no effect once closed.
  package func add(_ element: Element) {
    contents.withLock {
      guard !$0.isClosed else { return }
      if $0.elements.count >= capacity {
        $0.elements.removeFirst()
      }
      $0.elements.append(element)
    }
  }

  /// All queued elements; blocks while there are none, and returns nil once closed and empty.
  package func takeAll() -> [Element]? {
    contents.wait { contents -> [Element]?? in
      if contents.elements.isEmpty { return contents.isClosed ? .some(nil) : nil }
      defer { contents.elements = [] }
      return .some(contents.elements)
    }
  }

  /// All queued elements, without blocking.
  package func takeWithoutWaiting() -> [Element] {
    contents.withLock { contents in
      defer { contents.elements = [] }
      return contents.elements
    }
  }

  /// Whether `close()` has been called.
  package var isClosed: Bool { contents.withLock { $0.isClosed } }

  /// Ends the stream: queued elements can still be taken, new ones are ignored.
  package func close() { contents.withLock { $0.isClosed = true } }
}

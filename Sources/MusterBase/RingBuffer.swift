/// A bounded first-in, first-out queue.
public struct RingBuffer<Element> {
  private var storage: [Element?]
  private var head = 0
  public private(set) var count = 0

  /// `capacity` must be positive.
  public init(capacity: Int) {
    precondition(capacity > 0)
    storage = Array(repeating: nil, count: capacity)
  }

  public var capacity: Int { storage.count }
  public var isEmpty: Bool { count == 0 }
  public var isFull: Bool { count == storage.count }
  public var first: Element? { isEmpty ? nil : storage[head] }
  public var last: Element? { isEmpty ? nil : self[count - 1] }

  /// The element `index` places behind the oldest.
  public subscript(index: Int) -> Element {
    get {
      precondition(index >= 0 && index < count)
      return storage[(head + index) % storage.count]!  // within count, so it is there
    }
    set {
      precondition(index >= 0 && index < count)
      storage[(head + index) % storage.count] = newValue
    }
  }

  /// Adds at the end; when full, the oldest makes room and is returned.
  @discardableResult
  public mutating func append(_ element: Element) -> Element? {
    let dropped = isFull ? popFirst() : nil
    storage[(head + count) % storage.count] = element
    count += 1
    return dropped
  }

  @discardableResult
  public mutating func popFirst() -> Element? {
    guard count > 0 else { return nil }
    let element = storage[head]
    storage[head] = nil
    head = (head + 1) % storage.count
    count -= 1
    return element
  }

  public mutating func removeAll() {
    while popFirst() != nil {}
  }
}

extension RingBuffer: Sendable where Element: Sendable {}

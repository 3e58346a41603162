/// A first-in, first-out queue of fixed capacity that drops its oldest element when full.
@frozen
public struct RingBuffer<Element> {
  @usableFromInline var storage: [Element?]
  @usableFromInline var head = 0
  @usableFromInline var held = 0

  /// Allocates room for `capacity` elements, which must be positive.
  @inlinable public init(capacity: Int) {
    precondition(capacity > 0)
    storage = Array(repeating: nil, count: capacity)
  }

  /// The number of elements held.
  @inlinable public var count: Int { held }
  /// The number of elements that fit.
  @inlinable public var capacity: Int { storage.count }
  /// Whether the queue is empty.
  @inlinable public var isEmpty: Bool { count == 0 }
  /// Whether the next `append` drops the oldest element.
  @inlinable public var isFull: Bool { count == storage.count }
  /// The oldest element; nil if the queue is empty.
  @inlinable public var first: Element? { isEmpty ? nil : storage[head] }
  /// The newest element; nil if the queue is empty.
  @inlinable public var last: Element? { isEmpty ? nil : self[count - 1] }

  /// The element at `index`, counted from the oldest; `index` must be below `count`.
  @inlinable public subscript(index: Int) -> Element {
    get {
      precondition(index >= 0 && index < count)
      return storage[slot(index)]!  // present, because `index` is below `count`
    }
    set {
      precondition(index >= 0 && index < count)
      storage[slot(index)] = newValue
    }
  }

  /// Appends an element; if the queue is full, drops and returns the oldest element.
  @discardableResult
  @inlinable public mutating func append(_ element: Element) -> Element? {
    let dropped = isFull ? popFirst() : nil
    storage[slot(count)] = element
    held += 1
    return dropped
  }

  /// Removes and returns the oldest element; nil if the queue is empty.
  @discardableResult
  @inlinable public mutating func popFirst() -> Element? {
    guard count > 0 else { return nil }
    let element = storage[head]
    storage[head] = nil
    head = slot(1)
    held -= 1
    return element
  }

  /// The slot of the element at `index`, which must be at most `count`. It wraps around by
  /// comparison, since a division for each access is slow.
  @inlinable func slot(_ index: Int) -> Int {
    let slot = head + index
    return slot < storage.count ? slot : slot - storage.count
  }

  /// Removes and releases all elements; the capacity is not affected.
  @inlinable public mutating func removeAll() {
    while popFirst() != nil {}
  }
}

extension RingBuffer: Sendable where Element: Sendable {}

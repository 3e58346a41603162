/// A queue of values ordered by time; values of equal time leave in the order of their insertion.
///
/// The queue is a binary heap over (time, sequence number). The sequence number makes the order
/// total, so every run of one seed is the same.
@frozen
public struct EventQueue<Value> {
  @usableFromInline struct Entry {
    @usableFromInline let at: Instant
    @usableFromInline let number: UInt64
    @usableFromInline let value: Value

    @inlinable init(at: Instant, number: UInt64, value: Value) {
      self.at = at
      self.number = number
      self.value = value
    }

    @inlinable func precedes(_ other: Entry) -> Bool {
      at != other.at ? at < other.at : number < other.number
    }
  }

  @usableFromInline var heap: [Entry] = []
  @usableFromInline var nextNumber: UInt64 = 0

  /// An empty queue.
  @inlinable public init() {}

  /// The number of values in the queue.
  @inlinable public var count: Int { heap.count }

  /// The time at which the first value is due; nil if the queue is empty.
  @inlinable public var deadline: Instant? { heap.first?.at }

  /// Adds a value that is due at `time`.
  @inlinable public mutating func schedule(_ value: Value, at time: Instant) {
    heap.append(Entry(at: time, number: nextNumber, value: value))
    nextNumber += 1
    var index = heap.count - 1
    while index > 0 {
      let parent = (index - 1) / 2
      guard heap[index].precedes(heap[parent]) else { return }
      heap.swapAt(index, parent)
      index = parent
    }
  }

  /// Removes and returns the first value if it is due by `now`; otherwise returns nil.
  @inlinable public mutating func popDue(at now: Instant) -> Value? {
    guard let first = heap.first, first.at <= now else { return nil }
    heap.swapAt(0, heap.count - 1)
    heap.removeLast()
    sink()
    return first.value
  }

  @inlinable mutating func sink() {
    var index = 0
    while true {
      let left = 2 * index + 1
      guard left < heap.count else { return }
      let right = left + 1
      let child = right < heap.count && heap[right].precedes(heap[left]) ? right : left
      guard heap[child].precedes(heap[index]) else { return }
      heap.swapAt(index, child)
      index = child
    }
  }
}

extension EventQueue.Entry: Sendable where Value: Sendable {}
extension EventQueue: Sendable where Value: Sendable {}

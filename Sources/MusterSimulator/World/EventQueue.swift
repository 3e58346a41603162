import MusterBase

/// Values with a time each, out in order of time; those of one time in the order they came.
///
/// A binary heap over (time, sequence number): the number makes the order total, and with it every
/// run of one seed the same.
public struct EventQueue<Value> {
  fileprivate struct Entry {
    let at: Instant
    let number: UInt64
    let value: Value

    func precedes(_ other: Entry) -> Bool {
      at != other.at ? at < other.at : number < other.number
    }
  }

  private var heap: [Entry] = []
  private var nextNumber: UInt64 = 0

  /// An empty queue.
  public init() {}

  /// Number of values scheduled and not yet taken out.
  public var count: Int { heap.count }

  /// When the first value is due.
  public var deadline: Instant? { heap.first?.at }

  /// Adds a value.
  public mutating func schedule(_ value: Value, at time: Instant) {
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

  /// The first value, if it is due by `now`.
  public mutating func popDue(at now: Instant) -> Value? {
    guard let first = heap.first, first.at <= now else { return nil }
    heap.swapAt(0, heap.count - 1)
    heap.removeLast()
    sink()
    return first.value
  }

  private mutating func sink() {
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

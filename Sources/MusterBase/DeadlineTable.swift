/// A value that may have pending work with a deadline.
public protocol HasDeadline {
  /// The time at which the value's next work is due; nil without pending work.
  var deadline: Instant? { get }
}

/// A table that caches the deadlines of its values and re-evaluates only those of changed values.
///
/// Every access that may change a value marks the value as stale; `refresh` evaluates the deadlines
/// of stale values. Without calls of `refresh`, `deadline` has the same result but takes longer.
@frozen
public struct DeadlineTable<Key: Comparable, Value: HasDeadline> {
  @usableFromInline var table = PeerTable<Key, Value>()
  /// The last known deadline of each value, in the order of the table.
  @usableFromInline var deadlines: [Instant?] = []
  @usableFromInline var isStale: [Bool] = []
  @usableFromInline var hasStale = false
  @usableFromInline var soonestFresh: Instant?

  /// Creates an empty table.
  @inlinable public init() {}

  /// The keys in ascending order.
  @inlinable public var keys: [Key] { table.keys }
  /// The number of rows.
  @inlinable public var count: Int { table.count }
  /// True if the table has no rows.
  @inlinable public var isEmpty: Bool { table.isEmpty }

  /// The index of `key`; nil if absent. O(log n).
  @inlinable public func index(of key: Key) -> Int? { table.index(of: key) }

  /// The value under a key; assigning nil removes the row.
  @inlinable public subscript(key: Key) -> Value? {
    get { table[key] }
    set {
      let before = table.index(of: key)
      table[key] = newValue
      switch (before, table.index(of: key)) {
      case (let old?, nil):
        deadlines.remove(at: old)
        isStale.remove(at: old)
        hasStale = true
      case (nil, let new?):
        deadlines.insert(nil, at: new)
        isStale.insert(true, at: new)
        hasStale = true
      case (_, let new?): mark(new)
      case (nil, nil): break
      }
    }
  }

  /// The value at an index from `index(of:)` or below `count`, modified in place.
  @inlinable public subscript(at index: Int) -> Value {
    @inline(__always) _read { yield table[at: index] }
    @inline(__always) _modify {
      mark(index)
      yield &table[at: index]
    }
  }

  /// Modifies the value under `key` in place; does not call `body` and returns nil if `key` is
  /// absent.
  @inlinable public mutating func update<Result>(_ key: Key, _ body: (inout Value) -> Result)
    -> Result?
  {
    guard let index = table.index(of: key) else { return nil }
    mark(index)
    return body(&table[at: index])
  }

  /// Modifies the value at an index in place; see `PeerTable.update(at:_:)`.
  @inlinable public mutating func update<Result>(
    at index: Int, _ body: (inout Value) -> Result
  ) -> Result {
    mark(index)
    return table.update(at: index, body)
  }

  /// Reads the value at an index; see `PeerTable.read(at:_:)`.
  @inlinable public func read<Result>(at index: Int, _ body: (Value) -> Result) -> Result {
    table.read(at: index, body)
  }

  @inlinable mutating func mark(_ index: Int) {
    isStale[index] = true
    hasStale = true
  }

  // MARK: Deadlines

  /// The earliest deadline of all values; nil if no value has a deadline.
  @inlinable public var deadline: Instant? {
    guard hasStale else { return soonestFresh }
    var next: Instant?
    for index in 0..<table.count {
      let due = isStale[index] ? table.read(at: index) { $0.deadline } : deadlines[index]
      next = soonest(next, due)
    }
    return next
  }

  /// Evaluates the deadlines of the values that have changed.
  @inlinable public mutating func refresh() {
    guard hasStale else { return }
    var next: Instant?
    for index in 0..<table.count {
      if isStale[index] {
        // Not `read`, which copies a large value.
        deadlines[index] = table.update(at: index) { $0.deadline }
        isStale[index] = false
      }
      next = soonest(next, deadlines[index])
    }
    (soonestFresh, hasStale) = (next, false)
  }

  /// Whether every cached deadline that is not marked stale matches its value's deadline, and the
  /// cached earliest deadline follows from them; for tests.
  public var isConsistent: Bool {
    guard deadlines.count == table.count, isStale.count == table.count else { return false }
    for index in 0..<table.count where !isStale[index] {
      if deadlines[index] != table[at: index].deadline { return false }
    }
    return hasStale || soonestFresh == deadlines.reduce(nil) { soonest($0, $1) }
  }
}

extension DeadlineTable: Sendable where Key: Sendable, Value: Sendable {}

extension DeadlineTable: Sequence {
  /// Iterates over the rows in ascending order of their keys.
  @inlinable public func makeIterator() -> PeerTable<Key, Value>.Iterator {
    table.makeIterator()
  }
}

/// A value with work that is due at a time of its own.
public protocol HasDeadline {
  /// When the value next has work; nil while it has none.
  var deadline: Instant? { get }
}

/// A table that knows when the first of its values has work, without asking all of them again after
/// each change of one.
///
/// Every access that may change a value marks it; `refresh` asks the marked ones. A host that never
/// calls `refresh` gets right answers, only slower.
@frozen
public struct DeadlineTable<Key: Comparable, Value: HasDeadline> {
  @usableFromInline var table = PeerTable<Key, Value>()
  /// The deadline of each value when it was last asked, in the order of the table.
  @usableFromInline var deadlines: [Instant?] = []
  @usableFromInline var isStale: [Bool] = []
  @usableFromInline var hasStale = false
  @usableFromInline var soonestFresh: Instant?

  /// An empty table.
  @inlinable public init() {}

  /// In rising order.
  @inlinable public var keys: [Key] { table.keys }
  /// The number of rows.
  @inlinable public var count: Int { table.count }
  /// Whether there are no rows.
  @inlinable public var isEmpty: Bool { table.isEmpty }

  /// The index of `key`; nil if absent. O(log n).
  @inlinable public func index(of key: Key) -> Int? { table.index(of: key) }

  /// The value under a key; nil removes it.
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

  /// The value at an index from `index(of:)` or below `count`, changeable in place.
  @inlinable public subscript(at index: Int) -> Value {
    @inline(__always) _read { yield table[at: index] }
    @inline(__always) _modify {
      mark(index)
      yield &table[at: index]
    }
  }

  /// Changes the value under `key` in place; nil, and no call, when there is none.
  @inlinable public mutating func update<Result>(_ key: Key, _ body: (inout Value) -> Result)
    -> Result?
  {
    guard let index = table.index(of: key) else { return nil }
    mark(index)
    return body(&table[at: index])
  }

  @inlinable mutating func mark(_ index: Int) {
    isStale[index] = true
    hasStale = true
  }

  // MARK: Time

  /// When the first of the values has work.
  @inlinable public var deadline: Instant? {
    guard hasStale else { return soonestFresh }
    var next: Instant?
    for index in 0..<table.count {
      next = soonest(next, isStale[index] ? table[at: index].deadline : deadlines[index])
    }
    return next
  }

  /// Asks the changed values when they have work.
  @inlinable public mutating func refresh() {
    guard hasStale else { return }
    var next: Instant?
    for index in 0..<table.count {
      if isStale[index] {
        deadlines[index] = table[at: index].deadline
        isStale[index] = false
      }
      next = soonest(next, deadlines[index])
    }
    (soonestFresh, hasStale) = (next, false)
  }

  /// Whether every value that is not marked still has the deadline that it last had.
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
  /// Rows in rising order of their keys.
  @inlinable public func makeIterator() -> PeerTable<Key, Value>.Iterator {
    table.makeIterator()
  }
}

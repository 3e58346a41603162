/// A small map kept as a sorted array, with the same iteration order in every run and with
/// modification of values in place.
///
/// A `Dictionary` hashes with a random seed, so its order differs from run to run, which would make
/// simulations unrepeatable. A look-up is a binary search; tables hold at most a few hundred rows.
///
/// The methods are inlinable, because engines of other modules use them for every datagram: without
/// specialisation, a look-up goes through generic metadata, and an in-place accessor allocates a
/// coroutine frame on the heap.
@frozen
public struct PeerTable<Key: Comparable, Value> {
  @usableFromInline var sortedKeys: [Key] = []
  @usableFromInline var values: [Value] = []

  /// Creates an empty table.
  @inlinable public init() {}

  /// The keys in ascending order.
  @inlinable public var keys: [Key] { sortedKeys }

  /// The number of rows.
  @inlinable public var count: Int { sortedKeys.count }
  /// True if the table has no rows.
  @inlinable public var isEmpty: Bool { sortedKeys.isEmpty }

  /// The index of `key`; nil if absent. O(log n).
  @inlinable public func index(of key: Key) -> Int? {
    let position = insertionIndex(of: key)
    return position < sortedKeys.count && sortedKeys[position] == key ? position : nil
  }

  /// The value under `key`; assigning nil removes the row. Reading is O(log n), inserting and
  /// removing O(n).
  @inlinable public subscript(key: Key) -> Value? {
    get { index(of: key).map { values[$0] } }
    set {
      let position = insertionIndex(of: key)
      let present = position < sortedKeys.count && sortedKeys[position] == key
      switch (present, newValue) {
      case (true, let value?): values[position] = value
      case (true, nil):
        sortedKeys.remove(at: position)
        values.remove(at: position)
      case (false, let value?):
        sortedKeys.insert(key, at: position)
        values.insert(value, at: position)
      case (false, nil): break
      }
    }
  }

  /// The value at an index from `index(of:)` or below `count`, modified in place.
  @inlinable public subscript(at index: Int) -> Value {
    @inline(__always) _read { yield values[index] }
    @inline(__always) _modify { yield &values[index] }
  }

  /// Modifies the value at an index in place. On hot paths this is faster than the subscript, whose
  /// accessors are coroutines with a frame on the heap.
  @inlinable public mutating func update<Result>(
    at index: Int, _ body: (inout Value) -> Result
  ) -> Result {
    body(&values[index])
  }

  /// Reads the value at an index. A large value may be copied; on hot paths it is read by `update`.
  @inlinable public func read<Result>(at index: Int, _ body: (Value) -> Result) -> Result {
    body(values[index])
  }

  /// Modifies the value under `key` in place; does not call `body` and returns nil if `key` is
  /// absent.
  @inlinable public mutating func update<Result>(_ key: Key, _ body: (inout Value) -> Result)
    -> Result?
  {
    guard let index = index(of: key) else { return nil }
    return body(&values[index])
  }

  /// The index of the first key that is not below `key`; `count` if there is no such key.
  @inlinable func insertionIndex(of key: Key) -> Int { firstIndex { !($0 < key) } }

  /// The index of the first key that fulfils a condition; `count` if no key does. All later keys
  /// must fulfil the condition, too.
  @inlinable public func firstIndex(where isReached: (Key) -> Bool) -> Int {
    var low = 0
    var high = sortedKeys.count
    while low < high {
      let middle = (low + high) / 2
      if isReached(sortedKeys[middle]) { high = middle } else { low = middle + 1 }
    }
    return low
  }
}

extension PeerTable: Sendable where Key: Sendable, Value: Sendable {}

extension PeerTable: Sequence {
  /// Iterates over the rows in ascending order of their keys.
  @frozen
  public struct Iterator: IteratorProtocol {
    @usableFromInline let table: PeerTable
    @usableFromInline var position = 0

    @inlinable init(_ table: PeerTable) { self.table = table }

    /// The next row; nil after the last one.
    @inlinable public mutating func next() -> (key: Key, value: Value)? {
      guard position < table.count else { return nil }
      defer { position += 1 }
      return (table.sortedKeys[position], table.values[position])
    }
  }

  /// An iterator over the current rows of the table.
  @inlinable public func makeIterator() -> Iterator { Iterator(self) }
}

/// A small map kept as a sorted array: iteration order is the same in every run, and values change
/// in place.
///
/// A `Dictionary` hashes with a random seed, so its order differs from run to run, which would make
/// simulations unrepeatable. Lookup is a binary search; tables hold at most a few hundred rows.
public struct PeerTable<Key: Comparable, Value> {
  /// The keys in ascending order.
  public private(set) var keys: [Key] = []
  private var values: [Value] = []

  /// An empty table.
  public init() {}

  /// The number of rows.
  public var count: Int { keys.count }
  /// Whether there are no rows.
  public var isEmpty: Bool { keys.isEmpty }

  /// The index of `key`; nil if absent. O(log n).
  public func index(of key: Key) -> Int? {
    let position = insertionPoint(key)
    return position < keys.count && keys[position] == key ? position : nil
  }

  /// The value under `key`; assigning nil removes the row. O(log n) to read, O(n) to insert or
  /// remove.
  public subscript(key: Key) -> Value? {
    get { index(of: key).map { values[$0] } }
    set {
      let position = insertionPoint(key)
      let present = position < keys.count && keys[position] == key
      switch (present, newValue) {
      case (true, let value?): values[position] = value
      case (true, nil):
        keys.remove(at: position)
        values.remove(at: position)
      case (false, let value?):
        keys.insert(key, at: position)
        values.insert(value, at: position)
      case (false, nil): break
      }
    }
  }

  /// The value at an index from `index(of:)` or below `count`, modified in place.
  public subscript(at index: Int) -> Value {
    _read { yield values[index] }
    _modify { yield &values[index] }
  }

  /// Modifies the value under `key` in place; returns nil without calling `body` if there is none.
  public mutating func update<Result>(_ key: Key, _ body: (inout Value) -> Result) -> Result? {
    guard let index = index(of: key) else { return nil }
    return body(&values[index])
  }

  /// A loop of its own: through `firstIndex(where:)` every look-up paid for an unspecialised closure,
  /// which a profile of idle nodes showed.
  private func insertionPoint(_ key: Key) -> Int {
    var low = 0
    var high = keys.count
    while low < high {
      let middle = (low + high) / 2
      if keys[middle] < key { low = middle + 1 } else { high = middle }
    }
    return low
  }

  /// The first index whose key fulfils a condition that every later key fulfils as well; `count`
  /// when none does.
  public func firstIndex(where isReached: (Key) -> Bool) -> Int {
    var low = 0
    var high = keys.count
    while low < high {
      let middle = (low + high) / 2
      if isReached(keys[middle]) { high = middle } else { low = middle + 1 }
    }
    return low
  }
}

extension PeerTable: Sendable where Key: Sendable, Value: Sendable {}

extension PeerTable: Sequence {
  /// Rows in ascending order of their keys.
  public func makeIterator() -> AnyIterator<(key: Key, value: Value)> {
    var index = 0
    return AnyIterator {
      guard index < keys.count else { return nil }
      defer { index += 1 }
      return (keys[index], values[index])
    }
  }
}

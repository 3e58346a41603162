/// A small map kept as a sorted array: the same order on every run, and values change in place.
///
/// A `Dictionary` of engines copies their arrays on every change and iterates in an order that
/// differs from run to run, which a repeatable simulation cannot have.
public struct PeerTable<Key: Comparable, Value> {
  public private(set) var keys: [Key] = []
  private var values: [Value] = []

  public init() {}

  public var count: Int { keys.count }
  public var isEmpty: Bool { keys.isEmpty }

  public func index(of key: Key) -> Int? {
    let position = insertionPoint(key)
    return position < keys.count && keys[position] == key ? position : nil
  }

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

  /// The value at a position from `index(of:)` or below `count`, changeable in place.
  public subscript(at index: Int) -> Value {
    _read { yield values[index] }
    _modify { yield &values[index] }
  }

  /// Changes the value under `key` in place; nil, and no call, when there is none.
  public mutating func update<Result>(_ key: Key, _ body: (inout Value) -> Result) -> Result? {
    guard let index = index(of: key) else { return nil }
    return body(&values[index])
  }

  private func insertionPoint(_ key: Key) -> Int { firstIndex { !($0 < key) } }

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
  public func makeIterator() -> AnyIterator<(key: Key, value: Value)> {
    var index = 0
    return AnyIterator {
      guard index < keys.count else { return nil }
      defer { index += 1 }
      return (keys[index], values[index])
    }
  }
}

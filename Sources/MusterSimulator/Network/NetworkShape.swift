import MusterBase

/// The topology of direct paths between hosts, fixed for the whole run.
public enum NetworkShape: String, CaseIterable, Sendable {
  /// A direct path between every two hosts.
  case full
  case chain, star, ring
  /// A random connected graph: a tree with additional edges.
  case random
}

/// The pairs of hosts with a direct path.
struct PathMap: Sendable {
  let count: Int
  private var cells: [Bool]

  /// Creates a map of the given shape with hosts at random positions.
  init(_ shape: NetworkShape, count: Int, _ prng: inout PRNG) {
    self.count = count
    cells = Array(repeating: shape == .full, count: count * count)
    let order = prng.permutation(count)
    switch shape {
    case .full: break
    case .chain:
      for step in 1..<max(count, 1) { connect(order[step - 1], order[step]) }
    case .star:
      for step in 1..<max(count, 1) { connect(order[0], order[step]) }
    case .ring:
      for step in 0..<count { connect(order[step], order[(step + 1) % count]) }
    case .random:
      for step in 1..<max(count, 1) { connect(order[prng.below(step)], order[step]) }
      for _ in 0..<prng.below(count + 1) { connect(prng.below(count), prng.below(count)) }
    }
  }

  func has(_ a: Int, _ b: Int) -> Bool { cells[a * count + b] && a != b }

  /// The hosts among `indices` that `start` reaches over paths for which `isUsable` returns true,
  /// directly or through other hosts among `indices`; in ascending order, including `start`.
  func reached(
    from start: Int, within indices: [Int], isUsable: (Int, Int) -> Bool
  ) -> [Int] {
    var reached = [start]
    var next = 0
    while next < reached.count {
      let here = reached[next]
      for index in indices where has(here, index) && !reached.contains(index) {
        if isUsable(here, index) { reached.append(index) }
      }
      next += 1
    }
    return reached.sorted()
  }

  private mutating func connect(_ a: Int, _ b: Int) {
    cells[a * count + b] = true
    cells[b * count + a] = true
  }
}

extension PRNG {
  /// A random permutation of the numbers below `count` (Fisher-Yates shuffle).
  mutating func permutation(_ count: Int) -> [Int] {
    var order = Array(0..<count)
    for index in order.indices.reversed() where index > 0 {
      order.swapAt(index, below(index + 1))
    }
    return order
  }

  /// One of `values`, which must not be empty.
  mutating func one<Value>(of values: [Value]) -> Value { values[below(values.count)] }
}

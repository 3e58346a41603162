import MusterBase

/// A connected random graph in which all nodes have about the same number of neighbours.
///
/// The graph is the union of random Hamiltonian cycles, each of which gives every node two
/// neighbours, and of a random matching if the degree is odd. A single cycle already connects the
/// graph. Such graphs have a small diameter (Bollobás and Chung, 1988). Small graphs are complete.
struct RandomGraph: Sendable {
  /// The neighbours of each node, in ascending order.
  let neighbours: [[Int]]

  init(nodes: Int, degree: Int, _ prng: inout PRNG) {
    var neighbours = Array(repeating: [Int](), count: nodes)
    func connect(_ a: Int, _ b: Int) {
      guard a != b, !neighbours[a].contains(b) else { return }
      neighbours[a].append(b)
      neighbours[b].append(a)
    }
    if nodes <= degree + 1 {
      for a in 0..<nodes { for b in 0..<a { connect(a, b) } }
    } else {
      for _ in 0..<max(degree / 2, 1) {
        let order = prng.permutation(nodes)
        for step in 0..<nodes { connect(order[step], order[(step + 1) % nodes]) }
      }
      if degree % 2 == 1, degree > 1 {
        let order = prng.permutation(nodes)
        for pair in 0..<(nodes / 2) { connect(order[2 * pair], order[2 * pair + 1]) }
      }
    }
    self.neighbours = neighbours.map { $0.sorted() }
  }

  var edges: Int { neighbours.reduce(0) { $0 + $1.count } / 2 }
}

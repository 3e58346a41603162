import MusterBase

/// The options of a gossip simulation.
public struct GossipOptions: Equatable, Sendable {
  /// Upper bound on `nodes`, enforced by the `simulate` command.
  public static let nodeLimit = 2000

  /// The number of nodes; fewer than 2 count as 2.
  public var nodes: Int
  /// The number of neighbours of each node.
  public var degree: Int
  /// The seed, which determines the graph, delays, losses and authors: equal options give equal
  /// results.
  public var seed: UInt64
  /// The fraction of datagrams lost, from 0 to 1.
  public var loss: Double
  /// The number of updates, made one after another.
  public var updates: Int

  /// The defaults describe a lossless network with six neighbours per node.
  public init(
    nodes: Int, degree: Int = 6, seed: UInt64 = 1, loss: Double = 0, updates: Int = 10
  ) {
    self.nodes = nodes
    self.degree = degree
    self.seed = seed
    self.loss = loss
    self.updates = updates
  }
}

/// The result of a gossip simulation: the reach, speed and cost of updates.
public struct GossipResult: Equatable, Sendable {
  /// The number of simulated nodes.
  public var nodes: Int
  /// The number of neighbours requested for each node; a few nodes have fewer.
  public var degree: Int
  /// The number of undirected links in the graph.
  public var links: Int
  /// The number of updates measured.
  public var updates = 0
  /// Whether every update reached every node within about 30 s (`GossipSimulation.patience`).
  public var reachedAll = true
  /// The median latency from an update to its arrival, over all nodes and updates.
  public var median: Duration = .zero
  /// The 99th percentile of the latency from an update to its arrival.
  public var p99: Duration = .zero
  /// The longest latency from an update to its arrival; nodes that were not reached do not count.
  public var longest: Duration = .zero
  /// The average number of bytes that one node sends per update, including IP, UDP and link headers
  /// but not idle traffic.
  public var bytesPerUpdate = 0.0
  /// The average number of datagrams that one node sends per update, including idle traffic.
  public var datagramsPerUpdate = 0.0
  /// The average number of bytes per second that one node sends while nothing changes.
  public var idleBytesPerSecond: Double

  private var delays: [Duration] = []

  init(nodes: Int, degree: Int, links: Int, idleBytesPerSecond: Double) {
    self.nodes = nodes
    self.degree = degree
    self.links = links
    self.idleBytesPerSecond = idleBytesPerSecond
  }

  mutating func add(
    delays new: [Duration], isComplete: Bool, bytesPerNode: Double, datagramsPerNode: Double
  ) {
    delays += new
    reachedAll = reachedAll && isComplete
    bytesPerUpdate += bytesPerNode
    datagramsPerUpdate += datagramsPerNode
    updates += 1
  }

  mutating func finish() {
    guard updates > 0 else { return }
    bytesPerUpdate /= Double(updates)
    datagramsPerUpdate /= Double(updates)
    let sorted = delays.sorted()
    delays = []
    guard let last = sorted.last else { return }
    longest = last
    median = sorted[(sorted.count - 1) / 2]
    p99 = sorted[Int(Double(sorted.count - 1) * 0.99)]
  }
}

import MusterBase

/// What a simulation of members who move about on the internet is to be like.
public struct ReachOptions: Equatable, Sendable {
  public static let nodeLimit = 16

  public var seed: UInt64
  /// Nil: 2 to 9, as the seed says.
  public var nodes: Int?
  /// The part of datagrams lost between any two homes while things change; nil: up to 10 %, as the
  /// seed says.
  public var loss: Double?
  /// Whether the timeline's lines are kept, and not only their digest.
  public var keepsTimeline: Bool
  /// A planted bug, for tests of the checker.
  package var flaw: ReachFlaw?

  public init(
    seed: UInt64, nodes: Int? = nil, loss: Double? = nil, keepsTimeline: Bool = false
  ) {
    self.seed = seed
    self.nodes = nodes
    self.loss = loss
    self.keepsTimeline = keepsTimeline
  }
}

/// What the simulated hosts do wrong: the nodes on them are as they should be.
package enum ReachFlaw: String, CaseIterable, Sendable {
  /// Announces never leave a home, so that nobody knocks.
  case candidateProbesAreLost
  /// What rendezvous tell of others does not arrive.
  case recordsAreLost
  /// What a node passes on for others never leaves its host.
  case forwardsAreLost
  /// At home, too, nobody hears anybody's announces to all.
  case broadcastsAreLost
}

/// A change of the network, or of who is there.
public enum ReachChange: String, CaseIterable, Sendable {
  /// A member goes to another home.
  case move
  /// Another router stands before a home.
  case router
  /// A router forgets all mappings, or gets another address as well.
  case rebind, renumber
  /// Nothing passes between two homes any more.
  case cut
  /// A rendezvous dies and comes back, having forgotten all.
  case rendezvous
  /// A member dies and comes back as another process.
  case crash
}

/// What became of it.
public struct ReachResult: Equatable, Sendable {
  public var seed: UInt64
  public var nodes: Int
  public var homes: Int
  /// How often each change came, in the order of all.
  public var changes: [Int]
  /// In the simulation's time.
  public var duration: Duration
  /// From the last change until all were linked who could be, and agreed; nil when that did not
  /// happen.
  public var settledAfter: Duration?
  /// Pairs in the end: with a link of their own, with one through somebody, and with none.
  public var direct: Int
  public var relayed: Int
  public var apart: Int
  public var network: Internet.Counters
  public var linksMade: UInt64
  public var audioPackets: UInt64
  /// What ended the run; nil when all went well.
  public var violation: Violation?
  /// BLAKE2b-256 over every event and every datagram that arrived, with their times.
  public var digest: String
  public var timeline: [String]
}

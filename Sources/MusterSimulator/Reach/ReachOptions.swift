import MusterBase

/// The options of a simulation of members that move about on the internet.
public struct ReachOptions: Equatable, Sendable {
  /// Upper bound on `nodes`; larger values are clamped.
  public static let nodeLimit = 16

  /// Determines the whole run: homes, routers, changes, losses and delays.
  public var seed: UInt64
  /// Nil: 2 to 9, drawn from the seed.
  public var nodes: Int?
  /// The fraction of datagrams lost between any two homes while things change; nil: up to 0.1,
  /// drawn from the seed.
  public var loss: Double?
  /// Whether the timeline's lines are kept, and not only their digest.
  public var keepsTimeline: Bool
  /// Whether the state of every node is checked after each step; by default in every fourth seed,
  /// because a run with these checks takes 2.2 times as long (measured with seeds 1 to 4).
  public var checksInvariants: Bool
  /// A planted bug, for tests of the checker.
  package var flaw: ReachFlaw?

  /// Derives `checksInvariants` from the seed.
  public init(
    seed: UInt64, nodes: Int? = nil, loss: Double? = nil, keepsTimeline: Bool = false
  ) {
    self.seed = seed
    self.nodes = nodes
    self.loss = loss
    self.keepsTimeline = keepsTimeline
    checksInvariants = seed % 4 == 0
  }
}

/// A bug planted into simulated hosts; the nodes on them are unchanged.
package enum ReachFlaw: String, CaseIterable, Sendable {
  /// Announcements never leave a home, so that no candidate is probed.
  case candidateProbesAreLost
  /// Records of rendezvous are lost.
  case recordsAreLost
  /// What a node passes on for others never leaves its host.
  case forwardsAreLost
  /// Broadcasts are lost within a home, too.
  case broadcastsAreLost
}

/// A change of the network or of its processes.
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

/// The outcome of a run.
public struct ReachResult: Equatable, Sendable {
  /// The seed of the options.
  public var seed: UInt64
  /// Number of members simulated.
  public var nodes: Int
  /// Number of homes, those of rendezvous servers included.
  public var homes: Int
  /// How often each change came, in the order of all.
  public var changes: [Int]
  /// In the simulation's time.
  public var duration: Duration
  /// From the last change until all were linked who could be, and agreed; nil when that did not
  /// happen.
  public var settledAfter: Duration?
  /// Pairs of members at the end of the run with a direct link.
  public var direct: Int
  /// Pairs whose link goes through another member.
  public var relayed: Int
  /// Pairs without a link.
  public var apart: Int
  /// Datagrams by their fate, over the whole run.
  public var network: Internet.Counters
  /// Links that came up, counted at each end and at every reconnection.
  public var linksMade: UInt64
  /// Audio packets received, summed over all members.
  public var audioPackets: UInt64
  /// What ended the run; nil when all went well.
  public var violation: Violation?
  /// BLAKE2b-256 over every event and every datagram that arrived, with their times.
  public var digest: String
  /// One line per event, with its time in seconds; empty unless kept.
  public var timeline: [String]
}

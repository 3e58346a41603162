import MusterBase

/// The options of a reachability simulation, in which members move between home networks.
public struct ReachOptions: Equatable, Sendable {
  /// Upper bound on `nodes`; larger values are clamped.
  public static let nodeLimit = 16

  /// The seed, which determines the whole run: homes, routers, changes, losses and delays.
  public var seed: UInt64
  /// The number of members; nil: 2 to 9, drawn from the seed.
  public var nodes: Int?
  /// The fraction of datagrams lost between any two homes before the last change; nil: up to 0.1,
  /// drawn from the seed.
  public var loss: Double?
  /// Whether the timeline's lines are kept in addition to their digest.
  public var keepsTimeline: Bool
  /// A planted bug, for tests of the checker.
  package var flaw: ReachFlaw?

  /// Creates the options of a run; what is left out is derived from the seed.
  public init(
    seed: UInt64, nodes: Int? = nil, loss: Double? = nil, keepsTimeline: Bool = false
  ) {
    self.seed = seed
    self.nodes = nodes
    self.loss = loss
    self.keepsTimeline = keepsTimeline
  }
}

/// A bug planted into simulated hosts; the nodes on them are unchanged.
package enum ReachFlaw: String, CaseIterable, Sendable {
  /// Unicast announcements are lost, so no candidate is probed.
  case candidateProbesAreLost
  /// The records that dedicated rendezvous servers send are lost.
  case recordsAreLost
  /// Datagrams that a node relays never leave its host.
  case forwardsAreLost
  /// Broadcasts are lost, even within a home.
  case broadcastsAreLost
}

/// A change of the network or of its processes.
public enum ReachChange: String, CaseIterable, Sendable {
  /// A member moves to another home.
  case move
  /// A home's router is replaced by one of another NAT type.
  case router
  /// A router forgets all mappings; `renumber` also changes its external address.
  case rebind, renumber
  /// Two homes are cut off from each other.
  case cut
  /// A rendezvous server crashes and restarts without its registrations.
  case rendezvous
  /// A member crashes and restarts as a new process.
  case crash
}

/// The outcome of a reachability simulation.
public struct ReachResult: Equatable, Sendable {
  /// The seed that the run was started with.
  public var seed: UInt64
  /// The number of simulated members.
  public var nodes: Int
  /// The number of homes, including those of dedicated rendezvous servers.
  public var homes: Int
  /// The number of changes of each kind, in the order of `ReachChange.allCases`.
  public var changes: [Int]
  /// The length of the run in simulated time.
  public var duration: Duration
  /// The time from the last change until all pairs that can reach each other were linked and all
  /// nodes agreed; nil if that was not so at the end of the run.
  public var settledAfter: Duration?
  /// The number of pairs of running members with a direct link at the end of the run.
  public var direct: Int
  /// The number of pairs of running members whose link is relayed by another member.
  public var relayed: Int
  /// The number of pairs of running members without a link.
  public var apart: Int
  /// Datagram counts for the whole run.
  public var network: Internet.Counters
  /// The number of links established, counted at both ends and again at each reconnection.
  public var linksMade: UInt64
  /// The number of audio packets received, summed over all members.
  public var audioPackets: UInt64
  /// The violation that ended the run; nil for a run without violations.
  public var violation: Violation?
  /// The BLAKE2b-256 digest of all events and delivered datagrams, with their times.
  public var digest: String
  /// One line per event, with its time in seconds; empty unless the options keep the timeline.
  public var timeline: [String]
}

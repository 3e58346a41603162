import MusterBase
import MusterChannel

/// The options of a simulation. Runs with equal options have identical timelines and digests.
public struct SimulationOptions: Equatable, Sendable {
  /// Upper bound on `nodes`; larger values are clamped.
  public static let nodeLimit = 32

  /// The seed, which determines everything that the other options leave open.
  public var seed: UInt64
  /// The number of nodes; nil: 3 to 17, drawn from the seed.
  public var nodes: Int?
  /// The length of the run in seconds: faults occur in the first half, and nodes must converge in
  /// the second. A run ends early after lasting agreement of all nodes. Nil: drawn from the seed.
  public var seconds: Int?
  /// The kinds of faults injected in the first half.
  public var faults: FaultChoice
  /// The fraction of datagrams lost on every path during the fault phase; nil: drawn for each path
  /// according to `faults`.
  public var loss: Double?
  /// The pairs of hosts that have a path; nil: drawn from the seed.
  public var shape: NetworkShape?
  /// Whether the channel has an owner and roles; nil: drawn from the seed.
  public var channel: ChannelKind?
  /// Whether nodes send synthetic video and audio; nil: drawn from the seed.
  public var media: Bool?
  /// Whether the timeline's lines are kept in addition to their digest.
  public var keepsTimeline: Bool
  /// Whether the state of every node is checked after each step. Tests of other checkers turn this
  /// off, because these checks find most faults first.
  package var checksInvariants = true
  /// Whether the result contains a drawing of the run.
  public var draws = false
  /// A planted bug, for tests of the checkers.
  package var bug: PlantedBug?

  /// Creates the options of a run; what is left out is derived from the seed.
  public init(
    seed: UInt64, nodes: Int? = nil, seconds: Int? = nil, faults: FaultChoice = .swarm,
    loss: Double? = nil, shape: NetworkShape? = nil, channel: ChannelKind? = nil,
    media: Bool? = nil, keepsTimeline: Bool = false
  ) {
    self.seed = seed
    self.nodes = nodes
    self.seconds = seconds
    self.faults = faults
    self.loss = loss
    self.shape = shape
    self.channel = channel
    self.media = media
    self.keepsTimeline = keepsTimeline
  }
}

/// A property that a checker found broken.
public struct Violation: Equatable, Sendable, CustomStringConvertible {
  /// The name of the checker.
  public var checker: String
  /// A description of the fault in one line, with the names of the nodes.
  public var what: String
  /// The simulated time of the fault, since the start of the run.
  public var at: Instant

  /// `at` is the simulated time at which `checker` found the fault.
  public init(checker: String, what: String, at: Instant) {
    self.checker = checker
    self.what = what
    self.at = at
  }

  /// The violation in one line, with its time in milliseconds.
  public var description: String { "\(checker) at \(at.nanoseconds / 1_000_000) ms: \(what)" }
}

/// The outcome of a simulation.
public struct SimulationResult: Equatable, Sendable {
  /// The seed that the run was started with.
  public var seed: UInt64
  /// The number of simulated nodes.
  public var nodes: Int
  /// The kinds of faults that this run injected.
  public var faults: [Fault]
  /// The pairs of hosts that had a path.
  public var shape: NetworkShape
  /// Whether the channel had an owner and roles.
  public var channel: ChannelKind
  /// Whether nodes sent synthetic video and audio.
  public var hasMedia: Bool
  /// The length of the run in simulated time.
  public var duration: Duration
  /// The time from the end of the faults until the nodes were linked and in lasting agreement; nil
  /// if they did not agree at the end of the run.
  public var settledAfter: Duration?
  /// The time from the end of the faults until every participant showed frames of all other
  /// participants; nil without media or if that never happened.
  public var framesAfter: Duration?
  /// The counts and delays of text messages.
  public var messages: MessageTotals
  /// The counts of calls, from their entries on disks.
  public var calls: CallTotals
  /// The number of key changes by the owner.
  public var epochs: UInt64
  /// The number of roles that owners granted directly, not by invite.
  public var grants: UInt64
  /// The number of times that a member muted another in a call, or removed it from the call.
  public var moderations: UInt64
  /// The number of refusals that nodes received and reported.
  public var refusals: UInt64
  /// The number of commits that failed because their entries could not be written.
  public var failedCommits: UInt64
  /// Datagram counts for the whole run.
  public var network: Network.Counters
  /// The UDP payload bytes that arrived, summed over all hosts.
  public var bytes: UInt64
  /// The number of video frames shown, summed over all receivers and streams.
  public var frames: UInt64
  /// The number of audio packets played, summed over all receivers.
  public var audioPackets: UInt64
  /// The number of links established, counted at both ends and again at each reconnection.
  public var linksMade: UInt64
  /// The violation that ended the run; nil for a run without violations.
  public var violation: Violation?
  /// The BLAKE2b-256 digest of all events and delivered datagrams, with their times.
  public var digest: String
  /// One line per event, with its time in seconds; empty unless the options keep the timeline.
  public var timeline: [String]
  /// The drawing of the run as an SVG document; nil unless requested.
  public var drawing: String?
}

/// The text messages of a whole run.
public struct MessageTotals: Equatable, Sendable {
  /// The number of messages sent.
  public var sent: UInt64 = 0
  /// The number of times that a node other than the author showed a message.
  public var shown: UInt64 = 0
  /// The median time between a message's sending and its display at another node.
  public var medianDelay: Duration = .zero
  /// The 99th percentile of the time between sending and display.
  public var p99Delay: Duration = .zero
}

/// The calls of a whole run, each counted once for all nodes.
public struct CallTotals: Equatable, Sendable {
  /// The number of calls for which a claim of term 1 exists.
  public var started: UInt64 = 0
  /// The number of calls ended by their initiators.
  public var ended: UInt64 = 0
  /// The number of hand-overs to another initiator, counted by distinct claims of later terms.
  public var handedOver: UInt64 = 0

  /// All counts are zero unless given.
  public init(started: UInt64 = 0, ended: UInt64 = 0, handedOver: UInt64 = 0) {
    self.started = started
    self.ended = ended
    self.handedOver = handedOver
  }
}

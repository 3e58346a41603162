import MusterBase
import MusterChannel

/// The options of a simulation. Two runs with equal options are equal to the byte.
public struct SimulationOptions: Equatable, Sendable {
  /// Upper bound on `nodes`; larger values are clamped.
  public static let nodeLimit = 32

  /// Determines everything that the other options leave open.
  public var seed: UInt64
  /// Nil: 3 to 17, as the seed says.
  public var nodes: Int?
  /// The first half has the faults; in the second all must come together again. A run ends early
  /// once everyone has agreed for a while. Nil: as the seed says.
  public var seconds: Int?
  /// The kinds of faults injected in the first half.
  public var faults: FaultChoice
  /// The fraction of datagrams lost on every path while there are faults; nil: by the faults.
  public var loss: Double?
  /// The pairs of hosts that have a path; nil: drawn from the seed.
  public var shape: NetworkShape?
  /// Whether the channel has an owner and roles; nil: drawn from the seed.
  public var channel: ChannelKind?
  /// Whether nodes send synthetic video and audio; nil: drawn from the seed.
  public var media: Bool?
  /// Whether the timeline's lines are kept, and not only their digest.
  public var keepsTimeline: Bool
  /// Whether the state of every node is checked after each step; by default in every fourth seed,
  /// because a run with these checks takes 1.7 times as long (measured with seeds 1 to 16).
  public var checksInvariants: Bool
  /// Whether the run is drawn.
  public var draws = false
  /// A planted bug, for tests of the checkers.
  package var bug: PlantedBug?

  /// Derives `checksInvariants` from the seed.
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
    checksInvariants = seed % 4 == 0
  }
}

/// A property that a checker found broken.
public struct Violation: Equatable, Sendable, CustomStringConvertible {
  /// The name of the checker.
  public var checker: String
  /// One line that names the nodes and the fault.
  public var what: String
  /// Simulated time since the start of the run.
  public var at: Instant

  /// `at` is the simulated time at which `checker` found the fault.
  public init(checker: String, what: String, at: Instant) {
    self.checker = checker
    self.what = what
    self.at = at
  }

  /// The violation on one line, its time in milliseconds.
  public var description: String { "\(checker) at \(at.nanoseconds / 1_000_000) ms: \(what)" }
}

/// The outcome of a simulation.
public struct SimulationResult: Equatable, Sendable {
  /// The seed of the options.
  public var seed: UInt64
  /// Number of nodes simulated.
  public var nodes: Int
  /// The kinds of faults that this run injected.
  public var faults: [Fault]
  /// The pairs of hosts that had a path.
  public var shape: NetworkShape
  /// Whether the channel had an owner and roles.
  public var channel: ChannelKind
  /// Whether nodes sent synthetic video and audio.
  public var hasMedia: Bool
  /// In the simulation's time.
  public var duration: Duration
  /// From the end of the faults until all were linked and agreed; nil when that did not happen.
  public var settledAfter: Duration?
  /// From the end of the faults until every participant showed frames of all others; nil when that
  /// did not happen, or without media.
  public var framesAfter: Duration?
  /// Text messages and their delays.
  public var messages: MessageTotals
  /// Calls, counted by the entries on disks.
  public var calls: CallTotals
  /// Key changes by owners.
  public var epochs: UInt64
  /// Roles that owners granted to members directly, not by invite.
  public var grants: UInt64
  /// Refusals that nodes reported.
  public var refusals: UInt64
  /// Changes of nodes that could not be written, and so did not happen.
  public var failedCommits: UInt64
  /// Datagrams by their fate, over the whole run.
  public var network: Network.Counters
  /// UDP payload bytes that arrived, summed over all hosts.
  public var bytes: UInt64
  /// Video frames shown, summed over all receivers.
  public var frames: UInt64
  /// Audio packets played, summed over all receivers.
  public var audioPackets: UInt64
  /// Links that came up, counted at each end and at every reconnection.
  public var linksMade: UInt64
  /// What ended the run; nil when all went well.
  public var violation: Violation?
  /// BLAKE2b-256 over every event and every datagram that arrived, with their times.
  public var digest: String
  /// One line per event, with its time in seconds; empty unless kept.
  public var timeline: [String]
  /// The run as an SVG document; nil unless asked for.
  public var drawing: String?
}

/// Text of a whole run.
public struct MessageTotals: Equatable, Sendable {
  /// Messages sent, each counted once.
  public var sent: UInt64 = 0
  /// Times that a node other than the author showed a message.
  public var shown: UInt64 = 0
  /// Median of the time from sending until another node showed the message.
  public var medianDelay: Duration = .zero
  /// 99th percentile of the same time.
  public var p99Delay: Duration = .zero
}

/// Calls of a whole run, each counted once however many nodes saw it.
public struct CallTotals: Equatable, Sendable {
  /// Calls with a claim of term 1.
  public var started: UInt64 = 0
  /// Ended by their initiators.
  public var ended: UInt64 = 0
  /// Distinct claims of later terms: calls that passed to another initiator.
  public var handedOver: UInt64 = 0

  /// All counts are zero unless given.
  public init(started: UInt64 = 0, ended: UInt64 = 0, handedOver: UInt64 = 0) {
    self.started = started
    self.ended = ended
    self.handedOver = handedOver
  }
}

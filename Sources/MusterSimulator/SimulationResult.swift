import MusterBase
import MusterChannel

/// The options of a simulation. Two runs with equal options are equal to the byte.
public struct SimulationOptions: Equatable, Sendable {
  public static let nodeLimit = 32

  public var seed: UInt64
  /// Nil: 3 to 17, as the seed says.
  public var nodes: Int?
  /// The first half has the faults; in the second all must come together again. A run ends early
  /// once everyone has agreed for a while. Nil: as the seed says.
  public var seconds: Int?
  public var faults: FaultChoice
  /// The fraction of datagrams lost on every path while there are faults; nil: by the faults.
  public var loss: Double?
  /// Nil for any of these: as the seed says.
  public var shape: NetworkShape?
  public var channel: ChannelKind?
  public var media: Bool?
  /// Whether the timeline's lines are kept, and not only their digest.
  public var keepsTimeline: Bool
  /// Whether the state of every node is checked after each step; by default in every fourth seed,
  /// which costs less than a quarter of the time of all.
  public var checksInvariants: Bool
  /// Whether the run is drawn.
  public var draws = false
  /// A planted bug, for tests of the checkers.
  package var bug: PlantedBug?

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
  public var what: String
  public var at: Instant

  public init(checker: String, what: String, at: Instant) {
    self.checker = checker
    self.what = what
    self.at = at
  }

  public var description: String { "\(checker) at \(at.nanoseconds / 1_000_000) ms: \(what)" }
}

/// The outcome of a simulation.
public struct SimulationResult: Equatable, Sendable {
  public var seed: UInt64
  public var nodes: Int
  public var faults: [Fault]
  public var shape: NetworkShape
  public var channel: ChannelKind
  public var hasMedia: Bool
  /// In the simulation's time.
  public var duration: Duration
  /// From the end of the faults until all were linked and agreed; nil when that did not happen.
  public var settledAfter: Duration?
  /// The same for everyone's seeing everyone in the call; nil, too, without media.
  public var framesAfter: Duration?
  public var messages: MessageTotals
  public var calls: CallTotals
  /// Key changes and roles granted by owners.
  public var epochs: UInt64
  public var grants: UInt64
  /// Refusals that nodes reported.
  public var refusals: UInt64
  /// Changes of nodes that could not be written, and so did not happen.
  public var failedCommits: UInt64
  public var network: Network.Counters
  public var bytes: UInt64
  public var frames: UInt64
  public var audioPackets: UInt64
  public var linksMade: UInt64
  /// What ended the run; nil when all went well.
  public var violation: Violation?
  /// BLAKE2b-256 over every event and every datagram that arrived, with their times.
  public var digest: String
  public var timeline: [String]
  /// The run as an SVG document; nil unless asked for.
  public var drawing: String?
}

/// Text of a whole run.
public struct MessageTotals: Equatable, Sendable {
  public var sent: UInt64 = 0
  /// By others than the author.
  public var shown: UInt64 = 0
  /// Median and 99th percentile of the time from sending to being shown by another node.
  public var medianDelay: Duration = .zero
  public var p99Delay: Duration = .zero
}

/// Calls of a whole run, each counted once however many nodes saw it.
public struct CallTotals: Equatable, Sendable {
  public var started: UInt64 = 0
  /// Ended by their initiators.
  public var ended: UInt64 = 0
  public var handedOver: UInt64 = 0

  public init(started: UInt64 = 0, ended: UInt64 = 0, handedOver: UInt64 = 0) {
    self.started = started
    self.ended = ended
    self.handedOver = handedOver
  }
}

import MusterBase

/// What a simulation is to be like. Two runs with equal options are equal to the byte.
public struct SimulationOptions: Equatable, Sendable {
  public static let nodeLimit = 16

  public var seed: UInt64
  /// Nil: 2 to 8, as the seed says.
  public var nodes: Int?
  /// The first half has the faults; in the second all must come together again. A run ends early
  /// once everyone has agreed for a while.
  public var seconds: Int
  public var faults: FaultChoice
  /// Whether the timeline's lines are kept, and not only their digest.
  public var keepsTimeline: Bool

  public init(
    seed: UInt64, nodes: Int? = nil, seconds: Int = 26, faults: FaultChoice = .swarm,
    keepsTimeline: Bool = false
  ) {
    self.seed = seed
    self.nodes = nodes
    self.seconds = seconds
    self.faults = faults
    self.keepsTimeline = keepsTimeline
  }
}

/// Something that may never happen, and did.
public struct Violation: Equatable, Sendable, CustomStringConvertible {
  /// What was checked.
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

/// What became of a simulation.
public struct SimulationResult: Equatable, Sendable {
  public var seed: UInt64
  public var nodes: Int
  public var faults: [Fault]
  /// In the simulation's time.
  public var duration: Duration
  /// From the end of the faults until all were linked and agreed; nil when that did not happen.
  public var settledAfter: Duration?
  /// The same for everyone's seeing everyone in the call.
  public var picturesAfter: Duration?
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
}

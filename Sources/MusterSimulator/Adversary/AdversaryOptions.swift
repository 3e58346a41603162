import MusterBase
import MusterWire

/// The options of a simulation in which an adversary holds an invite to the channel.
public struct AdversaryOptions: Equatable, Sendable {
  /// The seed, which determines the whole run.
  public var seed: UInt64
  /// Whether the channel has an owner; nil: drawn from the seed.
  public var channel: ChannelKind?
  /// What the adversary floods the channel with; nil: drawn from the seed.
  public var tactics: [AdversaryTactic]?
  /// The number of keys that the adversary's invite permits, 0 for any number; nil: drawn from the
  /// seed.
  public var uses: UInt32?
  /// The Lamport counters of the adversary's entries; nil: drawn from the seed.
  public var counters: AdversaryCounters?
  /// The number of entries, replays and questions of the adversary per second; nil: drawn from the
  /// seed.
  public var entriesPerSecond: Int?
  /// Whether the owner of a created channel removes the adversary with its invite; nil: drawn from
  /// the seed.
  public var removes: Bool?
  /// Whether the timeline's lines are kept in addition to their digest.
  public var keepsTimeline: Bool
  /// A weakness planted into the members' nodes.
  package var weakness: PlantedWeakness?

  /// Creates the options of a run; what is left out is derived from the seed.
  public init(
    seed: UInt64, channel: ChannelKind? = nil, tactics: [AdversaryTactic]? = nil,
    uses: UInt32? = nil, counters: AdversaryCounters? = nil, entriesPerSecond: Int? = nil,
    removes: Bool? = nil,
    keepsTimeline: Bool = false
  ) {
    self.seed = seed
    self.channel = channel
    self.tactics = tactics
    self.uses = uses
    self.counters = counters
    self.entriesPerSecond = entriesPerSecond
    self.removes = removes
    self.keepsTimeline = keepsTimeline
  }
}

/// What the adversary floods a channel with.
public enum AdversaryTactic: String, CaseIterable, Sendable {
  /// Claims to calls of its own, and to the members' call.
  case claims
  /// Ends of the members' call.
  case ends
  /// Joinings of the members' call, and of others.
  case joinings
  /// Text messages.
  case messages
  /// Presences and neighbour reports of its keys, which report the members as suspected.
  case presences
  /// Grants to its own keys, and of no role to the members.
  case grants
  /// Ever new keys: those that it used are forgotten.
  case keys
  /// Two entries under one sequence number.
  case equivocations
  /// Entries of a kind that nodes do not know.
  case unknown
  /// Presences in a call without an end whose initiator has vanished, and joinings of it.
  case staleCalls
  /// Datagrams that it has seen on the network, once more: from its own address, or from that of
  /// their sender.
  case replays
  /// Questions for entries over its links: for those of an empty document, and for some that it has
  /// had before.
  case questions
  /// Entries of members, and of itself, under signatures that are wrong.
  case forgeries
  /// Redemptions by keys that it has searched for, of an invite that others hold as well, while the
  /// owner is away.
  case groundKeys
}

/// The Lamport counters of the adversary's entries.
public enum AdversaryCounters: String, CaseIterable, Sendable {
  /// One more than the highest counter seen, as the protocol demands.
  case honest
  /// As low as possible, so that its entries seem to be the first.
  case lowest
  /// Ahead of the channel by as much as one entry may raise the clock.
  case ahead
  /// The highest counters that are accepted.
  case highest
}

/// The outcome of a simulation with an adversary.
public struct AdversaryResult: Equatable, Sendable {
  /// The seed that the run was started with.
  public var seed: UInt64
  /// The number of simulated members in good standing.
  public var nodes: Int
  /// Whether the channel has an owner.
  public var channel: ChannelKind
  /// What the adversary flooded the channel with.
  public var tactics: [AdversaryTactic]
  /// The counters of the adversary's entries.
  public var counters: AdversaryCounters
  /// The number of keys that the adversary used.
  public var keys: Int
  /// The number of entries that the adversary signed.
  public var entries: Int
  /// The bytes that the adversary sent, and those that members sent it.
  public var bytesSent: Int
  public var bytesReceived: Int
  /// How often the members have derived rights, roster or call anew since they last started.
  public var steps: Int
  /// The number of messages that the members wrote.
  public var messages: Int
  /// The length of the run in simulated time.
  public var duration: Duration
  /// The violation that ended the run; nil for a run without violations.
  public var violation: Violation?
  /// The BLAKE2b-256 digest of all events and delivered datagrams, with their times.
  public var digest: String
  /// One line per event, with its time in seconds; empty unless the options keep the timeline.
  public var timeline: [String]
}

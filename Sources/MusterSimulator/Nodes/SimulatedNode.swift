import MusterBase
import MusterChannel
import MusterCore
import MusterCrypto
import MusterWire

/// A host with a node on it: what lasts over restarts, and the process of the moment.
struct SimulatedNode {
  /// An invite in somebody's hand.
  struct HeldInvite: Sendable {
    var ticket: Ticket
    var grant: Grant
    var order: RoleChecker.Order
    var key: EpochKey
  }

  let index: Int
  var address: Address
  let name: String
  /// Every host has booted at another time: nodes may not compare their clocks.
  let clockOffset: Duration

  var identity: Identity
  var disk: Disk
  /// Counts the times that the disk was lost.
  var memory = 0
  /// The key that it came with.
  var firstKey: EpochKey
  /// The invite that it came with, and whether it is the one that its rights are to come from.
  var invite: HeldInvite?
  var usesInvite = false
  /// Counts processes from 1.
  var run = 0
  /// Nil while no process runs.
  var process: Process?
  var source: SyntheticSource
  /// Whether the node wants to be in the channel; false from its leave to its return.
  var isInChannel = false
  var wantsCall: Bool
  /// Whether this node's video and audio are muted.
  var isVideoMuted = false
  var isAudioMuted = false
  /// The state that the events of the process add up to.
  var events = EventChecker()
  /// The refusals that it got since it last entered the channel.
  var refusals: [Refusal] = []
  /// When the process next wants to be called, in the simulation's time.
  private(set) var wakeAt: Instant?
  /// Whether this node does what its role forbids.
  var isLawless = false
  /// Messages of this process that are on their way to the disk.
  var drafts = PeerTable<EntryID, MessageChecker.Word>()
  /// Whether it had an input since the checkers last looked.
  private var hasActed = false
  /// Calls of `tick` at one point in time.
  private(set) var ticksInPlace = 0
  private var tickedAt: Instant?

  init(
    index: Int, address: Address, name: String, clockOffset: Duration, identity: Identity,
    firstKey: EpochKey, wantsCall: Bool, diskSeed: UInt64
  ) {
    disk = Disk(seed: diskSeed)
    self.index = index
    self.address = address
    self.name = name
    self.clockOffset = clockOffset
    self.identity = identity
    self.firstKey = firstKey
    self.wantsCall = wantsCall
    source = SyntheticSource(sender: UInt8(index), run: 0, layers: 1)
  }

  var label: String { "n\(index)" }

  /// Whether a process runs and is in the channel.
  var isPresent: Bool { process != nil && isInChannel }

  /// Whether it has an invite that it has not shown yet.
  var showsInvite: Bool { usesInvite && !disk.holdsRedemption && invite != nil }

  /// This host as a reader of messages.
  var reader: MessageChecker.Reader { MessageChecker.Reader(index: index, memory: memory) }

  /// The simulation's time as this host's boot clock shows it.
  func local(_ now: Instant) -> Instant { now + clockOffset }

  /// What it enters a channel with.
  func setup(of channel: ChannelPlan) -> ChannelSetup {
    let later = disk.keys.filter { $0.number > firstKey.number }
    var setup = ChannelSetup(
      name: channel.name, keys: [firstKey] + later, genesis: channel.genesis,
      entries: disk.signedEntries,
      ticket: showsInvite ? invite?.ticket : nil)
    setup.unshown = disk.unshown
    return setup
  }

  /// Hands the process an input; nothing happens when there is none.
  mutating func call(
    at now: Instant, _ body: (inout Node, Instant) -> [Node.Output]
  ) -> [Node.Output] {
    guard let process else { return [] }
    let outputs = body(&process.node, local(now))
    let deadline = process.node.deadline
    wakeAt = deadline.map { max(now, $0.advanced(by: .zero - clockOffset)) }
    hasActed = true
    return outputs
  }

  /// Hands the process the outcome of a commit.
  mutating func finish(
    _ commit: CommitID, isDurable: Bool, at now: Instant
  ) -> [Node.Output] {
    call(at: now) { $0.finish(commit, isDurable: isDurable, at: $1) }
  }

  /// Whether the process had an input since this was last asked.
  mutating func takeHasActed() -> Bool {
    defer { hasActed = false }
    return hasActed && process != nil
  }

  /// Calls `tick` and counts how often it was called without time going on.
  mutating func tick(at now: Instant) -> [Node.Output] {
    ticksInPlace = tickedAt == now ? ticksInPlace + 1 : 0
    tickedAt = now
    return call(at: now) { $0.tick(at: $1) }
  }

  /// Ends the process; what its disk made of its last writes is returned.
  mutating func stop() -> Disk.Crash {
    process = nil
    wakeAt = nil
    isInChannel = false
    return disk.crash()
  }
}

/// A process of a host. A reference, because a `Node` cannot be copied.
final class Process {
  var node: Node
  private var sound = SoundChannels()

  init(_ node: consuming Node) { self.node = node }

  /// What contradicts itself in the node's state since this was last asked.
  func checkInvariants() -> [String] { node.checkInvariants(&sound) }
}

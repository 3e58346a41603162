import MusterBase
import MusterChannel
import MusterCore
import MusterCrypto
import MusterWire

/// A simulated host with a node: the state that survives restarts, and the current process.
struct SimulatedNode {
  /// An invite given to a host: the credential and channel key with which it joins, and the grant
  /// and its order, from which `RoleChecker` derives the expected role.
  struct HeldInvite: Sendable {
    var credential: InviteCredential
    var grant: Grant
    var order: RoleChecker.Order
    var key: EpochKey
  }

  let index: Int
  var address: Address
  let name: String
  /// The offset of the host's boot clock; it differs between hosts, so that nodes cannot rely on
  /// comparing their clocks.
  let clockOffset: Duration

  var identity: Identity
  var disk: Disk
  /// The number of disks that the host has lost so far.
  var memory = 0
  /// The key that the node first joined with, or the later key of an invite.
  var firstKey: EpochKey
  /// The node's latest invite, and whether the node uses it to obtain its role.
  var invite: HeldInvite?
  var usesInvite = false
  /// The number of the current or last process, from 1; 0 before the first.
  var run = 0
  /// The current process; nil while no process runs.
  var process: Process?
  var source: SyntheticSource
  /// Whether the node wants to be in the channel; false from leaving until rejoining.
  var isInChannel = false
  var wantsCall: Bool
  /// Whether the node enters every call that members start.
  var answersCalls = false
  /// Whether this node's video and audio are muted.
  var isVideoMuted = false
  var isAudioMuted = false
  /// The checker of the process's events.
  var events = EventChecker()
  /// The refusals that the node received since it last entered the channel.
  var refusals: [Refusal] = []
  /// The process's next deadline, in simulated time.
  private(set) var wakeAt: Instant?
  /// Whether this node is patched to ignore its own role.
  var isLawless = false
  /// The messages of this process that are not on the disk yet.
  var drafts = PeerTable<EntryID, MessageChecker.Draft>()
  /// Whether the process had an input since the last check.
  private var hasActed = false
  /// The number of consecutive `tick` calls without an advance of time.
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

  /// Whether the node has an invite that it has not redeemed yet.
  var showsInvite: Bool { usesInvite && !disk.holdsRedemption && invite != nil }

  /// This host as a reader of messages.
  var reader: MessageChecker.Reader { MessageChecker.Reader(index: index, memory: memory) }

  /// The simulation's time as this host's boot clock shows it.
  func local(_ now: Instant) -> Instant { now + clockOffset }

  /// The state with which the node enters the channel: its keys, the entries on its disk, and its
  /// invite unless already redeemed.
  func setup(of channel: ChannelPlan) -> ChannelSetup {
    let later = disk.keys.filter { $0.number > firstKey.number }
    var setup = ChannelSetup(
      name: channel.name, keys: [firstKey] + later, genesis: channel.genesis,
      entries: disk.signedEntries,
      credential: showsInvite ? invite?.credential : nil)
    setup.undelivered = disk.undelivered
    return setup
  }

  /// Passes an input to the node's process; does nothing if no process is running.
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

  /// Gives a command to the node's process, which may refuse it.
  mutating func command(
    at now: Instant, _ body: (inout Node, Instant) throws(CommandRefusal) -> [Node.Output]
  ) -> Result<[Node.Output], CommandRefusal> {
    var refusal: CommandRefusal?
    let outputs = call(at: now) { node, clock in
      do throws(CommandRefusal) {
        return try body(&node, clock)
      } catch {
        refusal = error
        return []
      }
    }
    return refusal.map { .failure($0) } ?? .success(outputs)
  }

  /// Passes the outcome of a commit to the node's process.
  mutating func finish(
    _ commit: CommitID, isDurable: Bool, at now: Instant
  ) -> [Node.Output] {
    call(at: now) { $0.finish(commit, isDurable: isDurable, at: $1) }
  }

  /// Whether the process had an input since the last call of this method.
  mutating func takeHasActed() -> Bool {
    defer { hasActed = false }
    return hasActed && process != nil
  }

  /// Calls the node's `tick`, and counts consecutive calls without an advance of time.
  mutating func tick(at now: Instant) -> [Node.Output] {
    ticksInPlace = tickedAt == now ? ticksInPlace + 1 : 0
    tickedAt = now
    return call(at: now) { $0.tick(at: $1) }
  }

  /// Ends the process and returns the effects on the host's disk.
  mutating func stop() -> Disk.Crash {
    process = nil
    wakeAt = nil
    isInChannel = false
    return disk.crash()
  }
}

/// A process of a host; a reference type, because a `Node` cannot be copied.
final class Process {
  var node: Node
  private var consistent = ConsistentChannels()

  init(_ node: consuming Node) { self.node = node }

  /// Describes the violated invariants of the node's state; empty if there are none.
  func checkInvariants() -> [String] { node.checkInvariants(&consistent) }
}

import MusterBase
import MusterChannel
import MusterCore
import MusterCrypto
import MusterWire

/// A simulation of many nodes on a virtual network and clock, with the same `Node` engine as in
/// `MusterNode`.
///
/// The seed determines the whole run: faults, workload, delays and all randomness of the nodes.
public struct Simulation: World {
  /// The persistent state that a crash destroys.
  enum Loss: Sendable {
    case nothing, disk, identity
  }

  /// A planned event. `run` distinguishes a process from its successors.
  enum Event: Sendable {
    case start(Int)
    case act
    case fault(Fault)
    case heal
    case unblock(from: Address, to: Address)
    case restart(Int, Loss)
    case finishLeaving(Int, run: Int, patience: Int)
    case rejoin(Int, run: Int)
    case remove
    case frame(Int, run: Int)
    case audio(Int, run: Int, packetsLeft: Int, level: UInt8)
    case found(Int, run: Int)
    case unmute(Int, run: Int)
    case check
    case healAll
  }

  static let checkInterval = Duration.milliseconds(200)

  let options: SimulationOptions
  let plan: FaultPlan
  let scenario: Scenario
  let channel: ChannelPlan
  let paths: PathMap
  let healAt: Instant

  var now = Instant.zero
  var prng: PRNG
  var queue = EventQueue<Event>()
  var network: Network
  var nodes: [SimulatedNode] = []
  /// The index of the host that has or had an identity.
  var owners = PeerTable<NodeID, Int>()
  var attacker: Attacker
  var timeline: Timeline
  var trace: RunTrace
  var isCut = false
  var blockedDirections = 0
  var isHealed = false
  var removalsLeft: Int
  /// The highest sum of loss and corruption rates of any path during the fault phase.
  var worstLoss = 0.0

  var nonces = NonceChecker()
  var plaintext = PlaintextChecker()
  var bounds = BoundsChecker()
  var silence: SilenceChecker
  var delivery = DeliveryChecker()
  var frameChecker: FrameChecker
  var roles: RoleChecker
  var calls: CallChecker
  var standings: StandingChecker
  var entries: EntryChecker
  var messages: MessageChecker
  var commits = CommitChecker()
  /// The time at which each stream was last shown, by receiver, sender and stream.
  var shownAt: [Instant?]
  var settling = Settling()
  var trafficCheckedAt = Instant.zero
  var totals = Totals()
  var violation: Violation?
  var isFinished = false
  let checkers: [StepChecker]
  var otherDeadline: Instant? { nil }

  /// Counters for the result.
  struct Totals: Sendable {
    var bytes: UInt64 = 0
    var frames: UInt64 = 0
    var audioPackets: UInt64 = 0
    var linksMade: UInt64 = 0
    var grants: UInt64 = 0
    var moderations: UInt64 = 0
    var refusals: UInt64 = 0
    var failedCommits: UInt64 = 0
  }

  /// Draws the scenario and the fault plan from the seed and schedules their events; no node runs
  /// yet.
  public init(_ options: SimulationOptions) {
    self.options = options
    prng = PRNG(seed: options.seed)
    plan = FaultPlan(options.faults, &prng)
    scenario = Scenario(options, clocksAreRight: !plan.isOn(.clock), &prng)
    let count = scenario.count
    paths = PathMap(scenario.shape, count: count, &prng)
    healAt = .zero + .milliseconds(scenario.seconds * 500)
    removalsLeft = scenario.removals
    var identities: [Identity] = []
    for _ in 0..<count { identities.append(Self.newIdentity(&prng)) }
    channel = ChannelPlan(
      scenario.kind, scenario.settings, seed: options.seed, owner: identities[0], &prng)
    let addresses = (0..<count).map { Self.address(UInt32($0)) }
    network = Network(hosts: addresses, seed: prng.next())
    attacker = Attacker(addresses: (0..<3).map { Self.address(200 + UInt32($0)) })
    timeline = Timeline(keepsLines: options.keepsTimeline)
    trace = RunTrace(isOn: options.draws, nodes: count)
    silence = SilenceChecker(members: addresses)
    frameChecker = FrameChecker(nodes: count)
    roles = RoleChecker(
      owner: channel.genesis?.genesis.owner, settings: scenario.settings)
    calls = CallChecker(nodes: count)
    standings = StandingChecker(nodes: count)
    entries = EntryChecker(nodes: count)
    messages = MessageChecker()
    checkers = [.progress] + (options.checksInvariants ? [.invariants] : [])
    shownAt = Array(repeating: nil, count: count * count * Limits.videoStreams)
    for (index, address) in addresses.enumerated() {
      addNode(index, address, identities[index])
    }
    found()
    setConditions()
    schedule()
  }

  /// Creates a simulation and runs it until its end or the first violation.
  public static func run(_ options: SimulationOptions) -> SimulationResult {
    var simulation = Simulation(options)
    return simulation.run()
  }

  /// Runs until the end or the first violation.
  public mutating func run() -> SimulationResult {
    drive()
    return result
  }

  mutating func tickOthers() {}

  mutating func finish() { isFinished = true }

  /// The address of the first node, 10.0.0.1; later nodes have the addresses that follow.
  static let firstHost: UInt32 = 0x0A00_0001

  private static func address(_ host: UInt32) -> Address {
    Address(host: .v4(firstHost + host), port: 4000)
  }

  static func newIdentity(_ prng: inout PRNG) -> Identity {
    var entropy = Entropy.seeded(prng.next())
    return Identity(generating: &entropy)
  }

  private mutating func addNode(_ index: Int, _ address: Address, _ identity: Identity) {
    nodes.append(
      SimulatedNode(
        index: index, address: address, name: "\(Marker.text)-\(index)",
        clockOffset: prng.duration(.seconds(1), .seconds(1_000_000)), identity: identity,
        firstKey: channel.key, wantsCall: prng.chance(0.85), diskSeed: prng.next()))
    nodes[index].isLawless = index == scenario.lawless
    // A generator of its own, so that the other draws stay as they are.
    var apart = PRNG(seed: options.seed &* 64 &+ UInt64(index))
    nodes[index].answersCalls = apart.chance(0.3)
    adopt(identity, by: index)
  }

  private mutating func setConditions() {
    for sender in nodes.indices {
      nodes[sender].disk.conditions = plan.diskConditions
      for receiver in nodes.indices where sender != receiver {
        let (from, to) = (nodes[sender].address, nodes[receiver].address)
        var conditions = plan.conditions(&prng)
        if let loss = options.loss { conditions.loss = loss }
        worstLoss = max(worstLoss, conditions.loss + conditions.corruption)
        network.setConditions(conditions, from: from, to: to)
        if !paths.has(sender, receiver) { network.sever(from: from, to: to) }
      }
    }
  }

  private mutating func schedule() {
    let names = plan.faults.map(\.rawValue).joined(separator: " ")
    note("--", "\(nodes.count) nodes, \(scenario.shape.rawValue) network, faults: \(names)")
    note("--", "\(scenario.kind.rawValue) channel, media \(scenario.hasMedia ? "on" : "off")")
    for index in nodes.indices { schedule(.start(index), in: prng.duration(.zero, .seconds(2))) }
    schedule(.act, in: .seconds(1))
    schedule(.check, in: Self.checkInterval)
    for fault in plan.faults {
      if let pause = plan.pause(before: fault, &prng) {
        schedule(.fault(fault), in: .seconds(1) + pause)
      }
    }
    for _ in 0..<scenario.removals {
      schedule(.remove, in: prng.duration(.seconds(3), max(healAt - .zero, .seconds(4))))
    }
    queue.schedule(.healAll, at: healAt)
  }

  private var result: SimulationResult {
    SimulationResult(
      seed: options.seed, nodes: nodes.count, faults: plan.faults, shape: scenario.shape,
      channel: scenario.kind, hasMedia: scenario.hasMedia, duration: now - .zero,
      settledAfter: settling.settledAt.map { $0 - healAt },
      framesAfter: scenario.hasMedia ? settling.framesAt.map { $0 - healAt } : nil,
      messages: messages.totals, calls: calls.totals, epochs: UInt64(roles.epoch),
      grants: totals.grants, moderations: totals.moderations, refusals: totals.refusals,
      failedCommits: totals.failedCommits, network: network.counters,
      bytes: totals.bytes, frames: totals.frames, audioPackets: totals.audioPackets,
      linksMade: totals.linksMade, violation: violation, digest: timeline.digest,
      timeline: timeline.lines,
      drawing: options.draws ? RunDrawing.svg(of: self) : nil)
  }
}

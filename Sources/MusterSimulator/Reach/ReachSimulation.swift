import MusterBase
import MusterCore
import MusterCrypto
import MusterDiscovery
import MusterWire

/// A simulation of the members of one call in homes behind NAT routers, with rendezvous servers and
/// a changing network. The nodes are the same `Node` engines as in `MusterNode`.
///
/// Every member sends an audio packet every 250 ms, and a link counts only while packets arrive: a
/// node may take seconds to detect that a link is dead.
public struct ReachSimulation: World {
  /// A planned event. `run` distinguishes a process from its successors.
  enum Event: Sendable {
    case start(Int)
    case change
    case restart(Int)
    case mend(Int, Int)
    case revive(Int)
    case notice(Int)
    case assignV6(Int)
    case removeV6(Int)
    case audio(Int, run: Int)
    case check
    case heal
  }

  /// A dedicated rendezvous server on a separate host.
  struct Rendezvous: Sendable {
    let host: Int
    let home: Int
    let address: Address
    /// The server; nil while it is down.
    var server: RendezvousServer?
  }

  static let checkInterval = Duration.milliseconds(200)
  static let audioInterval = Duration.milliseconds(250)
  static let port: UInt16 = 4000
  static let rendezvousPort: UInt16 = 47_475

  let options: ReachOptions
  let scenario: ReachScenario
  let key: ChannelKey
  var channel: ChannelID { key.channelID }
  let healAt: Instant

  var now = Instant.zero
  var prng: PRNG
  /// The generator for the hosts' IPv6 addresses, apart from `prng`, so that these draws change no
  /// others.
  var v6PRNG: PRNG
  var queue = EventQueue<Event>()
  var network: Internet
  /// The nodes by host index; the hosts of dedicated rendezvous servers follow.
  var nodes: [SimulatedNode] = []
  var rendezvous: [Rendezvous] = []
  /// The index of the node that has or had an identity.
  var owners = PeerTable<NodeID, Int>()
  var cuts: [[Int]] = []
  var timeline: Timeline
  var isHealed = false

  var nonces = NonceChecker()
  var plaintext = PlaintextChecker()
  var bounds = BoundsChecker()
  var delivery = DeliveryChecker()
  var steadiness: PathSteadiness
  /// The time at which audio last arrived, by receiver and sender.
  var heardAt: [Instant?]
  /// The start of the current period without a fault, or of the current period with a fault or
  /// disagreement; at least one of the two is nil.
  var settledAt: Instant?
  var disputedSince: Instant?
  var changeCounts: [Int]
  var linksMade: UInt64 = 0
  var audioPackets: UInt64 = 0
  var violation: Violation?
  var isFinished = false
  let checkers: [StepChecker] = [.progress, .invariants]
  var otherDeadline: Instant? {
    rendezvous.reduce(nil) { soonest($0, $1.server?.deadline) }
  }

  /// Draws the scenario from the seed and schedules its changes; no node runs yet.
  public init(_ options: ReachOptions) {
    self.options = options
    prng = PRNG(seed: options.seed)
    v6PRNG = PRNG(seed: ~options.seed)
    let scenario = ReachScenario(options, &prng)
    self.scenario = scenario
    key = ChannelKey.fromName("\(Marker.text)-reach-\(options.seed)")
    healAt = .zero + (scenario.changeTimes.last ?? .zero)
    network = Internet(homes: scenario.kinds, seed: prng.next())
    timeline = Timeline(keepsLines: options.keepsTimeline)
    heardAt = Array(repeating: nil, count: scenario.count * scenario.count)
    steadiness = PathSteadiness(nodes: scenario.count)
    changeCounts = ReachChange.allCases.map { _ in 0 }
    for index in 0..<scenario.count { addNode(index) }
    for home in scenario.rendezvousHomes { addRendezvous(in: home) }
    setConditions()
    schedule()
    scheduleV6()
  }

  /// Creates a simulation and runs it until its end or the first violation.
  public static func run(_ options: ReachOptions) -> ReachResult {
    var simulation = ReachSimulation(options)
    return simulation.run()
  }

  /// Runs until the end or the first violation.
  public mutating func run() -> ReachResult {
    drive()
    return result
  }

  mutating func tickOthers() {
    for number in rendezvous.indices { rendezvous[number].server?.tick(at: now) }
  }

  mutating func written(_ job: Disk.Job, at index: Int) {}

  mutating func finish() { isFinished = true }

  // MARK: Setup

  private mutating func addNode(_ index: Int) {
    // Real hosts use ephemeral ports or a configured port, which is the same in every home.
    let port = prng.chance(0.5) ? Self.port : 32_768 + UInt16(prng.below(28_000))
    let host = network.addHost(port: port, in: scenario.indices[index])
    let identity = Simulation.newIdentity(&prng)
    nodes.append(
      SimulatedNode(
        index: index, address: network.address(of: host), name: "\(Marker.text)-\(index)",
        clockOffset: prng.duration(.seconds(1), .seconds(1_000_000)), identity: identity,
        firstKey: EpochKey(number: 0, key: key), wantsCall: true, diskSeed: prng.next()))
    owners[identity.id] = index
    plaintext.add(identity.id)
    bounds.identities += 1
    schedule(.start(index), in: prng.duration(.zero, .seconds(2)))
  }

  private mutating func addRendezvous(in home: Int) {
    let host = network.addHost(port: Self.rendezvousPort, in: home)
    rendezvous.append(
      Rendezvous(
        host: host, home: home, address: network.address(of: host),
        server: RendezvousServer(entropy: .seeded(prng.next()))))
  }

  /// Sets the conditions of all paths between homes; paths within a home stay lossless.
  mutating func setConditions() {
    let loss = isHealed ? scenario.conditions.lossAfterwards : scenario.conditions.loss
    for sender in 0..<network.homeCount {
      for receiver in 0..<network.homeCount where sender != receiver {
        var conditions = PathConditions()
        conditions.delay = prng.duration(
          .milliseconds(1), max(scenario.conditions.longestDelay, .milliseconds(1)))
        conditions.jitter = .milliseconds(2)
        conditions.loss = loss
        network.setConditions(conditions, from: sender, to: receiver)
      }
    }
  }

  private mutating func schedule() {
    let kinds = scenario.kinds.map(\.rawValue).joined(separator: " ")
    note("--", "homes: \(kinds)")
    for index in nodes.indices { note(nodes[index].label, "is at home \(scenario.indices[index])") }
    for time in scenario.changeTimes.dropLast() { queue.schedule(.change, at: .zero + time) }
    queue.schedule(.heal, at: healAt)
    schedule(.check, in: Self.checkInterval)
  }

  private var result: ReachResult {
    let pairs = linkedPairs
    return ReachResult(
      seed: options.seed, nodes: nodes.count, homes: scenario.kinds.count, changes: changeCounts,
      duration: now - .zero, settledAfter: settledAt.map { $0 - healAt }, direct: pairs.direct,
      relayed: pairs.relayed, apart: pairs.apart, network: network.counters,
      linksMade: linksMade, audioPackets: audioPackets, violation: violation,
      digest: timeline.digest, timeline: timeline.lines)
  }
}

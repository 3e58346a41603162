import MusterBase
import MusterCore
import MusterCrypto
import MusterMesh

/// Many nodes on a virtual network and clock: the same `Node` as in the shell, in another world.
///
/// Everything that happens follows from the seed: faults and workload are drawn from it, events of
/// one time come in the order in which they were scheduled, nodes in the order of their places.
public struct Simulation: Sendable {
  /// Something planned. `run` tells a process from its successors.
  enum Event: Sendable {
    case start(Int)
    case act
    case fault(Fault)
    case heal
    case unblock(from: Address, to: Address)
    case restart(Int, forgetful: Bool)
    case finishLeaving(Int, run: Int, patience: Int)
    case rejoin(Int, run: Int)
    case picture(Int, run: Int)
    case sound(Int, run: Int, packetsLeft: Int, level: UInt8)
    case check
    case calm
  }

  /// Links, rosters and calls must have come together this long after the last fault: an announce
  /// every 6 s at the latest, then a handshake and hellos.
  static let settleLimit = Duration.seconds(10)
  /// Pictures must flow this much later: hellos that a peer forgot come again every 5 s.
  static let pictureLimit = Duration.seconds(15)
  /// Agreement has to last for so long before a run may end.
  static let settledTime = Duration.seconds(1)
  static let checkInterval = Duration.milliseconds(200)
  /// A node that wants to be called again so often without time passing would spin for ever.
  static let ticksInPlace = 100

  let options: SimulationOptions
  let plan: FaultPlan
  let key: ChannelKey
  let channelName: String
  let usesBroadcast: Bool
  let usesPeers: Bool
  let calmAt: Instant

  var now = Instant.zero
  var prng: PRNG
  var queue = EventQueue<Event>()
  var network: Network
  var nodes: [SimulatedNode] = []
  /// Whose identity it is or was.
  var owners = PeerTable<NodeID, Int>()
  var attacker: Attacker
  var timeline: Timeline
  var isCut = false
  var blockedDirections = 0
  var isCalm = false
  /// When a process last came or went, or a channel was entered or left.
  var lastChangeAt = Instant.zero

  var nonces = NonceChecker()
  var plaintext = PlaintextChecker()
  var bounds = BoundsChecker()
  var silence: SilenceChecker
  var delivery = DeliveryChecker()
  var frameChecker: FrameChecker
  /// When the last picture was shown, by receiver and sender.
  var shownAt: [Instant?]

  var settledAt: Instant?
  var picturesAt: Instant?
  var bytes: UInt64 = 0
  var frames: UInt64 = 0
  var audioPackets: UInt64 = 0
  var linksMade: UInt64 = 0
  var violation: Violation?
  private var isFinished = false

  public init(_ options: SimulationOptions) {
    self.options = options
    prng = PRNG(seed: options.seed)
    plan = FaultPlan(options.faults, &prng)
    // Mostly few: the cost grows with the square.
    let drawn = 2 + min(prng.below(7), prng.below(7))
    let count = min(max(options.nodes ?? drawn, 1), SimulationOptions.nodeLimit)
    channelName = "\(Marker.text)-room-\(options.seed)"
    key = ChannelKey.fromName(channelName)
    let givesPeers = prng.chance(0.4)
    let alsoBroadcasts = prng.chance(0.5)
    usesPeers = givesPeers
    usesBroadcast = !givesPeers || alsoBroadcasts
    calmAt = .zero + .milliseconds(max(options.seconds, 2) * 500)
    let addresses = (0..<count).map { Self.address(UInt32($0)) }
    network = Network(hosts: addresses, seed: prng.next())
    attacker = Attacker(addresses: (0..<3).map { Self.address(200 + UInt32($0)) })
    timeline = Timeline(keepsLines: options.keepsTimeline)
    silence = SilenceChecker(members: addresses)
    frameChecker = FrameChecker(nodes: count)
    shownAt = Array(repeating: nil, count: count * count)
    for (place, address) in addresses.enumerated() { addNode(place, address) }
    setConditions()
    schedule()
  }

  /// Runs the whole simulation.
  public static func run(_ options: SimulationOptions) -> SimulationResult {
    var simulation = Simulation(options)
    return simulation.run()
  }

  /// Runs until the end, or until something happened that may not.
  public mutating func run() -> SimulationResult {
    while !isFinished, violation == nil, let next = nextTime() {
      now = max(now, next)
      for delivery in network.tick(at: now) { deliver(delivery) }
      while violation == nil, let event = queue.popDue(at: now) { handle(event) }
      for place in nodes.indices {
        guard let wake = nodes[place].wakeAt, wake <= now else { continue }
        perform(nodes[place].tick(at: now), of: place)
        if nodes[place].ticksInPlace > Self.ticksInPlace {
          violated("progress", "\(nodes[place].label) wants to be called for ever")
        }
      }
    }
    return result
  }

  mutating func finish() { isFinished = true }

  mutating func violated(_ checker: String, _ what: String) {
    guard violation == nil else { return }
    let found = Violation(checker: checker, what: what, at: now)
    violation = found
    note("!!", found.description)
  }

  mutating func note(_ label: String, _ text: String) { timeline.note(label, text, at: now) }

  mutating func schedule(_ event: Event, in delay: Duration) {
    queue.schedule(event, at: now + delay)
  }

  private func nextTime() -> Instant? {
    var next = soonest(network.deadline, queue.deadline)
    for place in nodes.indices { next = soonest(next, nodes[place].wakeAt) }
    return next
  }

  /// 10.0.0.1, the address of the first node; the others follow.
  static let firstHost: UInt32 = 0x0A00_0001

  private static func address(_ host: UInt32) -> Address {
    Address(host: .v4(firstHost + host), port: 4000)
  }

  private mutating func addNode(_ place: Int, _ address: Address) {
    var entropy = Entropy.seeded(prng.next())
    let identity = Identity(generating: &entropy)
    nodes.append(
      SimulatedNode(
        place: place, address: address, name: "\(Marker.text)-\(place)",
        clockOffset: prng.duration(.seconds(1), .seconds(1_000_000)), identity: identity,
        wantsCall: prng.chance(0.85)))
    adopt(identity, by: place)
  }

  private mutating func setConditions() {
    for sender in nodes.indices {
      for receiver in nodes.indices where sender != receiver {
        network.setConditions(
          plan.conditions(&prng), from: nodes[sender].address, to: nodes[receiver].address)
      }
    }
  }

  private mutating func schedule() {
    let names = plan.faults.map(\.rawValue).joined(separator: " ")
    note("--", "\(nodes.count) nodes, faults: \(names.isEmpty ? "none" : names)")
    for place in nodes.indices { schedule(.start(place), in: prng.duration(.zero, .seconds(2))) }
    schedule(.act, in: .seconds(1))
    schedule(.check, in: Self.checkInterval)
    for fault in plan.faults {
      if let pause = plan.pause(before: fault, &prng) {
        schedule(.fault(fault), in: .seconds(1) + pause)
      }
    }
    queue.schedule(.calm, at: calmAt)
  }

  private var result: SimulationResult {
    SimulationResult(
      seed: options.seed, nodes: nodes.count, faults: plan.faults, duration: now - .zero,
      settledAfter: settledAt.map { $0 - calmAt }, picturesAfter: picturesAt.map { $0 - calmAt },
      network: network.counters, bytes: bytes, frames: frames, audioPackets: audioPackets,
      linksMade: linksMade, violation: violation, digest: timeline.digest,
      timeline: timeline.lines)
  }
}

import MusterBase
import MusterChannel
import MusterCore
import MusterCrypto
import MusterWire

/// A simulation of members in good standing who talk and meet, and of an adversary with any number
/// of keys that got its roles by one invite, or that has the key of an open channel.
///
/// The members are the same `Node` engines as in `MusterNode`; the adversary runs the link protocol
/// and none of a node's rules (`AdversaryPeer`). The network itself is sound.
public struct AdversarySimulation: World {
  /// A planned event.
  enum Event: Sendable {
    case start(Int)
    case attack
    case introduce
    case flood
    case write(Int)
    case crash(Int)
    case restart(Int)
    case endCall
    case remove
    case check
    case end
  }

  static let attackAt = Instant.zero + .seconds(5)
  static let crashAt = Instant.zero + .seconds(7)
  /// The time at which the owner's node returns that is away before.
  static let returnAt = Instant.zero + .seconds(14)
  static let endCallAt = Instant.zero + .seconds(11)
  static let removalAt = Instant.zero + .seconds(16)
  static let endAt = Instant.zero + .seconds(24)
  static let checkInterval = Duration.milliseconds(200)
  static let floodInterval = Duration.milliseconds(50)
  static let introductionInterval = Duration.seconds(1)
  static let writingInterval = Duration.seconds(1)

  let options: AdversaryOptions
  let scenario: AdversaryScenario
  let channel: ChannelPlan

  var now = Instant.zero
  var prng: PRNG
  var queue = EventQueue<Event>()
  var network: Network
  var nodes: [SimulatedNode] = []
  var adversary: Adversary
  var peers: [AdversaryPeer] = []
  /// Whether the keys with links have had a role at any member.
  var hadRole: [Bool] = []
  var timeline: Timeline
  /// Datagrams on the network, for replays.
  var recordings: [Network.Delivery] = []
  /// The bytes that the adversary has sent, and those that members have sent it.
  var bytesSent = 0
  var bytesReceived = 0
  /// The time at which the adversary was removed; nil before.
  var removedAt: Instant?

  var promises: PromiseChecker
  var violation: Violation?
  var isFinished = false
  let checkers: [StepChecker] = [.progress]
  var otherDeadline: Instant? { peers.reduce(nil) { soonest($0, $1.deadline) } }

  /// Draws the scenario from the seed and schedules its events; no node runs yet.
  public init(_ options: AdversaryOptions) {
    self.options = options
    prng = PRNG(seed: options.seed)
    scenario = AdversaryScenario(options, &prng)
    let count = scenario.count
    var identities: [Identity] = []
    for _ in 0..<count { identities.append(Simulation.newIdentity(&prng)) }
    let hosts = (0..<count + scenario.linkedKeys).map { Self.address(UInt32($0)) }
    network = Network(hosts: hosts, seed: prng.next())
    channel = ChannelPlan(
      scenario.kind, scenario.settings, seed: options.seed, owner: identities[0], &prng)
    timeline = Timeline(keepsLines: options.keepsTimeline)
    promises = PromiseChecker(nodes: count)
    for (index, identity) in identities.enumerated() {
      nodes.append(
        SimulatedNode(
          index: index, address: hosts[index], name: "\(Marker.text)-\(index)",
          clockOffset: prng.duration(.seconds(1), .seconds(1_000_000)), identity: identity,
          firstKey: channel.key, wantsCall: true, diskSeed: prng.next()))
    }
    let founded = Self.found(channel, scenario, &nodes, &prng)
    adversary = Adversary(
      channel: channel.id, invite: founded.invite, scenario: scenario,
      members: identities.map(\.id), staleCall: founded.staleCall, seed: prng.next())
    hadRole = Array(repeating: scenario.kind == .open, count: scenario.linkedKeys)
    for index in 0..<scenario.linkedKeys {
      peers.append(
        AdversaryPeer(
          adversary.keys[index], at: hosts[count + index], channelKey: channel.key.key,
          acknowledges: scenario.tactics.contains(.questions), entropy: .seeded(prng.next()),
          seed: prng.next()))
    }
    setConditions()
    if !scenario.guests.isEmpty { promises.exempt([0], until: Self.returnAt + .seconds(6)) }
    schedule()
  }

  /// Creates a simulation and runs it until its end or the first violation.
  public static func run(_ options: AdversaryOptions) -> AdversaryResult {
    var simulation = AdversarySimulation(options)
    return simulation.run()
  }

  /// Runs until the end or the first violation.
  public mutating func run() -> AdversaryResult {
    drive()
    let steps = nodes.reduce(0) { $0 + ($1.process?.node.steps(in: channel.id) ?? 0) }
    return AdversaryResult(
      seed: options.seed, nodes: nodes.count, channel: scenario.kind, tactics: scenario.tactics,
      counters: scenario.counters, keys: adversary.keyCount, entries: adversary.entryCount,
      bytesSent: bytesSent, bytesReceived: bytesReceived, steps: steps,
      messages: promises.messageCount, duration: now - .zero, violation: violation,
      digest: timeline.digest, timeline: timeline.lines)
  }

  mutating func written(_ job: Disk.Job, at index: Int) {}

  // MARK: Setup

  private static func address(_ host: UInt32) -> Address {
    Address(host: .v4(Simulation.firstHost + host), port: 4000)
  }

  /// Grants the members their roles as the owner, before any node runs, and makes the invite that
  /// the adversary gets; nil in an open channel. Leaves a call behind, which the owner has started
  /// and not ended, if the adversary is to make use of it.
  private static func found(
    _ channel: ChannelPlan, _ scenario: AdversaryScenario, _ nodes: inout [SimulatedNode],
    _ prng: inout PRNG
  ) -> (invite: InviteCredential?, staleCall: CallClaim?) {
    guard channel.genesis != nil else { return (nil, nil) }
    var office = Node(
      identity: nodes[0].identity, entropy: .seeded(prng.next()), seed: prng.next())
    office.setWallClock(millisecondsSince1970: WallTime.base * 1000, at: .zero)
    let joined = office.join(nodes[0].setup(of: channel), call: false, at: .zero)
    nodes[0].disk.record(joined, of: &office, at: .zero)
    for index in nodes.indices.dropFirst() where !scenario.guests.contains(index) {
      let member = nodes[index].identity.id
      let outputs = try? office.grant(
        scenario.roles[index], to: member, expiresAt: 0, in: channel.id, at: .zero)
      nodes[0].disk.record(outputs ?? [], of: &office, at: .zero)
    }
    let made = Simulation.invite(
      to: scenario.invitedAs, expiresAt: 0, uses: scenario.uses, from: &office, in: channel.id,
      at: .zero)
    nodes[0].disk.record(made?.outputs ?? [], of: &office, at: .zero)
    for guest in scenario.guests {
      nodes[guest].invite = made?.invite
      nodes[guest].usesInvite = true
    }
    if !scenario.guests.isEmpty {
      // While the owner is away, the others know what it has signed.
      for bytes in nodes[0].disk.signedEntries {
        let change = Node.Change.entry(bytes, id: SignedEntry.id(of: bytes))
        for index in nodes.indices.dropFirst() { nodes[index].disk.apply(change) }
      }
    }
    guard scenario.tactics.contains(.staleCalls) else { return (made?.invite.credential, nil) }
    let wanted = try? office.startCall(in: channel.id, at: .zero)
    nodes[0].disk.record(wanted ?? [], of: &office, at: .zero)
    // By then it has waited for others long enough.
    let later = Instant.zero + .seconds(6)
    nodes[0].disk.record(office.tick(at: later), of: &office, at: later)
    let claims = office.entries(of: channel.id).compactMap { entry -> CallClaim? in
      if case .claim(let claim) = entry.entry.body { claim } else { nil }
    }
    return (made?.invite.credential, claims.first)
  }

  private mutating func setConditions() {
    for sender in 0..<nodes.count + peers.count {
      for receiver in 0..<nodes.count + peers.count where sender != receiver {
        var conditions = PathConditions()
        conditions.delay = prng.duration(.milliseconds(1), .milliseconds(30))
        conditions.jitter = .milliseconds(1)
        network.setConditions(
          conditions, from: Self.address(UInt32(sender)), to: Self.address(UInt32(receiver)))
      }
    }
  }

  private mutating func schedule() {
    let tactics = scenario.tactics.map(\.rawValue).joined(separator: " ")
    note("--", "\(nodes.count) members of \(scenario.kind.rawValue) channel")
    note("--", "adversary: \(scenario.keys) keys, \(tactics), counters \(scenario.counters)")
    let isOwnerAway = !scenario.guests.isEmpty
    for index in nodes.indices {
      let start = prng.duration(.zero, .seconds(1))
      let from = index == 0 && isOwnerAway ? Self.returnAt : .zero
      queue.schedule(.start(index), at: from + start)
      queue.schedule(.write(index), at: Self.attackAt + prng.duration(.zero, Self.writingInterval))
    }
    queue.schedule(.attack, at: Self.attackAt)
    if let index = scenario.restarted { queue.schedule(.crash(index), at: Self.crashAt) }
    if scenario.endsCall { queue.schedule(.endCall, at: Self.endCallAt) }
    if scenario.removes { queue.schedule(.remove, at: Self.removalAt) }
    queue.schedule(.end, at: Self.endAt)
    schedule(.check, in: Self.checkInterval)
  }
}

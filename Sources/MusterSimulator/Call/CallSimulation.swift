import MusterBase
import MusterCore
import MusterCrypto
import MusterMedia
import MusterWire

/// A simulation of one call over the access links of a `NetworkScenario`, with the same `Node`
/// engines as in `MusterNode` and models of encoders. It measures what each participant receives.
public struct CallSimulation: World {
  /// A planned event; the numbers are indices of participants.
  enum Event: Sendable {
    case join(Int)
    case up(Int, PathConditions)
    case down(Int, PathConditions)
    case frame(Int)
    case audio(Int)
    case playout(Int)
    case startTCP
    case endTCP
    case estimates
    case end
  }

  static let packetInterval = Duration.milliseconds(20)
  /// The interval of the samples of estimates.
  static let estimateInterval = Duration.seconds(1)

  let scenario: NetworkScenario
  let draws: Bool
  let key: ChannelKey
  var channel: ChannelID { key.channelID }

  var now = Instant.zero
  var prng: PRNG
  var queue = EventQueue<Event>()
  var network: Network
  var nodes: [SimulatedNode] = []
  var encoders: [EncoderModel?] = []
  /// The index of the participant with an identity.
  var owners = PeerTable<NodeID, Int>()
  /// The flows, by receiver and sender.
  var meters: [FlowMeter] = []
  var tcp: CubicFlow?
  var tcpPoints: [UInt64] = []
  var frameChecker: FrameChecker
  var timeline = Timeline(keepsLines: false)
  var violation: Violation?
  var isFinished = false
  let checkers: [StepChecker] = [.progress]
  var otherDeadline: Instant? { tcp?.deadline }

  /// Plans the scenario; no node runs yet.
  public init(_ scenario: NetworkScenario, seed: UInt64, draws: Bool = false) {
    self.scenario = scenario
    self.draws = draws
    prng = PRNG(seed: seed)
    key = ChannelKey.fromName("\(Marker.text)-\(scenario.name)")
    let count = scenario.participants.count
    // The last host has no node: it is the server of the TCP flow.
    network = Network(hosts: (0...count).map { Self.address(of: $0) }, seed: prng.next())
    frameChecker = FrameChecker(nodes: count)
    for index in 0..<count { add(index) }
    for receiver in 0..<count {
      for sender in 0..<count {
        let joined = max(
          scenario.participants[receiver].joinsAt, scenario.participants[sender].joinsAt)
        meters.append(FlowMeter(joinedAt: .zero + joined, end: .zero + scenario.duration))
      }
    }
    if let tcp = scenario.tcp {
      queue.schedule(.startTCP, at: .zero + tcp.startsAt)
      if let end = tcp.endsAt { queue.schedule(.endTCP, at: .zero + end) }
    }
    queue.schedule(.estimates, at: .zero + Self.estimateInterval)
    queue.schedule(.end, at: .zero + scenario.duration)
  }

  /// Runs a scenario until its end or the first violation.
  public static func run(
    _ scenario: NetworkScenario, seed: UInt64, draws: Bool = false
  ) -> CallResult {
    var simulation = CallSimulation(scenario, seed: seed, draws: draws)
    simulation.drive()
    return simulation.result
  }

  static func address(of host: Int) -> Address {
    Address(host: .v4(0x0A00_0001 + UInt32(host)), port: 4000)
  }

  /// The address of the TCP flow's sender.
  var server: Address { Self.address(of: scenario.participants.count) }

  func meterIndex(from sender: Int, to receiver: Int) -> Int {
    receiver * scenario.participants.count + sender
  }

  private mutating func add(_ index: Int) {
    let participant = scenario.participants[index]
    let identity = Simulation.newIdentity(&prng)
    nodes.append(
      SimulatedNode(
        index: index, address: Self.address(of: index), name: participant.name,
        clockOffset: prng.duration(.seconds(1), .seconds(1_000_000)), identity: identity,
        firstKey: EpochKey(number: 0, key: key), wantsCall: true, diskSeed: prng.next()))
    owners[identity.id] = index
    encoders.append(
      participant.video.map {
        EncoderModel(sender: UInt8(index), source: $0, cuts: participant.cuts)
      })
    for step in participant.up { queue.schedule(.up(index, step.conditions), at: .zero + step.at) }
    for step in participant.down {
      queue.schedule(.down(index, step.conditions), at: .zero + step.at)
    }
    for other in participant.severedFrom {
      network.sever(from: Self.address(of: index), to: Self.address(of: other))
      network.sever(from: Self.address(of: other), to: Self.address(of: index))
    }
    queue.schedule(.join(index), at: .zero + participant.joinsAt)
  }

  private var result: CallResult {
    var flows: [FlowReport] = []
    for receiver in nodes.indices {
      for sender in nodes.indices where sender != receiver {
        var meter = meters[meterIndex(from: sender, to: receiver)]
        flows.append(meter.report(in: scenario, from: sender, to: receiver))
      }
    }
    return CallResult(
      scenario: scenario, flows: flows, tcpKilobitsPerSecond: tcpRate,
      fairness: fairness(of: flows), violation: violation,
      digest: timeline.digest, drawing: draws ? CallDrawing.svg(of: self) : nil)
  }

  private func fairness(of flows: [FlowReport]) -> Double? {
    let receiver = scenario.participants[0]
    let rates = flows.filter { $0.to == receiver.name && $0.video != nil }
      .map(\.lastKilobitsPerSecond)
    let hasBottleneck = receiver.down.contains { $0.conditions.kilobitsPerSecond != nil }
    guard rates.count > 1, hasBottleneck else { return nil }
    let sum = rates.reduce(0, +)
    return sum * sum / (Double(rates.count) * rates.reduce(0) { $0 + $1 * $1 })
  }

  private var tcpRate: Double? {
    guard let plan = scenario.tcp, let tcp else { return nil }
    let bytes = tcp.segmentsReceived * UInt64(CubicFlow.segmentBytes + Pipe.headerBytes)
    return Double(bytes) * 8 / 1000
      / ((plan.endsAt ?? scenario.duration) - plan.startsAt).inSeconds
  }
}

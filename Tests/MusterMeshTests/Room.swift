import MusterBase
import MusterCrypto
import MusterMesh
import MusterWire

/// Several nodes of one channel on a small network with delay and loss, and a clock of its own.
struct Room {
  private(set) var states: [ChannelState]
  /// What each node has told of so far.
  private(set) var events: [[ChannelEvent]]
  private(set) var now = seconds(1)
  var loss = 0.0
  /// Datagrams take up to this long, each its own time, and overtake one another; undelayed they
  /// arrive in the order in which they were sent.
  var longestDelay = Duration.zero
  var prng: PRNG

  private struct Flight {
    var due: Instant
    var from: Int
    var to: Int
    var control: Control
  }

  private var flying: [Flight] = []
  private var links: [Bool]

  init(_ count: Int, seed: UInt64 = 1) {
    prng = PRNG(seed: seed)
    states = (0..<count).map { testChannel(UInt64($0) + 1) }
    events = Array(repeating: [], count: count)
    links = Array(repeating: false, count: count * count)
  }

  var count: Int { states.count }

  func id(_ node: Int) -> NodeID { states[node].ownMember.id }

  func isLinked(_ a: Int, _ b: Int) -> Bool { links[a * count + b] }

  mutating func linkAll() {
    for a in 0..<count {
      for b in 0..<a { link(a, b) }
    }
  }

  mutating func link(_ a: Int, _ b: Int) {
    guard a != b, !isLinked(a, b) else { return }
    setLinked(a, b, true)
    let (first, second) = (id(a), id(b))
    perform(a) { $0.linkUp(second, at: $1) }
    perform(b) { $0.linkUp(first, at: $1) }
  }

  /// The link breaks for both; what was on its way is lost.
  mutating func unlink(_ a: Int, _ b: Int) {
    guard a != b, isLinked(a, b) else { return }
    setLinked(a, b, false)
    flying.removeAll { ($0.from == a && $0.to == b) || ($0.from == b && $0.to == a) }
    let (first, second) = (id(a), id(b))
    perform(a) { $0.linkDown(second, reason: .crashed, at: $1) }
    perform(b) { $0.linkDown(first, reason: .crashed, at: $1) }
  }

  private mutating func setLinked(_ a: Int, _ b: Int, _ value: Bool) {
    links[a * count + b] = value
    links[b * count + a] = value
  }

  mutating func start(_ node: Int, _ call: UInt64, startedAt: UInt64) {
    let id = CallID(high: 0, low: call)
    perform(node) { $0.startOrJoinCall(proposing: id, startedAt: startedAt, at: $1) }
  }

  mutating func perform(
    _ node: Int, _ body: (inout ChannelState, Instant) -> [ChannelState.Output]
  ) {
    for output in body(&states[node], now) {
      switch output {
      case .event(let event): events[node].append(event)
      case .send(let control, let peer): post(control, from: node, to: peer)
      }
    }
  }

  private mutating func post(_ control: Control, from node: Int, to peer: NodeID) {
    guard let to = (0..<count).first(where: { id($0) == peer }), isLinked(node, to),
      !prng.chance(loss)
    else { return }
    let delay = Duration.nanoseconds(prng.below(Int(longestDelay.wholeNanoseconds) + 1))
    flying.append(Flight(due: now + delay, from: node, to: to, control: control))
  }

  /// Lets time pass: datagrams arrive and every node ticks at its deadlines.
  mutating func run(for duration: Duration) {
    let end = now + duration
    while true {
      let arrival = flying.indices.min { flying[$0].due < flying[$1].due }
      let deadline = states.compactMap(\.deadline).min()
      guard let next = soonest(arrival.map { flying[$0].due }, deadline), next <= end else { break }
      now = max(now, next)
      if let arrival, flying[arrival].due <= now {
        deliver(flying.remove(at: arrival))
      } else {
        for node in 0..<count { perform(node) { $0.tick(at: $1) } }
      }
    }
    now = end
  }

  private mutating func deliver(_ flight: Flight) {
    let from = id(flight.from)
    perform(flight.to) { state, now in
      switch flight.control {
      case .hello(let signed): state.receiveHello(signed, from: from, at: now)
      case .helloReceived(let bootID, let sequence):
        state.receiveAcknowledgement(bootID: bootID, sequence: sequence, from: from, at: now)
      default: []
      }
    }
  }
}

func testChannel(_ number: UInt64, bootID: UInt64 = 1, name: String? = nil) -> ChannelState {
  ChannelState(
    identity: testIdentity(number), channel: testKey.channelID, name: name ?? "node \(number)",
    bootID: bootID)
}

/// A hello as its author would sign it, with anything in it.
func signedHello(
  _ number: UInt64, bootID: UInt64 = 1, sequence: UInt64, name: String = "x",
  flags: HelloFlags = [], call: CallInfo? = nil, endedCall: CallID? = nil,
  layers: [VideoLayer] = [], in channel: ChannelID = testKey.channelID
) -> [UInt8] {
  let identity = testIdentity(number)
  let hello = Hello(
    author: identity.id, bootID: bootID, sequence: sequence, name: name, flags: flags, call: call,
    endedCall: endedCall, layers: layers)
  return SignedHello.encode(hello, by: identity, in: channel)
}

func testCall(_ number: UInt64, by initiator: UInt64, startedAt: UInt64) -> CallInfo {
  CallInfo(
    id: CallID(high: 0, low: number), initiator: testIdentity(initiator).id, startedAt: startedAt)
}

extension Array where Element == ChannelState.Output {
  var events: [ChannelEvent] {
    compactMap { if case .event(let event) = $0 { event } else { nil } }
  }

  var hellos: [[UInt8]] {
    compactMap { if case .send(.hello(let signed), _) = $0 { signed } else { nil } }
  }
}

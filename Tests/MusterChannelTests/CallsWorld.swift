import MusterBase
import MusterChannel
import MusterCrypto
import MusterWire

/// Members of one channel that derive their calls from documents, on a virtual network that tests
/// can partition and heal. Presences are visible at once; entries arrive late and in any order.
struct CallsWorld {
  struct Node {
    var pen: Pen
    var document: Document
    /// The participation that the node publishes; a crash clears it.
    var own: Participation?
    var succession = Succession()
    var isUp = true
    var side = 0
    var view: ActiveCall?
    var events: [ChannelEvent] = []
  }

  private(set) var nodes: [Node]
  private(set) var now = seconds(1)
  let endsWithInitiator: Bool
  /// Entries in flight, including those that a partition holds back.
  private var flying: [(entry: SignedEntry, to: Int)] = []
  private var prng: PRNG
  private var calls: UInt64 = 0
  /// Counts joins over all nodes, in place of the Lamport counters of presences.
  private var arrivals: UInt64 = 0

  init(_ count: Int, endsWithInitiator: Bool, seed: UInt64) {
    nodes = (0..<count).map {
      Node(pen: Pen(UInt64($0) + 1), document: Document(channel: testKey.channelID))
    }
    self.endsWithInitiator = endsWithInitiator
    prng = PRNG(seed: seed)
  }

  var upNodes: [Node] { nodes.filter(\.isUp) }

  // MARK: What people and networks do

  mutating func start(_ node: Int) {
    guard nodes[node].isUp, nodes[node].own == nil else { return }
    arrivals += 1
    if let call = nodes[node].view {
      nodes[node].own = Participation(id: call.info.id, joined: arrivals)
    } else {
      calls += 1
      let id = CallID(high: UInt64(node), low: calls)
      broadcast(
        .claim(CallClaim(call: id, term: 1, startedAt: calls, order: 0, knowledge: .compared)),
        by: node)
      nodes[node].own = Participation(id: id, joined: arrivals)
    }
    recomputeAll()
  }

  mutating func leave(_ node: Int) {
    guard let mine = nodes[node].own else { return }
    nodes[node].own = nil
    let own = nodes[node].pen.id
    if let call = nodes[node].view, call.info.id == mine.id, call.info.initiator == own {
      let document = nodes[node].document
      let bodies = CallLedger.ending(
        call.info, by: own, Self.callEntries(document), may: Self.anything)
      for body in bodies { broadcast(body, by: node) }
    }
    recomputeAll()
  }

  mutating func crash(_ node: Int) {
    nodes[node].isUp = false
    nodes[node].own = nil
    nodes[node].succession = Succession()
    recomputeAll()
  }

  mutating func restart(_ node: Int) {
    guard !nodes[node].isUp else { return }
    nodes[node].isUp = true
    nodes[node].view = nil
    nodes[node].events = []
    recomputeAll()
  }

  /// Partitions the network: only nodes with the same side reach each other.
  mutating func split(_ sides: [Int]) {
    for (index, side) in sides.enumerated() { nodes[index].side = side }
    recomputeAll()
  }

  mutating func heal() { split(nodes.map { _ in 0 }) }

  /// Lets time pass in steps of up to a second, in each of which a part of the entries arrives.
  mutating func run(for duration: Duration, arriving share: Double = 1) {
    let end = now + duration
    while now < end {
      now = min(end, now + .milliseconds(1 + prng.below(1000)))
      deliver(share)
      recomputeAll()
    }
  }

  // MARK: What follows

  static func anything(_ capability: Capability, _ member: NodeID) -> Bool { true }

  private mutating func broadcast(_ body: EntryBody, by node: Int) {
    let entry = nodes[node].pen.sign(body, lamport: nodes[node].document.lamport + 1)
    _ = nodes[node].document.insert(entry)
    for other in nodes.indices where other != node { flying.append((entry, other)) }
  }

  private mutating func deliver(_ share: Double) {
    var rest: [(entry: SignedEntry, to: Int)] = []
    for flight in prng.permuted(flying) {
      let receiver = nodes[flight.to]
      let hasPath = nodes.contains {
        $0.isUp && $0.side == receiver.side && $0.document.contains(flight.entry.id.prefix)
      }
      if receiver.isUp, hasPath, prng.chance(share) {
        _ = nodes[flight.to].document.insert(flight.entry)
      } else {
        rest.append(flight)
      }
    }
    flying = rest
  }

  private static func callEntries(_ document: Document) -> CallEntries {
    CallEntries(
      claims: document.all(.claim), ends: document.all(.end),
      joinings: document.all(.joining))
  }

  private func isOver(_ call: CallID, for node: Int) -> Bool {
    let document = nodes[node].document
    return CallLedger.isOver(
      call, Self.callEntries(document), may: Self.anything)
  }

  private func ender(of call: CallID, for node: Int) -> NodeID? {
    let document = nodes[node].document
    return CallLedger.ender(
      of: call, Self.callEntries(document), may: Self.anything)
  }

  private func active(for node: Int) -> ActiveCall? {
    let here = nodes[node]
    let present = nodes.compactMap { other in
      other.isUp && other.side == here.side
        ? other.own.map { (member: other.pen.id, participation: $0) } : nil
    }
    return CallLedger.active(
      Self.callEntries(here.document), present: present, viewer: here.pen.id,
      rules: CallRules(endsWithInitiator: endsWithInitiator), may: Self.anything)
  }

  private mutating func recomputeAll() {
    for _ in 0..<8 {
      var isQuiet = true
      for node in nodes.indices where nodes[node].isUp && recompute(node) { isQuiet = false }
      if isQuiet { return }
    }
  }

  /// Recomputes the view of a node and applies its succession verdict; returns whether anything
  /// changed.
  private mutating func recompute(_ node: Int) -> Bool {
    let before = (nodes[node].own, nodes[node].view)
    if let mine = nodes[node].own, isOver(mine.id, for: node) { nodes[node].own = nil }
    var active = active(for: node)
    if let mine = nodes[node].own, active?.info.id != mine.id {
      arrivals += 1
      nodes[node].own = active.map { Participation(id: $0.info.id, joined: arrivals) }
      active = self.active(for: node)
    }
    nodes[node].events += CallView.events(
      from: nodes[node].view, to: active, ender: { ender(of: $0, for: node) }, hasMerged: false,
      reason: { _ in .left })
    nodes[node].view = active
    let verdict = nodes[node].succession.update(
      active, own: nodes[node].pen.id, isInCall: nodes[node].own != nil,
      endsWithInitiator: endsWithInitiator, mayHandOver: { _ in true }, at: now)
    switch verdict {
    case .none: break
    case .giveUp: nodes[node].own = nil
    case .takeOver(let term):
      guard let info = active?.info else { break }
      let claim = CallClaim(
        call: info.id, term: term, startedAt: info.startedAt, order: info.order,
        knowledge: .compared)
      broadcast(.claim(claim), by: node)
    }
    return verdict != .none || before != (nodes[node].own, nodes[node].view)
  }
}

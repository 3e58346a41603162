import MusterBase
import MusterChannel
import MusterCrypto
import MusterWire

/// Members of one channel on a virtual clock, connected by links without delay or loss.
struct ChannelStateWorld {
  struct Node {
    let identity: Identity
    var bootID: UInt64 = 1
    /// The number of its joins, which seeds its generator: no two joins draw the same numbers.
    var lives: UInt64 = 0
    var state: ChannelState
    var events: [ChannelEvent] = []
    var isUp = true
    /// The time at which each of its links last received something.
    var heard = PeerTable<NodeID, Instant>()
    /// The entries that it has output for writing.
    var written: [SignedEntry] = []

    var id: NodeID { identity.id }
  }

  private(set) var nodes: [Node] = []
  private(set) var now = seconds(1)
  private let genesis: SignedGenesis?
  var channel: ChannelID { genesis?.channelID ?? testKey.channelID }
  private var flights: [(from: Int, to: Int, message: Control)] = []
  /// Whether messages are held back instead of delivered.
  private var isHeld = false
  /// Whether commits wait in `writes` for `finishWrites`.
  var isDiskStopped = false
  private(set) var writes: [(index: Int, id: CommitID)] = []

  /// Creates members that have entered and have no links yet; the first owns a created channel.
  init(_ count: Int, settings: ChannelSettings? = nil) {
    let founder = testIdentity(1)
    genesis = settings.map { settings in
      SignedGenesis.sign(
        Genesis(
          owner: founder.id, nonce: [UInt8](repeating: 9, count: Genesis.nonceBytes),
          createdAt: 1000, settings: settings, name: "world"),
        by: founder)
    }
    for index in 0..<count {
      let identity = testIdentity(UInt64(index) + 1)
      let state = state(of: identity, life: 0, bootID: 1, entries: [])
      nodes.append(Node(identity: identity, state: state))
      act(index) { $0.enter(at: $1) }
    }
  }

  /// Links all nodes to each other and delivers the messages that follow from that.
  static func mesh(_ count: Int) -> ChannelStateWorld {
    var world = ChannelStateWorld(count)
    for index in 1..<count { world.connect(index, to: Array(0..<index)) }
    world.run(for: .seconds(2))
    return world
  }

  var ids: [NodeID] { nodes.map(\.id) }
  var upNodes: [Node] { nodes.filter(\.isUp) }
  var agree: Bool { upNodes.allSatisfy { $0.state.digest == upNodes[0].state.digest } }

  private func state(
    of identity: Identity, life: UInt64, bootID: UInt64, entries: [SignedEntry]
  ) -> ChannelState {
    let number = identity.id.key.prefix &+ life
    var setup = ChannelState.Setup(
      identity: identity, channel: channel, genesis: genesis, name: "node", bootID: bootID,
      entropy: .seeded(number), seed: number)
    setup.entries = entries
    return ChannelState(setup)
  }

  // MARK: What people and networks do

  mutating func act(
    _ index: Int, _ body: (inout ChannelState, Instant) -> [ChannelState.Output]
  ) {
    perform(body(&nodes[index].state, now), of: index)
    deliver()
  }

  mutating func startOrJoin(_ index: Int, proposing call: UInt64) {
    act(index) { $0.startOrJoinCall(proposing: callID(call), startedAt: 1000, at: $1) }
  }

  mutating func say(_ index: Int, _ text: String, to receiver: Int? = nil) {
    let receiver = receiver.map { nodes[$0].id }
    act(index) { $0.say(text, to: receiver, at: $1) }
  }

  /// Links a member to others; both ends have the link before a message arrives over it.
  mutating func connect(_ index: Int, to others: [Int]) {
    hold()
    for other in others {
      for (a, b) in [(index, other), (other, index)] {
        let (peer, bootID) = (nodes[b].id, nodes[b].bootID)
        nodes[a].heard[peer] = now
        act(a) { $0.linkUp(peer, bootID: bootID, at: $1) }
      }
    }
    release()
  }

  mutating func disconnect(_ index: Int, from others: [Int], _ reason: LeaveReason) {
    hold()
    for other in others {
      for (a, b) in [(index, other), (other, index)] where nodes[a].isUp {
        end(of: nodes[b].id, at: a, reason)
      }
    }
    release()
  }

  /// Stops a node without a leave; the others have to detect the crash.
  mutating func crash(_ index: Int) { nodes[index].isUp = false }

  /// Lets a member enter the channel again and links it to `others`: as a new process if `bootID`
  /// is new, else as the same one. If it `remembers`, it restores the entries that it has written,
  /// except those that `loses` selects.
  mutating func comeBack(
    _ index: Int, bootID: UInt64, to others: [Int], _ reason: LeaveReason,
    remembers: Bool = false, loses: (SignedEntry) -> Bool = { _ in false }
  ) {
    hold()
    let id = nodes[index].id
    for other in others { end(of: id, at: other, reason) }
    nodes[index].lives += 1
    nodes[index].bootID = bootID
    nodes[index].isUp = true
    nodes[index].heard = PeerTable()
    nodes[index].events = []
    nodes[index].state = state(
      of: nodes[index].identity, life: nodes[index].lives, bootID: bootID,
      entries: remembers ? nodes[index].written.filter { !loses($0) } : [])
    act(index) { $0.enter(at: $1) }
    connect(index, to: others)
    release()
  }

  /// Finishes the pending writes of all disks, with success or failure.
  mutating func finishWrites(isDurable: Bool) {
    isDiskStopped = false
    let due = writes
    writes = []
    for write in due {
      act(write.index) { $0.finish(write.id, isDurable: isDurable, at: $1) }
    }
  }

  mutating func hold() { isHeld = true }

  mutating func release() {
    isHeld = false
    deliver()
  }

  mutating func forgetEvents() {
    for index in nodes.indices { nodes[index].events = [] }
  }

  mutating func run(for duration: Duration) {
    let end = now + duration
    while now < end {
      var due = end
      for node in upNodes { due = min(due, node.state.deadline ?? end) }
      // Advances by at least 1 ms, so that a deadline that `tick` fails to move does not hang the
      // test.
      now = min(end, max(due, now + .milliseconds(1)))
      for index in nodes.indices where nodes[index].isUp { tick(index) }
    }
  }

  // MARK: What follows

  private mutating func tick(_ index: Int) {
    guard let due = nodes[index].state.deadline, due <= now else { return }
    let heard = nodes[index].heard
    act(index) {
      $0.tick(at: $1, lastHeard: { heard[$0] }, roundTrip: { _ in .milliseconds(2) })
    }
  }

  private mutating func end(of peer: NodeID, at index: Int, _ reason: LeaveReason) {
    guard nodes[index].heard[peer] != nil else { return }
    nodes[index].heard[peer] = nil
    act(index) { $0.linkDown(peer, reason: reason, at: $1) }
  }

  private mutating func perform(_ outputs: [ChannelState.Output], of index: Int) {
    for output in outputs {
      switch output {
      case .send(let message, let peer):
        guard let to = nodes.firstIndex(where: { $0.id == peer }) else { continue }
        flights.append((index, to, message))
      case .event(let event): nodes[index].events.append(event)
      case .fail(let peer): end(of: peer, at: index, .crashed)
      case .commit(let entries, let id):
        nodes[index].written += entries
        guard !isDiskStopped else {
          writes.append((index, id))
          continue
        }
        perform(nodes[index].state.finish(id, isDurable: true, at: now), of: index)
      case .keep(let entry): nodes[index].written.append(entry)
      case .delivered, .forget: break
      }
    }
  }

  private mutating func deliver() {
    while !isHeld, !flights.isEmpty {
      let (from, to, message) = flights.removeFirst()
      let peer = nodes[from].id
      guard nodes[from].isUp, nodes[to].isUp, nodes[to].heard[peer] != nil else { continue }
      nodes[to].heard[peer] = now
      if case .ping(let token) = message { flights.append((to, from, .pong(token))) }
      perform(nodes[to].state.receive(message, from: peer, at: now), of: to)
    }
  }
}

extension Array where Element == ChannelEvent {
  var joined: [NodeID] {
    compactMap { if case .memberJoined(let member) = $0 { member.id } else { nil } }
  }

  var left: [(id: NodeID, reason: LeaveReason)] {
    compactMap { if case .memberLeft(let member, let why) = $0 { (member.id, why) } else { nil } }
  }

  var texts: [String] {
    compactMap { if case .message(let message) = $0 { message.text } else { nil } }
  }

  var callEnds: [String] {
    compactMap { if case .callEnded(_, let reason) = $0 { reason } else { nil } }
  }

  var callsStarted: [CallID] {
    compactMap { if case .callStarted(let call) = $0 { call.info.id } else { nil } }
  }

  var handedOverTo: [NodeID] {
    compactMap { if case .callHandedOver(let call) = $0 { call.info.initiator } else { nil } }
  }
}

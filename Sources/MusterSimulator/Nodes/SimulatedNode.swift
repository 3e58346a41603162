import MusterBase
import MusterCore
import MusterCrypto

/// A host with a node on it: what lasts over restarts, and the process of the moment.
struct SimulatedNode: Sendable {
  let place: Int
  let address: Address
  let name: String
  /// Every host has booted at another time: nodes may not compare their clocks.
  let clockOffset: Duration

  var identity: Identity
  /// Counts processes from 1.
  var run = 0
  /// Nil while no process runs.
  var node: Node?
  var source: SyntheticSource
  /// Whether the node wants to be in the channel; false from its leave to its return.
  var isInChannel = false
  /// Whether the last hello, which ends the call for all, must still reach everyone.
  var isEndingCall = false
  var wantsCall: Bool
  /// Whether this node's pictures and sound are switched off.
  var isVideoMuted = false
  var isAudioMuted = false
  /// When the process next wants to be called, in the simulation's time.
  private(set) var wakeAt: Instant?
  /// Calls of `tick` at one point in time.
  private(set) var ticksInPlace = 0
  private var tickedAt: Instant?

  init(
    place: Int, address: Address, name: String, clockOffset: Duration, identity: Identity,
    wantsCall: Bool
  ) {
    self.place = place
    self.address = address
    self.name = name
    self.clockOffset = clockOffset
    self.identity = identity
    self.wantsCall = wantsCall
    source = SyntheticSource(sender: UInt8(place), run: 0, layers: 1)
  }

  var label: String { "n\(place)" }

  /// The simulation's time as this host's boot clock shows it.
  func local(_ now: Instant) -> Instant { now + clockOffset }

  /// Hands the process an input; nothing happens when there is none.
  mutating func call(
    at now: Instant, _ body: (inout Node, Instant) -> [Node.Output]
  ) -> [Node.Output] {
    let clock = local(now)
    guard let (outputs, deadline) = node?.apply({ body(&$0, clock) }) else { return [] }
    wakeAt = deadline.map { max(now, $0.advanced(by: .zero - clockOffset)) }
    return outputs
  }

  /// Calls `tick` and counts how often it was called without time going on.
  mutating func tick(at now: Instant) -> [Node.Output] {
    ticksInPlace = tickedAt == now ? ticksInPlace + 1 : 0
    tickedAt = now
    return call(at: now) { $0.tick(at: $1) }
  }

  mutating func stop() {
    node = nil
    wakeAt = nil
    isInChannel = false
    isEndingCall = false
  }
}

extension Node {
  /// Changes the node in place, which a copy out of an optional and back would not.
  fileprivate mutating func apply(
    _ body: (inout Node) -> [Output]
  ) -> (outputs: [Output], deadline: Instant?) {
    let outputs = body(&self)
    return (outputs, deadline)
  }
}

import MusterBase
import MusterWire

/// Detects neighbours that have stopped answering: SWIM (Das, Gupta, Motivala, DSN 2002) with
/// Lifeguard, over the links of one channel.
///
/// Any authentic datagram is a sign of life, so only quiet links are probed. A neighbour that does
/// not answer is also probed through other neighbours, then suspected, and declared failed after
/// the suspicion timeout. Reports by other neighbours shorten the timeout and trigger a probe at
/// once. A process that was suspended or starved extends its own timeouts first (Lifeguard's local
/// health).
public struct FailureDetector: Sendable {
  /// Intervals and timeouts. Timeouts are multiplied by 1 + `health`.
  public struct Configuration: Sendable, Equatable {
    /// The interval between probes, which go to the neighbours in turn.
    public var probeInterval = Duration.milliseconds(300)
    /// The time after a neighbour's last sign of life during which it is not probed, unless other
    /// neighbours suspect it.
    public var perPeerInterval = Duration.seconds(1)
    /// The time allowed for an answer; twice the round trip time, up to `patienceLimit`, if longer.
    public var probeTimeout = Duration.milliseconds(300)
    /// The upper bound of a timeout derived from round trips, which the neighbour can influence.
    public var patienceLimit = Duration.seconds(1)
    /// The maximum number of neighbours asked to probe a silent neighbour (k of SWIM).
    public var helpers = 3
    /// The time from suspicion to failure when enough other neighbours confirm it (Lifeguard).
    public var suspicionMinimum = Duration.milliseconds(2800)
    /// The time from suspicion to failure without any confirmation.
    public var suspicionMaximum = Duration.seconds(4)
    /// The lateness of a tick beyond which this process counts as having been suspended.
    public var lateness = Duration.milliseconds(400)
    /// The maximum of `health`: S of Lifeguard's local health multiplier, at its default.
    public var healthLimit = 8

    /// Creates the default configuration.
    public init() {}
  }

  /// Probes to send, and changes in the state of neighbours.
  public enum Output: Equatable, Sendable {
    /// Probe a neighbour directly; any authentic datagram from it is an answer.
    case ping(NodeID)
    /// Ask `helper` to ping `target`.
    case ask(helper: NodeID, target: NodeID, token: UInt64)
    /// Report the outcome of an indirect probe of `target` to the node that asked for it.
    case answer(to: NodeID, target: NodeID, token: UInt64, answered: Bool)
    /// The neighbour has not answered a probe in time and is now under suspicion.
    case suspects(NodeID)
    /// The neighbour is no longer under suspicion.
    case clears(NodeID)
    /// The suspicion timeout has passed: the neighbour counts as unreachable.
    case fails(NodeID)
  }

  struct ProbeState: Sendable {
    var upSince: Instant
    /// The time at which the current probe began; nil without a probe.
    var probedAt: Instant?
    var nextPingAt: Instant?
    var hasAskedHelpers = false
    /// The timeout of a probe on this link.
    var patience = Duration.zero
    var suspectedAt: Instant?
    /// The other neighbours that suspect this neighbour or no longer hear it, without duplicates.
    var confirmedBy: [NodeID] = []
    /// The id prefixes of the nodes that this neighbour hears, by its own report.
    var heard: [UInt64] = []
    /// Whether a helper has heard this neighbour, so only this node's path to the neighbour is bad.
    var isHeardByHelpers = false
  }

  /// An indirect probe that this node carries out for another node.
  struct IndirectProbe: Sendable {
    var requester: NodeID
    var target: NodeID
    var token: UInt64
    var since: Instant
    var until: Instant
  }

  static let indirectProbeLimit = 64
  static let indirectProbesPerPeer = 8

  let configuration: Configuration
  var peers = PeerTable<NodeID, ProbeState>()
  var indirectProbes: [IndirectProbe] = []
  /// Lifeguard's local health: 0 is best, and timeouts grow with the value.
  public private(set) var health = 0
  var round: [NodeID] = []
  private var random: PRNG
  var nextProbeAt: Instant?
  private var tokens: UInt64 = 0
  /// The value of `deadline` after the last tick: a late tick means that this process was
  /// suspended.
  private var promised: Instant?

  /// `seed` randomises the times and the order of probes and the choice of helpers.
  public init(seed: UInt64, configuration: Configuration = .init()) {
    self.configuration = configuration
    random = PRNG(seed: seed)
  }

  /// Neighbours under suspicion, sorted by id.
  public var suspected: [NodeID] { peers.filter { $0.value.suspectedAt != nil }.map { $0.key } }

  /// Starts to watch a neighbour, whose link can now be used.
  public mutating func linkUp(_ peer: NodeID, at now: Instant) {
    peers[peer] = ProbeState(upSince: now)
    if nextProbeAt == nil { nextProbeAt = now + configuration.probeInterval }
  }

  /// Stops watching a neighbour, whose link is gone.
  public mutating func linkDown(_ peer: NodeID) {
    peers[peer] = nil
    indirectProbes.removeAll { $0.target == peer || $0.requester == peer }
    for position in 0..<peers.count { peers[at: position].confirmedBy.removeAll { $0 == peer } }
    if peers.isEmpty { (nextProbeAt, promised) = (nil, nil) }
  }

  /// Processes the newest neighbour report of a neighbour.
  public mutating func noted(_ neighbourReport: NeighbourReport, of peer: NodeID, at now: Instant) {
    guard let position = peers.index(of: peer) else { return }
    let before = peers[at: position].heard
    peers[at: position].heard = neighbourReport.heard
    for index in 0..<peers.count where index != position {
      let prefix = peers.keys[index].key.prefix
      let doubts =
        neighbourReport.suspected.contains(prefix)
        || before.contains(prefix) && !neighbourReport.heard.contains(prefix)
      let isKnown = peers[at: index].confirmedBy.contains(peer)
      if doubts, !isKnown {
        peers[at: index].confirmedBy.append(peer)
        // Another node's suspicion triggers a probe; it is not a verdict.
        if peers[at: index].probedAt == nil { beginProbe(index, at: now) }
      } else if !doubts, isKnown, neighbourReport.heard.contains(prefix) {
        peers[at: index].confirmedBy.removeAll { $0 == peer }
      }
    }
  }

  /// Processes a neighbour's request to ping another neighbour.
  public mutating func receiveProbe(
    _ target: NodeID, token: UInt64, from requester: NodeID, at now: Instant
  ) -> [Output] {
    guard peers.index(of: target) != nil, target != requester else {
      return [.answer(to: requester, target: target, token: token, answered: false)]
    }
    let own = indirectProbes.count(where: { $0.requester == requester })
    guard indirectProbes.count < Self.indirectProbeLimit, own < Self.indirectProbesPerPeer else {
      return []
    }
    indirectProbes.append(
      IndirectProbe(
        requester: requester, target: target, token: token, since: now,
        until: now + configuration.probeTimeout))
    return [.ping(target)]
  }

  /// Processes a helper's answer to an indirect probe; a negative answer has no effect.
  public mutating func receiveProbed(
    _ target: NodeID, token: UInt64, answered: Bool, from helper: NodeID, at now: Instant
  ) -> [Output] {
    guard answered, let position = peers.index(of: target), peers.index(of: helper) != nil,
      peers[at: position].probedAt != nil
    else { return [] }
    peers[at: position].isHeardByHelpers = true
    return []
  }

  /// Handles a presence from another run of a neighbour: helpers may hear that run, so their
  /// answers no longer extend the timeout, and the link is probed at once.
  public mutating func heardInAnotherRun(_ peer: NodeID, at now: Instant) {
    guard let position = peers.index(of: peer) else { return }
    peers[at: position].isHeardByHelpers = false
    if peers[at: position].probedAt == nil { beginProbe(position, at: now) }
  }

  private mutating func beginProbe(_ position: Int, at now: Instant) {
    peers[at: position].probedAt = now
    peers[at: position].nextPingAt = now
    peers[at: position].hasAskedHelpers = false
    nextProbeAt = soonest(nextProbeAt, now)
    promised = soonest(promised, now)
  }

  // MARK: Timers

  /// The time at which `tick` is next due; nil without neighbours.
  public var deadline: Instant? { promised ?? nextProbeAt }

  /// Sends due probes and advances suspicions. `lastHeard` is the time of a neighbour's last
  /// authentic datagram.
  public mutating func tick(
    at now: Instant, lastHeard: (NodeID) -> Instant?, roundTrip: (NodeID) -> Duration?
  ) -> [Output] {
    guard !peers.isEmpty else { return [] }
    var out: [Output] = []
    if let promised, now - promised > configuration.lateness { exempt(at: now) }
    report(at: now, lastHeard, &out)
    for position in 0..<peers.count { watch(position, at: now, lastHeard, roundTrip, &out) }
    if let due = nextProbeAt, due <= now { probeNext(at: now, lastHeard, &out) }
    promised = nextDeadline
    return out
  }

  /// Restarts all timeouts after this process was suspended: silence during that time does not
  /// count against neighbours.
  private mutating func exempt(at now: Instant) {
    health = min(health + 1, configuration.healthLimit)
    for position in 0..<peers.count {
      if peers[at: position].probedAt != nil { peers[at: position].probedAt = now }
      if peers[at: position].suspectedAt != nil { peers[at: position].suspectedAt = now }
      peers[at: position].nextPingAt = now
    }
  }

  /// Answers the neighbours that requested indirect probes.
  private mutating func report(
    at now: Instant, _ lastHeard: (NodeID) -> Instant?, _ out: inout [Output]
  ) {
    for indirectProbe in indirectProbes {
      let answered = lastHeard(indirectProbe.target).map { $0 > indirectProbe.since } ?? false
      guard answered || indirectProbe.until <= now else { continue }
      out.append(
        .answer(
          to: indirectProbe.requester, target: indirectProbe.target, token: indirectProbe.token,
          answered: answered))
    }
    indirectProbes.removeAll { indirectProbe in
      indirectProbe.until <= now
        || lastHeard(indirectProbe.target).map { $0 > indirectProbe.since } ?? false
    }
  }

  /// Advances the probe or suspicion of one neighbour.
  private mutating func watch(
    _ position: Int, at now: Instant, _ lastHeard: (NodeID) -> Instant?,
    _ roundTrip: (NodeID) -> Duration?, _ out: inout [Output]
  ) {
    guard let since = peers[at: position].probedAt else { return }
    let id = peers.keys[position]
    if let heard = lastHeard(id), heard > since {
      recompute(position, &out)
      return
    }
    if let due = peers[at: position].nextPingAt, due <= now {
      peers[at: position].nextPingAt = now + configuration.probeInterval
      out.append(.ping(id))
    }
    // A neighbour can influence its measured round trip, so the timeout derived from it is limited.
    let expected = min((roundTrip(id) ?? .zero) * 2, configuration.patienceLimit)
    // Rounded to whole nanoseconds, as instants are; otherwise a deadline could be too early.
    let patience = Duration.nanoseconds(
      (max(configuration.probeTimeout, expected) * (health + 1)).wholeNanoseconds)
    peers[at: position].patience = patience
    guard peers[at: position].suspectedAt != nil || now - since >= patience else { return }
    if !peers[at: position].hasAskedHelpers { askHelpers(position, &out) }
    guard let suspectedAt = peers[at: position].suspectedAt else {
      peers[at: position].suspectedAt = now
      out.append(.suspects(id))
      return
    }
    guard now - suspectedAt >= suspicionTimeout(position) else { return }
    out.append(.fails(id))
    // Restarting the timeout keeps `fails` from being repeated before the host takes the link down.
    peers[at: position].suspectedAt = now
  }

  /// Ends the probe and the suspicion of a neighbour that has answered.
  private mutating func recompute(_ position: Int, _ out: inout [Output]) {
    let wasSuspected = peers[at: position].suspectedAt != nil
    peers[at: position].probedAt = nil
    peers[at: position].nextPingAt = nil
    peers[at: position].suspectedAt = nil
    peers[at: position].hasAskedHelpers = false
    peers[at: position].isHeardByHelpers = false
    health = max(health - 1, 0)
    if wasSuspected { out.append(.clears(peers.keys[position])) }
  }

  private func suspicionTimeout(_ position: Int) -> Duration {
    // The neighbour runs but the path is bad: its link gets more time, up to a bound.
    if peers[at: position].isHeardByHelpers { return configuration.suspicionMaximum * (health + 2) }
    return Suspicion.timeout(
      confirmations: peers[at: position].confirmedBy.count, expected: min(3, peers.count - 2),
      minimum: configuration.suspicionMinimum, maximum: configuration.suspicionMaximum)
      * (health + 1)
  }

  private mutating func askHelpers(_ position: Int, _ out: inout [Output]) {
    let target = peers.keys[position]
    peers[at: position].hasAskedHelpers = true
    var helpers: [NodeID] = []
    for index in 0..<peers.count where index != position && peers[at: index].suspectedAt == nil {
      if peers[at: index].heard.contains(target.key.prefix) { helpers.append(peers.keys[index]) }
    }
    for _ in 0..<min(configuration.helpers, helpers.count) {
      tokens &+= 1
      let helper = helpers.remove(at: random.below(helpers.count))
      out.append(.ask(helper: helper, target: target, token: tokens))
    }
  }

  /// Probes the next quiet neighbour in turn.
  private mutating func probeNext(
    at now: Instant, _ lastHeard: (NodeID) -> Instant?, _ out: inout [Output]
  ) {
    nextProbeAt = now + random.jittered(configuration.probeInterval, by: 0.1)
    for _ in 0..<peers.count {
      guard let id = nextInTurn(), let position = peers.index(of: id) else { continue }
      let heard = lastHeard(id) ?? peers[at: position].upSince
      guard peers[at: position].probedAt == nil, now - heard >= configuration.perPeerInterval else {
        continue
      }
      peers[at: position].probedAt = now
      peers[at: position].hasAskedHelpers = false
      peers[at: position].nextPingAt = now + configuration.probeInterval
      out.append(.ping(id))
      return
    }
  }

  /// The next neighbour of the current round; every round visits each neighbour once, in a new
  /// random order (SWIM, section 4.3).
  private mutating func nextInTurn() -> NodeID? {
    if round.isEmpty {
      var left = peers.keys
      while !left.isEmpty { round.append(left.remove(at: random.below(left.count))) }
    }
    return round.popLast()
  }

  private var nextDeadline: Instant? {
    var next = nextProbeAt
    for position in 0..<peers.count {
      guard let since = peers[at: position].probedAt else { continue }
      next = soonest(next, peers[at: position].nextPingAt)
      if let suspectedAt = peers[at: position].suspectedAt {
        next = soonest(next, suspectedAt + suspicionTimeout(position))
      } else {
        next = soonest(next, since + max(peers[at: position].patience, configuration.probeTimeout))
      }
    }
    for indirectProbe in indirectProbes { next = soonest(next, indirectProbe.until) }
    return next
  }
}

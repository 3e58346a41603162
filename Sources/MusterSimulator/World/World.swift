import MusterBase
import MusterCore
import MusterCrypto

/// A simulated network driven by the virtual clock.
protocol VirtualNetwork: Sendable {
  associatedtype Delivery
  /// The time at which the next datagram arrives; nil if no datagram is in flight.
  var deadline: Instant? { get }
  /// Removes and returns the datagrams due by `now`, in order of arrival.
  mutating func tick(at now: Instant) -> [Delivery]
}

extension Network: VirtualNetwork {}
extension Internet: VirtualNetwork {}

/// The common part of the simulations of nodes: nodes, their disks, a network and planned
/// events on one virtual clock.
///
/// In each step datagrams arrive, disks finish writes, planned events happen, nodes whose deadlines
/// have passed are ticked, and the checkers examine the result. Events of equal time happen in the
/// order in which they were planned, and nodes act in the order of their indices, so the seed
/// determines everything.
protocol World {
  associatedtype Event
  associatedtype Net: VirtualNetwork

  var now: Instant { get set }
  var queue: EventQueue<Event> { get set }
  var network: Net { get set }
  var nodes: [SimulatedNode] { get set }
  var timeline: Timeline { get set }
  var violation: Violation? { get set }
  var isFinished: Bool { get set }
  /// The checkers that run after every step.
  var checkers: [StepChecker] { get }
  /// The deadline of `tickOthers`; nil for none.
  var otherDeadline: Instant? { get }

  mutating func deliver(_ arrived: Net.Delivery)
  mutating func handle(_ event: Event)
  mutating func perform(_ outputs: [Node.Output], of index: Int)
  /// Handles a finished disk job, which has been applied unless it failed.
  mutating func written(_ job: Disk.Job, at index: Int)
  /// Whether a finished disk job is reported as durable to the node that requested the write.
  func isReportedDurable(_ job: Disk.Job) -> Bool
  /// Performs the work that is due at `otherDeadline`.
  mutating func tickOthers()
}

/// A check of one node after each step in which the node acted.
struct StepChecker: Sendable {
  /// The name of the checker in violations.
  let name: String
  let fault: @Sendable (_ node: SimulatedNode) -> String?

  /// Checks that a node makes progress: a node that repeatedly requests a tick at the same time
  /// would spin.
  static let progress = StepChecker(name: "progress") { simulated in
    simulated.ticksInPlace > ticksInPlace ? "asks to be called without end" : nil
  }

  /// Checks the invariants of the engines of a node; patched nodes are exempt.
  static let invariants = StepChecker(name: "invariants") { simulated in
    simulated.isLawless ? nil : simulated.process?.checkInvariants().first
  }

  static let ticksInPlace = 100
}

extension World {
  func isReportedDurable(_ job: Disk.Job) -> Bool { !job.fails }

  /// Runs until the end or the first violation.
  mutating func drive() {
    while !isFinished, violation == nil, let next = nextTime {
      now = max(now, next)
      for delivery in network.tick(at: now) { deliver(delivery) }
      for index in nodes.indices { finishWrites(of: index) }
      while violation == nil, let event = queue.popDue(at: now) { handle(event) }
      for index in nodes.indices {
        guard let wake = nodes[index].wakeAt, wake <= now else { continue }
        perform(nodes[index].tick(at: now), of: index)
      }
      tickOthers()
      checkStep()
    }
  }

  /// Passes an input to a node and executes the resulting outputs.
  mutating func input(_ index: Int, _ body: (inout Node, Instant) -> [Node.Output]) {
    perform(nodes[index].call(at: now, body), of: index)
  }

  private var nextTime: Instant? {
    var next = soonest(soonest(network.deadline, queue.deadline), otherDeadline)
    for index in nodes.indices {
      next = soonest(next, soonest(nodes[index].wakeAt, nodes[index].disk.deadline))
    }
    return next
  }

  private mutating func finishWrites(of index: Int) {
    while violation == nil, let job = nodes[index].disk.finish(at: now) {
      written(job, at: index)
      guard let commit = job.commit, job.run == nodes[index].run else { continue }
      let isDurable = isReportedDurable(job)
      perform(nodes[index].finish(commit, isDurable: isDurable, at: now), of: index)
    }
  }

  private mutating func checkStep() {
    for index in nodes.indices where nodes[index].takeHasActed() {
      for checker in checkers {
        if let fault = checker.fault(nodes[index]) {
          violated(checker.name, "\(nodes[index].label): \(fault)")
        }
      }
    }
  }

  /// Submits the writes of a node to its host's disk, first the changes that the node does not wait
  /// for. As in a real process, users see messages only after the write. `writers` is as in
  /// `Disk.Job`.
  mutating func submit(_ writes: NodeWrites, of index: Int, writers: [NodeID]? = nil) {
    let run = nodes[index].run
    var job = Disk.Job(
      changes: writes.changes.map(\.change), messages: writes.messages.map(\.message),
      writers: writers, run: run)
    if writes.showsOnlyMessages(of: nodes[index].identity.id) {
      nodes[index].disk.submit(
        Disk.Job(changes: [], messages: job.messages, writers: writers, run: run), at: now)
      job.messages = []
      job.isAlreadyShown = true
    }
    if !job.changes.isEmpty || !job.messages.isEmpty { nodes[index].disk.submit(job, at: now) }
    for commit in writes.commits {
      nodes[index].disk.submit(
        Disk.Job(changes: commit.changes, commit: commit.id, run: run), at: now)
    }
  }

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
}

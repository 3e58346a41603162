import MusterBase
import MusterCore

/// A network on the virtual clock.
protocol VirtualNetwork: Sendable {
  associatedtype Delivery
  /// When the next datagram arrives; nil while none is on its way.
  var deadline: Instant? { get }
  /// The datagrams that arrive by `now`, in the order of their arrival.
  mutating func tick(at now: Instant) -> [Delivery]
}

extension Network: VirtualNetwork {}
extension Internet: VirtualNetwork {}

/// Nodes, their disks, a network and planned events on one virtual clock: what both simulations
/// have in common.
///
/// One step: datagrams arrive, disks finish writes, planned events happen, nodes whose time has
/// come are ticked, and the checkers look at the result. Events of one time come in the order in
/// which they were planned, nodes in the order of their indices, so that a seed decides everything.
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
  /// When something else of this world is next due.
  var otherDeadline: Instant? { get }

  mutating func deliver(_ arrived: Net.Delivery)
  mutating func handle(_ event: Event)
  mutating func perform(_ outputs: [Node.Output], of index: Int)
  /// A disk has finished a job, which is applied if it did not fail.
  mutating func written(_ job: Disk.Job, at index: Int)
  /// The outcome of a disk job as reported to the node that requested it.
  func isReportedDurable(_ job: Disk.Job) -> Bool
  /// Does what else is due.
  mutating func tickOthers()
}

/// Looks at one node after a step that it took part in; nil when all is well.
struct StepChecker: Sendable {
  /// As violations name it.
  let name: String
  let fault: @Sendable (_ node: SimulatedNode) -> String?

  /// A node that asks to be called again and again without time passing would spin.
  static let progress = StepChecker(name: "progress") { simulated in
    simulated.ticksInPlace > ticksInPlace ? "asks to be called without end" : nil
  }

  /// The state of every engine fits together.
  static let invariants = StepChecker(name: "invariants") { simulated in
    simulated.isLawless ? nil : simulated.process?.checkInvariants().first
  }

  static let ticksInPlace = 100
}

extension World {
  func isReportedDurable(_ job: Disk.Job) -> Bool { !job.fails }

  /// Runs until the end, or until something happened that may not.
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

  /// Puts what a node asks to write onto its host's disk, the changes that need not be waited for
  /// first. Messages are shown to people once they are written, as a real process does.
  mutating func submit(_ writes: NodeWrites, of index: Int) {
    let run = nodes[index].run
    if !writes.changes.isEmpty {
      nodes[index].disk.submit(
        Disk.Job(changes: writes.changes, messages: writes.messages, run: run), at: now)
    }
    for (changes, commit) in writes.commits {
      nodes[index].disk.submit(
        Disk.Job(changes: changes, commit: commit, run: run), at: now)
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

import MusterBase
import MusterDevices
import Synchronization

/// How long a gateway may be asked.
package struct PortQuestion: Sendable {
  package var deadline: Instant
  /// Whether the node is ending: nothing more may be asked for, since nobody would take it back.
  package var isCancelled: @Sendable () -> Bool

  /// To be read directly before every request.
  package var isOver: Bool { isCancelled() || BootClock.now >= deadline }

  /// The same question, but not beyond another instant.
  package func until(_ instant: Instant) -> PortQuestion {
    PortQuestion(deadline: min(deadline, instant), isCancelled: isCancelled)
  }
}

/// Resumes who waits with the first of several answers.
package final class PortAnswer: Sendable {
  package typealias Waiting = CheckedContinuation<PortMapping?, Never>

  private let waiting: Mutex<Waiting?>

  package init(_ waiting: Waiting) { self.waiting = Mutex(waiting) }

  /// Who waits, for the first who claims it, and who has to resume it then.
  package func claim() -> Waiting? {
    waiting.withLock { waiting in
      defer { waiting = nil }
      return waiting
    }
  }
}

/// What one mapper knows from one question to the next.
package final class PortMemory: Sendable {
  private struct Known {
    package var isBusy = false
    package var isCancelled = false
    /// Nobody takes back any more what is made from now on.
    package var isClosed = false
    /// Hears of the end of the question under way.
    package var closing: PortAnswer?
    package var found: (service: UPnP.Service, route: DefaultRoute)?
    package var made: PortMapping?
  }

  private let known = Mutex(Known())

  // MARK: Questions

  /// False while an earlier question has not come to its end, and once the node is ending.
  package func begin() -> Bool {
    known.withLock { known in
      guard !known.isBusy, !known.isCancelled else { return false }
      known.isBusy = true
      return true
    }
  }

  package func end() {
    let closing = known.withLock { known in
      known.isBusy = false
      return known.closing
    }
    closing?.claim()?.resume(returning: nil)
  }

  package var isCancelled: Bool { known.withLock { $0.isCancelled } }

  /// Has nothing more asked; `answer` is resumed when no question is under way.
  package func cancel(_ answer: PortAnswer) {
    let isBusy = known.withLock { known in
      known.isCancelled = true
      known.closing = answer
      return known.isBusy
    }
    if !isBusy { answer.claim()?.resume(returning: nil) }
  }

  /// From now on whoever gets a mapping takes it back; gives the one that there is.
  package func close() -> PortMapping? {
    known.withLock { known in
      defer { known.made = nil }
      known.isClosed = true
      return known.made
    }
  }

  // MARK: Answers

  /// The service found behind this route, and no other.
  package func service(of route: DefaultRoute) -> UPnP.Service? {
    known.withLock { $0.found?.route == route ? $0.found?.service : nil }
  }

  package func remember(_ service: UPnP.Service?, of route: DefaultRoute) {
    known.withLock { $0.found = service.map { ($0, route) } }
  }

  /// The mapping got last: another port than that one would be a second door.
  package var made: PortMapping? { known.withLock { $0.made } }

  /// False if the mapper was closed meanwhile: then it has to be taken back.
  package func keep(_ mapping: PortMapping) -> Bool {
    known.withLock { known in
      guard !known.isClosed else { return false }
      known.made = mapping
      return true
    }
  }

  package func forget(_ mapping: PortMapping) {
    known.withLock { if $0.made?.outside == mapping.outside { $0.made = nil } }
  }
}

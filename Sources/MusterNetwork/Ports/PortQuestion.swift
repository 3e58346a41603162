import MusterBase
import MusterSystem
import Synchronization

/// The deadline and cancellation of a series of requests to a gateway.
package struct PortQuestion: Sendable {
  /// The time at which to give up.
  package var deadline: Instant
  /// Whether the node is stopping; a mapping granted now might never be deleted.
  package var isCancelled: @Sendable () -> Bool

  /// Whether the deadline has passed or the node is stopping; checked before every request.
  package var isOver: Bool { isCancelled() || BootClock.now >= deadline }

  /// A copy whose deadline is the earlier of `deadline` and `instant`.
  package func until(_ instant: Instant) -> PortQuestion {
    PortQuestion(deadline: min(deadline, instant), isCancelled: isCancelled)
  }
}

/// Resumes a continuation with the first of several answers.
package final class PortAnswer: Sendable {
  /// The continuation of `map()`.
  package typealias Waiting = CheckedContinuation<PortMapping?, Never>

  private let waiting: Mutex<Waiting?>

  /// Creates an answer for a continuation that has not been resumed.
  package init(_ waiting: Waiting) { self.waiting = Mutex(waiting) }

  /// Returns the continuation to the first caller, which must resume it; nil to later callers.
  package func claim() -> Waiting? {
    waiting.withLock { waiting in
      defer { waiting = nil }
      return waiting
    }
  }
}

/// The state that a mapper keeps between requests. Thread-safe.
package final class PortMemory: Sendable {
  private struct Known {
    /// Whether a request is under way.
    var isBusy = false
    /// True once `cancel` has been called: no further request may start.
    var isCancelled = false
    /// Whether mappings granted from now on must be deleted by the receiver of the answer.
    var isClosed = false
    /// The answer to resume when the request under way has ended.
    var closing: PortAnswer?
    /// The UPnP service found, and the route it was found on.
    var found: (service: UPnP.Service, route: DefaultRoute)?
    /// The current mapping.
    var made: PortMapping?
  }

  private let known = Mutex(Known())

  // MARK: Requests

  /// Reserves the mapper for a request; false while another request is under way, and after
  /// `cancel`.
  package func begin() -> Bool {
    known.withLock { known in
      guard !known.isBusy, !known.isCancelled else { return false }
      known.isBusy = true
      return true
    }
  }

  /// Ends the request permitted by `begin`.
  package func end() {
    let closing = known.withLock { known in
      known.isBusy = false
      return known.closing
    }
    closing?.claim()?.resume(returning: nil)
  }

  /// Whether `cancel` has been called.
  package var isCancelled: Bool { known.withLock { $0.isCancelled } }

  /// Allows no further requests; resumes `answer` once no request is under way.
  package func cancel(_ answer: PortAnswer) {
    let isBusy = known.withLock { known in
      known.isCancelled = true
      known.closing = answer
      return known.isBusy
    }
    if !isBusy { answer.claim()?.resume(returning: nil) }
  }

  /// Ends the mapper and returns the current mapping, if any. A mapping granted later must be
  /// deleted by its receiver.
  package func close() -> PortMapping? {
    known.withLock { known in
      defer { known.made = nil }
      known.isClosed = true
      return known.made
    }
  }

  // MARK: Answers

  /// The service found on exactly this route; nil if none is stored.
  package func service(of route: DefaultRoute) -> UPnP.Service? {
    known.withLock { $0.found?.route == route ? $0.found?.service : nil }
  }

  /// Stores the service found on a route; nil clears it.
  package func remember(_ service: UPnP.Service?, of route: DefaultRoute) {
    known.withLock { $0.found = service.map { ($0, route) } }
  }

  /// The current mapping, renewed with the same external port so that no second port is opened.
  package var made: PortMapping? { known.withLock { $0.made } }

  /// Stores a new mapping; false if the mapper was closed meanwhile and the mapping must be
  /// deleted.
  package func keep(_ mapping: PortMapping) -> Bool {
    known.withLock { known in
      guard !known.isClosed else { return false }
      known.made = mapping
      return true
    }
  }

  /// Clears the current mapping if its external address is that of `mapping`.
  package func forget(_ mapping: PortMapping) {
    known.withLock { if $0.made?.outside == mapping.outside { $0.made = nil } }
  }
}

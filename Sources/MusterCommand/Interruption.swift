import Dispatch
import MusterSystem
import Synchronization

/// The signals by which a user ends a command: SIGINT (Ctrl-C), SIGTERM, and SIGHUP, which means
/// that the terminal is gone, where it was not ignored from the start (by nohup).
package enum Interruption {
  private static let state = Atomic(false)
  /// They live as long as the process, and only `catchSignals` uses them.
  nonisolated(unsafe) private static let sources =
    ([SIGINT, SIGTERM] + (isIgnored(SIGHUP) ? [] : [SIGHUP])).map {
      DispatchSource.makeSignalSource(signal: $0, queue: .global())
    }

  private static func isIgnored(_ signal: Int32) -> Bool {
    var current = sigaction()
    return sigaction(signal, nil, &current) == 0
      && unsafeBitCast(current.__sigaction_handler.sa_handler, to: Int.self)
        == unsafeBitCast(SIG_IGN, to: Int.self)
  }

  /// Whether a signal has arrived since `catchSignals`.
  package static var isRequested: Bool { state.load(ordering: .relaxed) }

  /// Lets the signals request the end, in place of ending the process; the first one calls `action`
  /// on a thread of Dispatch. They are caught when this returns. A command calls it once.
  package static func catchSignals(then action: @escaping @Sendable () -> Void = {}) {
    for source in sources {
      let isCaught = DispatchSemaphore(value: 0)
      source.setRegistrationHandler { isCaught.signal() }
      source.setEventHandler {
        if !state.exchange(true, ordering: .relaxed) { action() }
      }
      source.activate()
      isCaught.wait()
    }
  }
}

import MusterBase
import MusterSystem

/// The timers of a node: one for its next deadline, and those that repeat. Confined to the event
/// loop, and cancelled with this object, wherever that is released.
final class NodeTimers {
  private let loop: PollLoop
  private var wake: PollLoop.Timer?
  private var repeated: [PollLoop.Timer] = []
  /// The numbers of wake-ups by reason.
  private(set) var wakes = WakeCounters()

  init(on loop: PollLoop) { self.loop = loop }

  deinit { cancel() }

  /// Sets what is called at the next deadline.
  func begin(_ body: @escaping @Sendable () -> Void) { wake = loop.timer(body) }

  /// Wakes the node at `due`, in place of the time set before; nil for never.
  func wake(at due: Instant?) { wake?.set(due) }

  /// Notes that the node was woken, with what the node had to do next.
  func woke(for reason: Wake?, at now: Instant) {
    wakes.count(reason, at: now)
  }

  /// Calls `body` on the loop every `seconds`.
  func every(_ seconds: Int64, _ body: @escaping @Sendable () -> Void) {
    repeated.append(loop.every(.seconds(seconds), body))
  }

  func cancelRepeated() {
    for task in repeated { task.cancel() }
    repeated = []
  }

  /// Cancels all timers for good.
  func cancel() {
    cancelRepeated()
    wake?.cancel()
  }
}

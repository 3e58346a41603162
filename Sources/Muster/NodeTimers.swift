import MusterBase
import NIOCore

/// The timers of a node: one for its next deadline, and those that repeat. Confined to the event
/// loop, and cancelled with this object, wherever that is released.
final class NodeTimers {
  private let loop: any EventLoop
  private var wake: Scheduled<Void>?
  private var wakesAt: Instant?
  private var isCancelled = false
  private var repeated: [RepeatedTask] = []
  /// The numbers of wake-ups by reason.
  private(set) var wakes = WakeCounters()

  init(on loop: any EventLoop) { self.loop = loop }

  deinit { cancel() }

  /// Whether a timer has to be set, because none is for `due` or earlier.
  func needsWake(at due: Instant) -> Bool { !isCancelled && wakesAt.map { $0 > due } ?? true }

  /// Calls `body` on the loop at `due`, in place of the time set before.
  func wake(at due: Instant, now: Instant, _ body: @escaping @Sendable () -> Void) {
    wake?.cancel()
    wakesAt = due
    wake = loop.scheduleTask(in: .nanoseconds(max(0, (due - now).wholeNanoseconds)), body)
  }

  /// Notes that the node was woken, with what the node had to do next.
  func woke(for reason: Wake?, at now: Instant) {
    wakesAt = nil
    wakes.count(reason, at: now)
  }

  /// Calls `body` on the loop every `seconds`.
  func every(_ seconds: Int64, _ body: @escaping @Sendable () -> Void) {
    let interval = TimeAmount.seconds(seconds)
    let task = loop.scheduleRepeatedTask(initialDelay: interval, delay: interval) { _ in body() }
    repeated.append(task)
  }

  func cancelRepeated() {
    for task in repeated { task.cancel() }
    repeated = []
  }

  /// Cancels all timers for good.
  func cancel() {
    isCancelled = true
    cancelRepeated()
    wake?.cancel()
  }
}

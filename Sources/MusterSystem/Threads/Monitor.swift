import Glibc
import MusterBase

/// A mutex with a condition variable: state shared between threads, which can wait for its changes.
///
/// The state of the node needs no monitor, because only its event loop accesses that state.
package final class Monitor<State>: @unchecked Sendable {
  private let mutex = UnsafeMutablePointer<pthread_mutex_t>.allocate(capacity: 1)
  private let condition = UnsafeMutablePointer<pthread_cond_t>.allocate(capacity: 1)
  private var state: State

  /// Creates a monitor with this initial state.
  package init(_ state: State) {
    self.state = state
    pthread_mutex_init(mutex, nil)
    var attributes = pthread_condattr_t()
    pthread_condattr_init(&attributes)
    pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC)
    pthread_cond_init(condition, &attributes)
    pthread_condattr_destroy(&attributes)
  }

  deinit {
    pthread_cond_destroy(condition)
    pthread_mutex_destroy(mutex)
    condition.deallocate()
    mutex.deallocate()
  }

  /// Accesses the state under the lock and wakes all waiting threads.
  package func withLock<Result>(_ body: (inout State) -> Result) -> Result {
    pthread_mutex_lock(mutex)
    defer {
      pthread_cond_broadcast(condition)
      pthread_mutex_unlock(mutex)
    }
    return body(&state)
  }

  /// Blocks until `body`, called now and after every change, returns a result.
  package func wait<Result>(_ body: (inout State) -> Result?) -> Result {
    pthread_mutex_lock(mutex)
    defer { pthread_mutex_unlock(mutex) }
    while true {
      if let result = body(&state) { return result }
      pthread_cond_wait(condition, mutex)
    }
  }

  /// As `wait`, but returns nil once the time that `limit` gives has come; `limit` is called after
  /// every change, too, and nil waits for as long as it takes.
  package func wait<Result>(
    until limit: (State) -> Instant?, _ body: (inout State) -> Result?
  ) -> Result? {
    pthread_mutex_lock(mutex)
    defer { pthread_mutex_unlock(mutex) }
    while true {
      if let result = body(&state) { return result }
      guard let end = limit(state) else {
        pthread_cond_wait(condition, mutex)
        continue
      }
      let left = (end - BootClock.now).wholeNanoseconds
      guard left > 0 else { return nil }
      var time = timespec()
      clock_gettime(CLOCK_MONOTONIC, &time)
      let nanoseconds = Int64(time.tv_nsec) + min(left, 3_600_000_000_000)
      time.tv_sec += Int(nanoseconds / 1_000_000_000)
      time.tv_nsec = Int(nanoseconds % 1_000_000_000)
      pthread_cond_timedwait(condition, mutex, &time)
    }
  }
}

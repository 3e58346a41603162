import CMusterSystem
import Glibc

/// A thread for blocking work, such as that of devices, codecs and files. It frees what it holds
/// when it ends, whether anything waits for its end or not.
package final class WorkerThread: Sendable {
  private let ending = Ending()

  /// Starts `body` on a thread of this name, which the kernel truncates to 15 characters.
  @discardableResult
  package init(_ name: String, _ body: @escaping @Sendable () -> Void) {
    let start = Unmanaged.passRetained(Start(name, ending, body))
    var handle = pthread_t()
    let failure = pthread_create(
      &handle, nil,
      { raw in
        guard let raw else { return nil }
        WorkerThread.run(Unmanaged<Start>.fromOpaque(raw).takeRetainedValue())
        return nil
      }, start.toOpaque())
    precondition(failure == 0, "the system has no more threads")
    pthread_detach(handle)
  }

  /// Waits until `body` has returned, without blocking a thread.
  package func ended() async { await ending.wait() }

  /// Lets the other threads of this process, such as those of audio, run before the calling one
  /// where the CPU is short.
  package static func lowerPriority() { muster_thread_lower_priority() }

  private static func run(_ start: Start) {
    muster_thread_name(start.name)
    start.body?()
    start.body = nil  // frees what it holds before its end is known
    start.ending.reached()
  }

  /// Runs `body` on a new thread and returns its value. If the task is cancelled, `cancel` is
  /// called, after which `body` must soon return.
  package static func value<Value: Sendable>(
    _ name: String, cancel: @escaping @Sendable () -> Void = {},
    of body: @escaping @Sendable () -> Value
  ) async -> Value {
    await withTaskCancellationHandler {
      await withCheckedContinuation { continuation in
        WorkerThread(name) { continuation.resume(returning: body()) }
      }
    } onCancel: {
      cancel()
    }
  }

  /// Runs `body` on a new thread; nil if that takes longer than `limit`. The thread then continues
  /// until `body` returns, so callers must limit the number of such threads.
  package static func result<Result: Sendable>(
    _ name: String, within limit: Duration, of body: @escaping @Sendable () -> Result
  ) async -> Result? {
    let (results, arrival) = AsyncStream<Result>.makeStream(bufferingPolicy: .bufferingOldest(1))
    WorkerThread(name) {
      arrival.yield(body())
      arrival.finish()
    }
    let timer = Task {
      try await Task.sleep(for: limit)
      arrival.finish()
    }
    defer { timer.cancel() }
    return await results.first { _ in true }
  }

  private final class Start {
    let name: String
    let ending: Ending
    var body: (@Sendable () -> Void)?

    init(_ name: String, _ ending: Ending, _ body: @escaping @Sendable () -> Void) {
      self.name = name
      self.ending = ending
      self.body = body
    }
  }
}

/// The end of a thread, for tasks that wait for it.
private final class Ending: Sendable {
  private struct State {
    var isReached = false
    var waiters: [CheckedContinuation<Void, Never>] = []
  }

  private let state = Monitor(State())

  func reached() {
    let waiters = state.withLock { state in
      state.isReached = true
      defer { state.waiters = [] }
      return state.waiters
    }
    for waiter in waiters { waiter.resume() }
  }

  func wait() async {
    await withCheckedContinuation { continuation in
      let isReached = state.withLock { state in
        if !state.isReached { state.waiters.append(continuation) }
        return state.isReached
      }
      if isReached { continuation.resume() }
    }
  }
}

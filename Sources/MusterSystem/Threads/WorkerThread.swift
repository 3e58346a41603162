import CMusterSystem
import Glibc

/// A thread for blocking work, such as that of devices, codecs and files.
package final class WorkerThread: @unchecked Sendable {
  private var handle = pthread_t()

  /// Starts `body` on a thread of this name, which the kernel truncates to 15 characters.
  package init(_ name: String, _ body: @escaping @Sendable () -> Void) {
    let start = Unmanaged.passRetained(Start(name, body))
    let failure = pthread_create(
      &handle, nil,
      { raw in
        guard let raw else { return nil }
        let start = Unmanaged<Start>.fromOpaque(raw).takeRetainedValue()
        muster_thread_name(start.name)
        start.body()
        return nil
      }, start.toOpaque())
    precondition(failure == 0, "the system has no more threads")
  }

  /// Blocks until the thread has ended; call once.
  package func join() { pthread_join(handle, nil) }

  /// Lets the thread release its resources when it ends; used instead of `join`.
  package func detach() { pthread_detach(handle) }

  /// Runs `body` on a new thread; nil if that takes longer than `limit`. The thread then continues
  /// until `body` returns, so callers must limit the number of such threads.
  package static func result<Result: Sendable>(
    _ name: String, within limit: Duration, of body: @escaping @Sendable () -> Result
  ) async -> Result? {
    let (results, arrival) = AsyncStream<Result>.makeStream(bufferingPolicy: .bufferingOldest(1))
    WorkerThread(name) {
      arrival.yield(body())
      arrival.finish()
    }.detach()
    let timer = Task {
      try await Task.sleep(for: limit)
      arrival.finish()
    }
    defer { timer.cancel() }
    return await results.first { _ in true }
  }

  private final class Start {
    let name: String
    let body: @Sendable () -> Void

    init(_ name: String, _ body: @escaping @Sendable () -> Void) {
      self.name = name
      self.body = body
    }
  }
}

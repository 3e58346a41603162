import CMusterShims
import Glibc

/// State that several threads share, and that a thread can wait on.
///
/// For the media threads only: the node itself lives on its event loop and takes no lock.
final class Monitor<State>: @unchecked Sendable {
  private let mutex = UnsafeMutablePointer<pthread_mutex_t>.allocate(capacity: 1)
  private let condition = UnsafeMutablePointer<pthread_cond_t>.allocate(capacity: 1)
  private var state: State

  init(_ state: State) {
    self.state = state
    pthread_mutex_init(mutex, nil)
    pthread_cond_init(condition, nil)
  }

  deinit {
    pthread_cond_destroy(condition)
    pthread_mutex_destroy(mutex)
    condition.deallocate()
    mutex.deallocate()
  }

  /// Reads or changes the state and wakes whoever waits.
  func withLock<Result>(_ body: (inout State) -> Result) -> Result {
    pthread_mutex_lock(mutex)
    defer {
      pthread_cond_broadcast(condition)
      pthread_mutex_unlock(mutex)
    }
    return body(&state)
  }

  /// Calls `body` now and after every change until it gives a result.
  func wait<Result>(_ body: (inout State) -> Result?) -> Result {
    pthread_mutex_lock(mutex)
    defer { pthread_mutex_unlock(mutex) }
    while true {
      if let result = body(&state) { return result }
      pthread_cond_wait(condition, mutex)
    }
  }
}

/// A queue between threads that never blocks who adds: when full, the oldest element goes.
final class BoundedQueue<Element: Sendable>: Sendable {
  private struct Contents {
    var elements: [Element] = []
    var isClosed = false
    var dropped: UInt64 = 0
  }

  private let capacity: Int
  private let contents: Monitor<Contents>

  init(capacity: Int) {
    precondition(capacity > 0)
    self.capacity = capacity
    contents = Monitor(Contents())
  }

  func add(_ element: Element) {
    contents.withLock {
      guard !$0.isClosed else { return }
      if $0.elements.count >= capacity {
        $0.elements.removeFirst()
        $0.dropped += 1
      }
      $0.elements.append(element)
    }
  }

  /// Everything queued, waiting for something where there is nothing; nil once closed and empty.
  func takeAll() -> [Element]? {
    contents.wait { contents -> [Element]?? in
      if contents.elements.isEmpty { return contents.isClosed ? .some(nil) : nil }
      defer { contents.elements = [] }
      return .some(contents.elements)
    }
  }

  /// Everything queued right now.
  func takeWithoutWaiting() -> [Element] {
    contents.withLock { contents in
      defer { contents.elements = [] }
      return contents.elements
    }
  }

  var isClosed: Bool { contents.withLock { $0.isClosed } }
  var dropped: UInt64 { contents.withLock { $0.dropped } }

  func close() { contents.withLock { $0.isClosed = true } }
}

/// A thread for work that blocks: devices, codecs, files.
final class MediaThread: @unchecked Sendable {
  private var handle = pthread_t()

  /// Starts `body` on a thread of this name (15 characters are seen by tools).
  init(_ name: String, _ body: @escaping @Sendable () -> Void) {
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

  /// Waits for the thread's end; call once.
  func join() { pthread_join(handle, nil) }

  /// Has it go without a trace when it ends, which nobody waits for; in place of `join`.
  func detach() { pthread_detach(handle) }

  /// What `body` gives, on a thread of its own; nil if that takes longer than `limit`. The thread
  /// goes on until `body` is over: whoever calls this sees to it that not many are.
  static func result<Result: Sendable>(
    _ name: String, within limit: Duration, of body: @escaping @Sendable () -> Result
  ) async -> Result? {
    let (results, arrival) = AsyncStream<Result>.makeStream(bufferingPolicy: .bufferingOldest(1))
    MediaThread(name) {
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

import CMusterSystem
import Glibc
import MusterBase
import Synchronization

/// An event loop on a thread of its own, which can be an actor's executor: it runs jobs, timers and
/// the handlers of readable descriptors one after the other, until it is released.
///
/// It waits with `ppoll`, whose timeouts are in nanoseconds: a node has a handful of descriptors.
package final class PollLoop: SerialExecutor {
  private let core: Core

  /// Starts the loop on a thread of this name; nil if the process has no free descriptors.
  package init?(_ name: String) {
    let wake = muster_wake_open()
    guard wake >= 0 else { return nil }
    let core = Core(wake: wake)
    self.core = core
    WorkerThread(name) { core.run() }
  }

  deinit { core.stop() }

  // MARK: Executor

  package func enqueue(_ job: consuming ExecutorJob) {
    core.add(.job(UnownedJob(job), asUnownedSerialExecutor()))
  }

  package func checkIsolated() { precondition(core.isCurrent, "not on the event loop") }

  /// Calls `body` on the loop, from any thread; never if the loop has been released.
  package func execute(_ body: @escaping @Sendable () -> Void) { core.add(.body(body)) }

  /// Calls `body` on the loop and returns once that is done.
  package func submit(_ body: @escaping @Sendable () -> Void) async {
    await withCheckedContinuation { continuation in
      execute {
        body()
        continuation.resume()
      }
    }
  }

  // MARK: Timers

  /// Creates a timer, which calls `body` on the loop whenever the time comes that is set.
  package func timer(_ body: @escaping @Sendable () -> Void) -> Timer {
    core.add(Timer(due: nil, interval: nil, body))
  }

  /// Calls `body` on the loop at `due`.
  @discardableResult
  package func schedule(at due: Instant, _ body: @escaping @Sendable () -> Void) -> Timer {
    core.add(Timer(due: due, interval: nil, isOnce: true, body))
  }

  /// Calls `body` on the loop after every `interval`.
  package func every(_ interval: Duration, _ body: @escaping @Sendable () -> Void) -> Timer {
    core.add(Timer(due: BootClock.now + interval, interval: interval, body))
  }

  /// A timer of a loop.
  package final class Timer: @unchecked Sendable {
    // Accessed on the loop only.
    fileprivate var due: Instant?
    fileprivate let interval: Duration?
    fileprivate let isOnce: Bool
    fileprivate let body: @Sendable () -> Void
    private let isCancelled = Atomic(false)

    fileprivate init(
      due: Instant?, interval: Duration?, isOnce: Bool = false,
      _ body: @escaping @Sendable () -> Void
    ) {
      self.due = due
      self.interval = interval
      self.isOnce = isOnce
      self.body = body
    }

    /// Sets the time at which the timer next fires, in place of the one set before, nil for never;
    /// on the loop only.
    package func set(_ due: Instant?) { self.due = due }

    /// Ends the timer for good, from any thread.
    package func cancel() { isCancelled.store(true, ordering: .relaxed) }

    fileprivate var isOver: Bool { isCancelled.load(ordering: .relaxed) }
  }

  // MARK: Descriptors

  /// The time for which descriptors that were readable are left alone, unless the loop has
  /// something else to do ("interrupt coalescing"): what comes in the meantime is then handled
  /// together. On the loop only.
  package var coalescing: Duration {
    get { core.coalescing }
    set { core.coalescing = newValue }
  }

  /// Calls `readable` on the loop while a descriptor is readable or has failed; it returns whether
  /// it has left something to read, which then does not gather. The loop owns the descriptor, and
  /// closes it with the watch or with itself.
  package func watch(_ descriptor: Int32, _ readable: @escaping @Sendable () -> Bool) -> Watch {
    let watch = Watch(descriptor, core, readable)
    core.add(watch)
    return watch
  }

  /// A descriptor that a loop watches.
  package final class Watch: @unchecked Sendable {
    /// The descriptor, until the watch is closed.
    package let descriptor: Int32
    fileprivate let readable: @Sendable () -> Bool
    private let core: Core
    // Accessed on the loop only.
    fileprivate var isClosed = false

    fileprivate init(
      _ descriptor: Int32, _ core: Core, _ readable: @escaping @Sendable () -> Bool
    ) {
      self.descriptor = descriptor
      self.core = core
      self.readable = readable
    }

    /// Ends the watch and closes the descriptor, on the loop; from any thread, any number of times.
    package func close() { core.add(.body { self.core.close(self) }) }
  }
}

/// What the loop's thread and its users share.
private final class Core: @unchecked Sendable {
  enum Work {
    case job(UnownedJob, UnownedSerialExecutor)
    case body(@Sendable () -> Void)
  }

  private struct Inbox {
    var work: [Work] = []
    /// Whether the thread waits for descriptors and has to be woken.
    var isAsleep = false
    var isStopping = false
    var hasEnded = false
  }

  private let inbox = Mutex(Inbox())
  private let wake: Int32
  private let thread = Atomic<UInt>(0)
  // Accessed on the loop's thread only.
  private var timers: [PollLoop.Timer] = []
  private var watches: [PollLoop.Watch] = []
  private var polled: [pollfd] = []
  var coalescing = Duration.zero
  /// The time at which watched descriptors were last read; nil before, and while something is left.
  private var readAt: Instant?

  init(wake: Int32) { self.wake = wake }

  deinit { Glibc.close(wake) }

  var isCurrent: Bool { thread.load(ordering: .relaxed) == UInt(pthread_self()) }

  /// Queues work; false if the thread has ended.
  @discardableResult
  func add(_ work: Work) -> Bool {
    let (isAccepted, mustWake) = inbox.withLock { inbox in
      guard !inbox.hasEnded else { return (false, false) }
      inbox.work.append(work)
      defer { inbox.isAsleep = false }
      return (true, inbox.isAsleep)
    }
    if mustWake { muster_wake_signal(wake) }
    return isAccepted
  }

  func stop() {
    inbox.withLock { $0.isStopping = true }
    muster_wake_signal(wake)
  }

  func add(_ timer: PollLoop.Timer) -> PollLoop.Timer {
    if isCurrent { timers.append(timer) } else { add(.body { self.timers.append(timer) }) }
    return timer
  }

  func add(_ watch: PollLoop.Watch) {
    let isAccepted = add(
      .body {
        self.watches.append(watch)
        self.polled = []
      })
    if !isAccepted { close(watch) }
  }

  /// On the loop only, or after its end.
  func close(_ watch: PollLoop.Watch) {
    guard !watch.isClosed else { return }
    watch.isClosed = true
    watches.removeAll { $0 === watch }
    polled = []
    Glibc.close(watch.descriptor)
  }

  // MARK: The thread

  func run() {
    thread.store(UInt(pthread_self()), ordering: .relaxed)
    while work() {
      fireTimers()
      wait()
    }
    for watch in watches { close(watch) }
    timers = []
  }

  /// Does the work that is queued, and keeps nothing of it: it may hold the loop. False once the
  /// loop has been stopped and nothing is left to do.
  private func work() -> Bool {
    let (work, hasEnded) = inbox.withLock { inbox in
      if inbox.isStopping, inbox.work.isEmpty { inbox.hasEnded = true }
      defer { inbox.work = [] }
      return (inbox.work, inbox.hasEnded)
    }
    for item in work {
      switch item {
      case .job(let job, let executor): job.runSynchronously(on: executor)
      case .body(let body): body()
      }
    }
    return !hasEnded
  }

  private func fireTimers() {
    let now = BootClock.now
    var hasEnded = false
    // A timer that another one adds waits for the next turn.
    for timer in timers {
      if timer.isOver {
        hasEnded = true
      } else if let due = timer.due, due <= now {
        timer.due = timer.interval.map { now + $0 }
        if timer.isOnce {
          timer.cancel()
          hasEnded = true
        }
        timer.body()
      }
    }
    if hasEnded { timers.removeAll(where: \.isOver) }
  }

  private func wait() {
    if polled.isEmpty {
      let descriptors = [wake] + watches.map(\.descriptor)
      polled = descriptors.map { pollfd(fd: $0, events: Int16(POLLIN), revents: 0) }
    }
    let mayWait = inbox.withLock { inbox in
      inbox.isAsleep = inbox.work.isEmpty && !inbox.isStopping
      return inbox.isAsleep
    }
    let next = timers.reduce(Instant?.none) { soonest($0, $1.isOver ? nil : $1.due) }
    let ready = mayWait ? poll(until: next) : poll(polled.count, until: .zero)
    inbox.withLock { $0.isAsleep = false }
    guard ready > 0 else { return }
    if polled[0].revents != 0 { muster_wake_drain(wake) }
    guard polled.dropFirst().contains(where: { $0.revents != 0 }) else { return }
    readAt = BootClock.now
    let results = polled
    let watches = watches
    for (watch, result) in zip(watches, results.dropFirst())
    where result.revents != 0 && !watch.isClosed && watch.readable() { readAt = nil }
  }

  /// Waits for descriptors, or until `next`, and leaves those alone at first that have just been
  /// read.
  private func poll(until next: Instant?) -> Int32 {
    guard let rested = readAt.map({ $0 + coalescing }), rested > BootClock.now else {
      return poll(polled.count, until: next)
    }
    let isWoken = poll(1, until: soonest(next, rested)) > 0
    return poll(polled.count, until: isWoken ? .zero : next)
  }

  /// Waits for the first `count` descriptors until `end`; without one, for as long as it takes.
  private func poll(_ count: Int, until end: Instant?) -> Int32 {
    let timeout = end.map { max(($0 - BootClock.now).wholeNanoseconds, 0) } ?? -1
    return muster_poll(&polled, UInt32(count), timeout)
  }
}

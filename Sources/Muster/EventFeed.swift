import MusterBase
import Synchronization

/// Distributes a node's events to any number of consumers, which read independently. Their streams
/// end with this object.
final class EventFeed: Sendable {
  private struct State {
    var buffers: [(id: Int, buffer: EventBuffer)] = []
    var nextID = 0
    /// The events before the first consumer started to read; nil afterwards.
    var early: [TimedEvent]? = []
    var isFinished = false
  }

  /// The maximum number of events kept for the first consumers.
  private static let earlyCapacity = 256

  private let state = Mutex(State())

  deinit { finish() }

  /// Subscribes to all later events, preceded by the `early` events if no consumer has begun to
  /// read.
  func subscribe(capacity: Int) -> AsyncStream<TimedEvent> {
    let (id, buffer) = state.withLock { state in
      let buffer = EventBuffer(capacity: capacity)
      for event in state.early ?? [] { buffer.add(event) }
      state.nextID += 1
      if state.isFinished {
        buffer.finish()
      } else {
        state.buffers.append((state.nextID, buffer))
      }
      return (state.nextID, buffer)
    }
    // Only the stream holds the subscription, so the buffer is removed when the stream is released.
    let subscription = Subscription { [weak self] in self?.remove(id) }
    return AsyncStream { [weak self] in
      self?.forgetEarly()
      return await subscription.next(of: buffer)
    }
  }

  func yield(_ event: TimedEvent) {
    let buffers = state.withLock { state in
      if let count = state.early?.count, count < Self.earlyCapacity { state.early?.append(event) }
      return state.buffers.map(\.buffer)
    }
    for buffer in buffers { buffer.add(event) }
  }

  func finish() {
    let buffers = state.withLock { state in
      state.isFinished = true
      defer { state.buffers = [] }
      return state.buffers.map(\.buffer)
    }
    for buffer in buffers { buffer.finish() }
  }

  /// The numbers of waiting and dropped events of each consumer.
  var queues: [NodeReport.Queue] {
    state.withLock { $0.buffers }.map { id, buffer in
      let level = buffer.level
      return NodeReport.Queue(
        name: "events\(id)", waiting: level.waiting, dropped: Int(clamping: level.dropped))
    }
  }

  private func forgetEarly() { state.withLock { $0.early = nil } }

  private func remove(_ id: Int) { state.withLock { $0.buffers.removeAll { $0.id == id } } }

  private final class Subscription: Sendable {
    private let end: @Sendable () -> Void

    init(_ end: @escaping @Sendable () -> Void) { self.end = end }

    deinit { end() }

    func next(of buffer: EventBuffer) async -> TimedEvent? { await buffer.next() }
  }
}

/// The queue of events for one consumer. If the consumer is too slow, the oldest events are dropped
/// and replaced by a warning.
final class EventBuffer: Sendable {
  private struct State {
    var events: [TimedEvent] = []
    var taken = 0
    var capacity: Int
    /// The number of events dropped since the last warning (`unreported`) and since the start
    /// (`dropped`).
    var unreported: UInt64 = 0
    var dropped: UInt64 = 0
    var waiters: [CheckedContinuation<TimedEvent?, Never>] = []
    var isFinished = false
  }

  private let state: Mutex<State>

  init(capacity: Int) { state = Mutex(State(capacity: max(1, capacity))) }

  var level: (waiting: Int, dropped: UInt64) {
    state.withLock { ($0.events.count - $0.taken, $0.dropped) }
  }

  func add(_ event: TimedEvent) {
    let waiter = state.withLock { state -> CheckedContinuation<TimedEvent?, Never>? in
      if !state.waiters.isEmpty { return state.waiters.removeFirst() }
      if state.events.count - state.taken >= state.capacity {
        state.taken += 1
        state.unreported += 1
        state.dropped += 1
      }
      // Removal from the front moves the rest of the array, so the removal is deferred until more
      // than `capacity` elements have been consumed.
      if state.taken > state.capacity {
        state.events.removeFirst(state.taken)
        state.taken = 0
      }
      state.events.append(event)
      return nil
    }
    waiter?.resume(returning: event)
  }

  func finish() {
    let waiters = state.withLock { state in
      state.isFinished = true
      defer { state.waiters = [] }
      return state.waiters
    }
    for waiter in waiters { waiter.resume(returning: nil) }
  }

  /// Waits for the next event; returns nil at the end of the feed or when the task is cancelled.
  func next() async -> TimedEvent? {
    await withTaskCancellationHandler {
      await withCheckedContinuation { continuation in
        let outcome = state.withLock { state -> TimedEvent?? in
          if let event = Self.take(&state) { return .some(event) }
          if state.isFinished || Task.isCancelled { return .some(nil) }
          state.waiters.append(continuation)
          return nil
        }
        if let outcome { continuation.resume(returning: outcome) }
      }
    } onCancel: {
      let waiters = state.withLock { state in
        defer { state.waiters = [] }
        return state.waiters
      }
      for waiter in waiters { waiter.resume(returning: nil) }
    }
  }

  private static func take(_ state: inout State) -> TimedEvent? {
    guard state.taken < state.events.count else { return nil }
    if state.unreported > 0 {
      let count = state.unreported
      state.unreported = 0
      return TimedEvent(
        secondsSinceStart: state.events[state.taken].secondsSinceStart,
        event: .warning(
          MusterError(
            "\(count) events were dropped: they are read too slowly",
            hint: "read them as they come, or ask for a larger buffer")))
    }
    defer {
      state.taken += 1
      if state.taken == state.events.count {
        state.events = []
        state.taken = 0
      }
    }
    return state.events[state.taken]
  }
}

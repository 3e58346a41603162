import Dispatch
import MusterBase
import MusterDevices

/// Writes to a store beside the event loop: what is submitted together, or waits together, goes
/// into one transaction, since a transaction waits for the disk.
public final class StoreWriter: Sendable {
  private struct Job: Sendable {
    var changes: [Store.Change]
    var then: @Sendable (MusterError?) -> Void
  }

  private struct Contents {
    var jobs: [Job] = []
    var isScheduled = false
  }

  /// Jobs that wait; who submits one more waits for the disk itself.
  private static let capacity = 1024

  private let store: Store
  private let queue = DispatchQueue(label: "muster-store")
  private let contents = Monitor(Contents())

  public init(_ store: Store) { self.store = store }

  /// Writes `changes`, then calls `then` on the writer's queue with what went wrong, if anything.
  public func submit(
    _ changes: [Store.Change], then: @escaping @Sendable (MusterError?) -> Void
  ) {
    let (starts, isFull) = contents.withLock { contents in
      defer { contents.isScheduled = true }
      contents.jobs.append(Job(changes: changes, then: then))
      return (!contents.isScheduled, contents.jobs.count >= Self.capacity)
    }
    if starts { queue.async { self.drain() } }
    // A disk that cannot follow slows the node down; it does not fill its memory.
    if isFull { queue.sync {} }
  }

  private func drain() {
    let jobs = contents.withLock { contents in
      defer { contents = Contents() }
      return contents.jobs
    }
    do {
      try store.apply(jobs.flatMap(\.changes))
      for job in jobs { job.then(nil) }
    } catch {
      // One change that cannot be written must not take the others with it.
      for job in jobs { retry(job) }
    }
  }

  private func retry(_ job: Job) {
    do {
      try store.apply(job.changes)
      job.then(nil)
    } catch { job.then(error) }
  }

  /// Returns when everything submitted before is written.
  public func close() async {
    await withCheckedContinuation { continuation in
      queue.async { continuation.resume() }
    }
  }
}

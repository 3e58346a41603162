import Dispatch
import MusterBase
import MusterDevices

/// Writes to a store on a separate dispatch queue, so that writes requested by the node never block
/// the event loop.
///
/// Waiting changes are combined into one transaction, because every transaction costs an `fsync`.
/// Actions that require durable changes belong in the completion of `write`. Once a stalled disk
/// leaves `capacity` changes waiting, further changes are shed and their completions receive an
/// error, so memory use stays bounded and calls continue.
public final class StoreWriter: Sendable {
  private struct Job: Sendable {
    var changes: [Store.Change]
    var completion: @Sendable (MusterError?) -> Void
  }

  private struct Contents {
    var jobs: [Job] = []
    var pending = 0
    var shed: UInt64 = 0
    var isScheduled = false
  }

  /// The numbers of waiting and shed changes.
  public struct Backlog: Equatable, Sendable {
    /// Changes that are not durable yet, including those of the running transaction.
    public var pending: Int
    /// Changes shed since the start because the disk was too slow.
    public var shed: UInt64

    /// A backlog with these counts.
    public init(pending: Int, shed: UInt64) {
      self.pending = pending
      self.shed = shed
    }
  }

  /// The maximum number of waiting changes: about 10 MB of entries, or one minute of a busy
  /// channel's gossip.
  public static let capacity = 8192

  private let store: Store
  private let queue = DispatchQueue(label: "muster-store")
  private let contents = Monitor(Contents())

  /// A writer to `store`, which may have concurrent readers.
  public init(_ store: Store) { self.store = store }

  /// The current counts; may be read on any thread.
  public var backlog: Backlog {
    contents.withLock { Backlog(pending: $0.pending, shed: $0.shed) }
  }

  /// Writes `changes` in the order of the calls; never blocks.
  ///
  /// `completion` is called once: with nil when the changes are durable or with the error of the
  /// write, on the writer's queue and in the order of the calls. If the changes are shed, `write`
  /// calls it on the caller's thread before returning.
  public func write(
    _ changes: [Store.Change], completion: @escaping @Sendable (MusterError?) -> Void = { _ in }
  ) {
    let isFirst = contents.withLock { contents -> Bool? in
      guard contents.pending + changes.count <= Self.capacity else {
        contents.shed += UInt64(changes.count)
        return nil
      }
      defer { contents.isScheduled = true }
      contents.pending += changes.count
      contents.jobs.append(Job(changes: changes, completion: completion))
      return !contents.isScheduled
    }
    guard let isFirst else { return completion(Self.overloaded) }
    if isFirst { queue.async { self.drain() } }
  }

  private static var overloaded: MusterError {
    MusterError(
      "the disk is too slow: something was not stored", hint: "check the disk of the data directory"
    )
  }

  private func drain() {
    let jobs = contents.withLock { contents in
      defer {
        contents.jobs = []
        contents.isScheduled = false
      }
      return contents.jobs
    }
    do {
      try store.apply(jobs.flatMap(\.changes))
      for job in jobs { finish(job, nil) }
    } catch {
      // Each job is retried separately, so that a change that fails does not fail the other jobs.
      for job in jobs { retry(job) }
    }
  }

  private func retry(_ job: Job) {
    do {
      try store.apply(job.changes)
      finish(job, nil)
    } catch { finish(job, error) }
  }

  private func finish(_ job: Job, _ error: MusterError?) {
    contents.withLock { $0.pending -= job.changes.count }
    job.completion(error)
  }

  /// Waits until the changes of all earlier `write` calls are durable or reported as failed.
  public func close() async {
    await withCheckedContinuation { continuation in
      queue.async { continuation.resume() }
    }
  }
}

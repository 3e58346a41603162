import Dispatch
import MusterBase
import MusterDevices

/// Writes to a store on a queue of its own, so that the event loop never waits for the disk.
///
/// Changes that are waiting together go into one transaction, since every transaction costs an
/// `fsync`. `write` returns at once, whatever the state of the disk: an output that must be durable
/// before others hear of it goes into the completion, which is the back-pressure that callers get.
/// When a stalled disk has let `capacity` changes pile up, further ones are shed and their
/// completion gets an error; memory stays bounded and the calls go on.
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

  /// How far the writer is behind.
  public struct Backlog: Equatable, Sendable {
    /// Changes that wait for the disk, those of the running transaction included.
    public var pending: Int
    /// Changes given up since the start because the disk could not follow.
    public var shed: UInt64

    /// A backlog of this many changes.
    public init(pending: Int, shed: UInt64) {
      self.pending = pending
      self.shed = shed
    }
  }

  /// Changes that may wait: about 10 MB of entries, and a minute of a busy channel's gossip.
  public static let capacity = 8192

  private let store: Store
  private let queue = DispatchQueue(label: "muster-store")
  private let contents = Monitor(Contents())

  /// A writer to `store`, which it may share with readers.
  public init(_ store: Store) { self.store = store }

  /// Changes that wait, and those that were shed.
  public var backlog: Backlog {
    contents.withLock { Backlog(pending: $0.pending, shed: $0.shed) }
  }

  /// Writes `changes` in the order of the calls; never blocks.
  ///
  /// `completion` is called once: on the writer's queue and in the order of the calls, with nil when
  /// the changes are on the disk or with the error that kept them from it; or, when they are shed, at
  /// once on the caller's thread.
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
      // One change that cannot be written must not take the others with it.
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

  /// Returns when everything written before is on the disk or reported as failed.
  public func close() async {
    await withCheckedContinuation { continuation in
      queue.async { continuation.resume() }
    }
  }
}

import Dispatch
import MusterBase
import MusterChannel
import MusterCore
import MusterSystem

/// A node's durable state: channels with their keys, signed entries, and the known names and keys
/// of members.
///
/// The file belongs to a dispatch queue of its own, so that a slow disk blocks neither the event
/// loop nor the threads of Swift's tasks: reads and writes are asynchronous, in the order of the
/// calls.
///
/// Waiting changes are combined into one transaction, because every transaction costs an `fsync`.
/// Actions that require durable changes belong in the completion of `write`. Once a stalled disk
/// leaves `capacity` changes waiting, further changes are shed and their completions receive an
/// error, so memory use stays bounded and calls continue.
public final class Store: Sendable {
  /// One change to the durable state.
  public enum Change: Sendable {
    /// Inserts or updates a channel and adds its keys; stored keys of other epochs are kept.
    case channel(StoredChannel)
    /// Stores a signed entry of a channel.
    case keep(entry: [UInt8], id: EntryID, channel: ChannelID)
    /// Deletes entries that the document no longer holds.
    case forget([EntryID], channel: ChannelID)
    /// Marks a message as shown to the user.
    case delivered(EntryID, channel: ChannelID)
    /// Stores the channel key of an epoch.
    case key(EpochKey, channel: ChannelID)
    /// Stores a member's name with the key seen under that name.
    case identity(KnownIdentity, channel: ChannelID)
    /// Gives a channel another local name.
    case rename(ChannelID, to: String)
    /// Deletes all that is stored of a channel: keys, invite, entries, and its members' names.
    case forgetChannel(ChannelID)
    /// Notes that this node, restored from a backup, knows what another member of a channel knows.
    case met(ChannelID)
    /// Replaces the list of rendezvous servers at which members of a channel met, as `HOST:PORT`,
    /// best first.
    case rendezvous([String], channel: ChannelID)
  }

  private struct Job: Sendable {
    var changes: [Change]
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

  /// The maximum number of waiting changes, beyond those of one call on an idle disk: about 10 MB
  /// of entries, or one minute of a busy channel's gossip.
  public static let capacity = 8192

  private let queue = DispatchQueue(label: "muster-store")
  /// Used on `queue` only.
  private nonisolated(unsafe) let file: StoreFile
  private let contents = Monitor(Contents())

  private init(_ file: sending StoreFile) { self.file = file }

  /// Opens the store of a directory, creating or migrating it if necessary. Throws if the file
  /// cannot be used, is damaged or was written by a newer version.
  public static func open(_ directory: DataDirectory) async throws(MusterError) -> Store {
    let path = directory.path
    return try await onQueue(DispatchQueue(label: "muster-store-open")) {
      () throws(MusterError) in Store(try StoreFile(in: path))
    }
  }

  /// The rendezvous servers (`HOST:PORT`) stored with the channels of a data directory, newest
  /// channel first and without duplicates; empty if the directory has no store. The file is opened
  /// read-only and the directory is not locked, because a running node may hold the lock.
  public static func rendezvous(in directory: String) async throws(MusterError) -> [String] {
    try await onQueue(DispatchQueue(label: "muster-store-read")) { () throws(MusterError) in
      try StoreFile.rendezvous(in: directory)
    }
  }

  private static func onQueue<T: Sendable>(
    _ queue: DispatchQueue, _ body: @escaping @Sendable () throws(MusterError) -> T
  ) async throws(MusterError) -> T {
    let result = await withCheckedContinuation {
      (continuation: CheckedContinuation<Result<T, MusterError>, Never>) in
      queue.async { continuation.resume(returning: Result(catching: body)) }
    }
    return try result.get()
  }

  // MARK: Reading

  /// Reads, after the writes requested before: all that `body` sees is of the same moment. `body`
  /// runs on the store's queue. Throws its error, or if the file cannot be read or is damaged.
  public func read<T: Sendable>(
    _ body: @escaping @Sendable (StoreSnapshot) throws -> T
  ) async throws(MusterError) -> T {
    try await Self.onQueue(queue) { () throws(MusterError) in try self.file.read(body) }
  }

  /// SQLite's synchronous mode, for tests; 2 is FULL.
  package func synchronous() async throws(MusterError) -> Int64? {
    try await Self.onQueue(queue) { self.file.synchronous }
  }

  // MARK: Writing

  /// The current counts; may be read on any thread.
  public var backlog: Backlog {
    contents.withLock { Backlog(pending: $0.pending, shed: $0.shed) }
  }

  /// Writes `changes` in the order of the calls; never blocks. Without changes, `completion` waits
  /// only for what was requested before.
  ///
  /// `completion` is called once: with nil when the changes are durable or with the error of the
  /// write, on the store's queue and in the order of the calls. If the changes are shed, `write`
  /// calls it on the caller's thread before returning.
  public func write(_ changes: [Change], completion: @escaping @Sendable (MusterError?) -> Void) {
    let isFirst = contents.withLock { contents -> Bool? in
      guard contents.pending == 0 || contents.pending + changes.count <= Self.capacity else {
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

  /// Writes `changes` and waits until they are durable; throws the error if they could not be
  /// written.
  public func write(_ changes: [Change]) async throws(MusterError) {
    let failure = await withCheckedContinuation { continuation in
      write(changes) { continuation.resume(returning: $0) }
    }
    if let failure { throw failure }
  }

  private static var overloaded: MusterError {
    MusterError(
      "the disk is too slow: something was not stored", hint: "check the disk of the data directory"
    )
  }

  private func drain() {
    var jobs = contents.withLock { contents in
      defer {
        contents.jobs = []
        contents.isScheduled = false
      }
      return contents.jobs[...]
    }
    while let job = jobs.first, job.changes.isEmpty { finish(jobs.removeFirst(), nil) }
    do {
      try file.apply(jobs.flatMap(\.changes))
      for job in jobs { finish(job, nil) }
    } catch {
      // Each job is retried separately, so that a change that fails does not fail the other jobs.
      for job in jobs { retry(job) }
    }
  }

  private func retry(_ job: Job) {
    do {
      try file.apply(job.changes)
      finish(job, nil)
    } catch { finish(job, error) }
  }

  private func finish(_ job: Job, _ error: MusterError?) {
    contents.withLock { $0.pending -= job.changes.count }
    job.completion(error)
  }

  /// Closes the file once the changes of all earlier `write` calls are durable or reported as
  /// failed. Later reads and writes fail.
  public func close() async {
    await withCheckedContinuation { continuation in
      queue.async {
        self.file.close()
        continuation.resume()
      }
    }
  }
}

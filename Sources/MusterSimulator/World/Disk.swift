import MusterBase
import MusterChannel
import MusterCore
import MusterCrypto

/// The disk of a host: the state of its channel that survives the process.
///
/// A write takes time and may fail; writes finish in the order of their requests. When a process
/// dies, a random number of its pending writes still finish, oldest first, and the rest are lost.
/// The effects of a power failure on files are covered by the tests of the store.
struct Disk: Sendable {
  /// Changes that are written atomically.
  struct Job: Sendable {
    var changes: [Node.Change]
    /// The commit whose outcome the node awaits; nil for changes that the node does not wait for.
    var commit: CommitID?
    /// The messages to show to users once the changes are written.
    var messages: [TextMessage] = []
    /// The authors that the node knew at the request to be allowed to write messages; nil for all
    /// authors. The rights may change before a slow disk finishes the write.
    var writers: [NodeID]?
    /// Whether the messages that the changes note as shown do not wait for the write.
    var isAlreadyShown = false
    /// The number of the process that requested the write (`SimulatedNode.run`).
    var run: Int
    /// The time at which the process requested the write.
    fileprivate(set) var askedAt = Instant.zero
    fileprivate(set) var dueAt = Instant.zero
    /// Whether the write fails and leaves nothing on the disk.
    fileprivate(set) var fails = false
  }

  /// The latency and reliability of a disk.
  struct Conditions: Sendable {
    /// The longest duration of a write.
    var longestDelay = Duration.milliseconds(8)
    /// The fraction of writes that fail, from 0 to 1.
    var failures = 0.0
  }

  var conditions = Conditions()
  /// Whether this host's own node has redeemed its invite.
  var holdsRedemption = false
  /// The channel's keys in ascending order of their epochs.
  private(set) var keys: [EpochKey] = []
  /// Entries that a process keeps in memory although their writes failed.
  private(set) var unwritten: [EntryID] = []
  /// Messages that users have seen without a record on the disk, because the write failed.
  private var shownUnwritten: [EntryID] = []
  /// The signed entries by id; bounded by the size of a document, since nodes delete entries that
  /// they no longer need.
  private var entries = PeerTable<EntryID, [UInt8]>()
  private var shown: [EntryID] = []
  private var jobs: [Job] = []
  private var prng: PRNG

  init(seed: UInt64) { prng = PRNG(seed: seed) }

  /// The entries in the order of their ids.
  var signedEntries: [[UInt8]] { entries.map(\.value) }
  /// The entries that are not recorded as shown; of these, `ChannelSetup` uses only the messages.
  var undelivered: [EntryID] { entries.keys.filter { !shown.contains($0) } }
  func holds(_ id: EntryID) -> Bool { entries.index(of: id) != nil }
  var isIdle: Bool { jobs.isEmpty }
  /// The time at which the next write finishes; nil without pending writes.
  var deadline: Instant? { jobs.first?.dueAt }

  // MARK: Writing

  mutating func submit(_ job: Job, at now: Instant) {
    var job = job
    job.askedAt = now
    guard !job.changes.isEmpty else {
      job.dueAt = jobs.last?.dueAt ?? now
      return jobs.append(job)
    }
    let delay = prng.duration(.microseconds(50), conditions.longestDelay)
    job.dueAt = max(now + delay, jobs.last?.dueAt ?? now)
    job.fails = prng.chance(conditions.failures)
    jobs.append(job)
  }

  /// Removes the next write due by now and applies it unless it fails; nil if no write is due.
  mutating func finish(at now: Instant) -> Job? {
    guard let job = jobs.first, job.dueAt <= now else { return nil }
    jobs.removeFirst()
    if job.fails {
      unwritten += job.changes.entryIDs
      for case .delivered(let id) in job.changes { shownUnwritten.append(id) }
    } else {
      for change in job.changes { apply(change) }
    }
    return job
  }

  /// The losses when a process crashes, and the pending writes that still finished.
  struct Crash: Sendable {
    /// Pending writes that were still applied.
    var written: [Job]
    /// Entries that were only in the memory of the process.
    var lost: [EntryID]
    /// Messages that the next process will show again.
    var shownAgain: [EntryID]
  }

  /// Applies or drops the pending writes of a process that has died.
  mutating func crash() -> Crash {
    let kept = prng.below(jobs.count + 1)
    let written = jobs.prefix(kept).filter { !$0.fails }
    for job in written { job.changes.forEach { apply($0) } }
    let dropped = jobs.dropFirst(kept) + jobs.prefix(kept).filter(\.fails)
    for job in dropped where job.isAlreadyShown {
      for case .delivered(let id) in job.changes { shownUnwritten.append(id) }
    }
    let lost = (unwritten + dropped.flatMap(\.changes.entryIDs)).filter { !holds($0) }
    let shownAgain = shownUnwritten.filter { holds($0) && !shown.contains($0) }
    (jobs, unwritten, shownUnwritten) = ([], [], [])
    return Crash(written: written, lost: lost, shownAgain: shownAgain)
  }

  /// Applies a change immediately.
  mutating func apply(_ change: Node.Change) {
    switch change {
    case .entry(let bytes, let id): entries[id] = bytes
    case .forget(let ids): for id in ids { entries[id] = nil }
    case .delivered(let id): if holds(id) { shown.append(id) }
    case .key(let key):
      guard !keys.contains(where: { $0.number == key.number }) else { return }
      keys.append(key)
      keys.sort { $0.number < $1.number }
    case .met: break  // Simulated nodes are not restored from backups.
    }
  }
}

extension Disk {
  /// Applies the writes in a node's outputs at once, and reports commits to the node as durable;
  /// all other outputs are ignored.
  mutating func record(_ outputs: [Node.Output], of node: inout Node, at now: Instant) {
    var writes = NodeWrites()
    for output in outputs { writes.take(output) }
    for change in writes.allChanges { apply(change) }
    for commit in writes.commits {
      record(node.finish(commit.id, isDurable: true, at: now), of: &node, at: now)
    }
  }
}

extension NodeWrites {
  /// The changes in the order in which they are written.
  var allChanges: [Node.Change] { changes.map(\.change) + commits.flatMap(\.changes) }
}

extension [Node.Change] {
  /// The ids of the entries among the changes.
  fileprivate var entryIDs: [EntryID] {
    compactMap { if case .entry(_, let id) = $0 { id } else { nil } }
  }
}

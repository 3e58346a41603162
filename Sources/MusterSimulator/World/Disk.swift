import MusterBase
import MusterChannel
import MusterCore

/// What a host remembers of its channel when its process is gone.
///
/// A write takes time and may fail; writes finish in the order in which they were asked for. When a
/// process dies, the first few of its writes that are under way are still finished, and the rest
/// are lost. What a power cut may do to a file is for the store's own tests.
struct Disk: Sendable {
  /// Changes that are written together, or not at all.
  struct Job: Sendable {
    var changes: [Node.Change]
    /// What the node goes on with afterwards; nil when it does not wait.
    var commit: CommitID?
    /// Messages for people, who see them once this is written.
    var messages: [TextMessage] = []
    /// The process that asked for it.
    var run: Int
    /// When the process asked for it.
    fileprivate(set) var askedAt = Instant.zero
    fileprivate(set) var dueAt = Instant.zero
    /// Nothing of it is on the disk.
    fileprivate(set) var fails = false
  }

  /// How a disk behaves.
  struct Conditions: Sendable {
    /// A write takes up to this long.
    var longestDelay = Duration.milliseconds(8)
    /// The part of writes that fail, 0 to 1.
    var failures = 0.0
  }

  var conditions = Conditions()
  /// Whether this host's own node has shown its invite.
  var holdsRedemption = false
  /// In ascending order.
  private(set) var keys: [EpochKey] = []
  /// Entries that a process keeps in memory although their writes failed.
  private(set) var unwritten: [EntryID] = []
  /// Messages that people have seen although the disk does not say so: the writes failed.
  private var shownUnwritten: [EntryID] = []
  /// By id; bounded by what a document holds, since nodes say what they need no more.
  private var entries = PeerTable<EntryID, [UInt8]>()
  private var shown: [EntryID] = []
  private var jobs: [Job] = []
  private var prng: PRNG

  init(seed: UInt64) { prng = PRNG(seed: seed) }

  /// The entries in the order of their ids.
  var signedEntries: [[UInt8]] { entries.map(\.value) }
  /// Messages that no process has shown yet.
  var unshown: [EntryID] { entries.keys.filter { !shown.contains($0) } }
  func holds(_ id: EntryID) -> Bool { entries.index(of: id) != nil }
  var isIdle: Bool { jobs.isEmpty }
  /// When the next write finishes.
  var deadline: Instant? { jobs.first?.dueAt }

  // MARK: Writing

  mutating func submit(_ job: Job, at now: Instant) {
    var job = job
    job.askedAt = now
    let delay = prng.duration(.microseconds(50), conditions.longestDelay)
    job.dueAt = max(now + delay, jobs.last?.dueAt ?? now)
    job.fails = prng.chance(conditions.failures)
    jobs.append(job)
  }

  /// The next write that is finished by now, applied if it did not fail.
  mutating func finish(at now: Instant) -> Job? {
    guard let job = jobs.first, job.dueAt <= now else { return nil }
    jobs.removeFirst()
    if job.fails {
      unwritten += job.changes.entryIDs
      for case .shown(let id) in job.changes { shownUnwritten.append(id) }
    } else {
      for change in job.changes { apply(change) }
    }
    return job
  }

  /// What a disk makes of the death of a process.
  struct Crash: Sendable {
    /// Writes under way that are still finished, and applied.
    var written: [Job]
    /// Entries that only the memory of the process held.
    var lost: [EntryID]
    /// Messages that the next process shows again.
    var shownAgain: [EntryID]
  }

  /// The process has died.
  mutating func crash() -> Crash {
    let kept = prng.below(jobs.count + 1)
    let written = jobs.prefix(kept).filter { !$0.fails }
    for job in written { job.changes.forEach { apply($0) } }
    let dropped = jobs.dropFirst(kept) + jobs.prefix(kept).filter(\.fails)
    let lost = (unwritten + dropped.flatMap(\.changes.entryIDs)).filter { !holds($0) }
    let shownAgain = shownUnwritten.filter { holds($0) && !shown.contains($0) }
    (jobs, unwritten, shownUnwritten) = ([], [], [])
    return Crash(written: written, lost: lost, shownAgain: shownAgain)
  }

  /// Writes at once, before any process runs.
  mutating func apply(_ change: Node.Change) {
    switch change {
    case .entry(let bytes, let id): entries[id] = bytes
    case .forget(let ids): for id in ids { entries[id] = nil }
    case .shown(let id): if holds(id) { shown.append(id) }
    case .key(let key):
      guard !keys.contains(where: { $0.number == key.number }) else { return }
      keys.append(key)
      keys.sort { $0.number < $1.number }
    }
  }
}

extension [Node.Change] {
  /// The ids of the entries among them.
  fileprivate var entryIDs: [EntryID] {
    compactMap { if case .entry(_, let id) = $0 { id } else { nil } }
  }
}

/// What the outputs of one call of a node ask to write.
struct NodeWrites: Sendable {
  var changes: [Node.Change] = []
  /// Shown once `changes` are written.
  var messages: [TextMessage] = []
  var commits: [(changes: [Node.Change], id: CommitID)] = []

  /// Takes an output that is about the disk; false for others.
  @discardableResult
  mutating func take(_ output: Node.Output) -> Bool {
    switch output {
    case .write(let change, in: _): changes.append(change)
    case .commit(let changes, let commit): commits.append((changes, commit))
    default: return false
    }
    return true
  }
}

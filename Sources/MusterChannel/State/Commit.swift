import MusterBase
import MusterWire

/// Names one write of this node's own entries until the host reports what became of it.
public struct CommitID: Equatable, Hashable, Sendable {
  /// The channel whose document the entries are for.
  public var channel: ChannelID
  /// The sequence number of the first entry: no two processes of an author share one.
  public var number: UInt64

  /// `number` is the sequence number of the first entry.
  public init(channel: ChannelID, number: UInt64) {
    self.channel = channel
    self.number = number
  }
}

/// The subject of a commit, for the message that it failed.
public enum CommitSubject: String, Equatable, Sendable {
  /// A text message of this node.
  case message
  /// A role that this node granted or took away.
  case role
  /// A new key of the channel, with the removal that it is for.
  case key
  /// The bearer grant of an invite.
  case invite
  /// The end of the call that this node leads.
  case callEnd
}

/// Own entries that must be durable before they are sent.
///
/// Which entries wait for the disk follows from what a crash in between would break:
/// - Grants, invites, removals and key changes: an owner that has forgotten its last one signs the
///   next with a lower Lamport counter, and loses against itself; members would have a key that its
///   owner lost.
/// - Messages: the author's next message would sort before one that others have seen.
/// - The end of a call: an initiator that has forgotten it would meet members who know only the
///   claim, and carry the call on against its own word.
///
/// Everything else is written without waiting (`ChannelState.Output.keep`): entries of others,
/// which their authors and neighbours have; this node's redemption, which it can repeat; claims,
/// without which a call begins anew. Presences and neighbour reports are not written at all.
///
/// The entries stay out of this node's own document meanwhile: what is in a document is sent again
/// and compared with neighbours, so that holding back the first datagram would not be enough.
struct PendingCommit: Sendable {
  let id: CommitID
  let subject: CommitSubject
  let entries: [SignedEntry]

  /// Commits that wait for the disk at one time; a full list means a disk that has stopped.
  static let limit = 64
}

extension ChannelState {
  /// Whether too many writes are in flight to sign further entries.
  public var isWaitingForDisk: Bool { pending.count >= PendingCommit.limit }

  /// Signs entries and asks for them to be written; `finish` brings them to everyone. The caller
  /// checks `isWaitingForDisk`, except where nothing can be refused: there it is a failure.
  mutating func signAndCommit(
    _ bodies: [EntryBody], as subject: CommitSubject, _ out: inout [Output]
  ) {
    commit(bodies.map { sign($0) }, as: subject, &out)
  }

  /// Asks for signed entries of this node to be written; see `signAndCommit`.
  mutating func commit(
    _ entries: [SignedEntry], as subject: CommitSubject, _ out: inout [Output]
  ) {
    guard let first = entries.first else { return }
    guard !isWaitingForDisk else {
      out.append(.event(.commitFailed(subject)))
      return
    }
    let id = CommitID(channel: channel, number: first.entry.sequence)
    pending.append(PendingCommit(id: id, subject: subject, entries: entries))
    out.append(.commit(entries, then: id))
  }

  /// The host has written the entries of a commit, or could not (`isDurable` is false): then they
  /// are dropped, and an event reports that. A commit that is not under way changes nothing.
  public mutating func finish(
    _ id: CommitID, isDurable: Bool, at now: Instant
  ) -> [Output] {
    guard pending.contains(where: { $0.id == id }) else { return [] }
    return commit(at: now) { state, out in
      guard let index = state.pending.firstIndex(where: { $0.id == id }) else { return }
      let done = state.pending.remove(at: index)
      // Until now this node took its call for ended; without the end the call goes on.
      if done.subject == .callEnd { state.changes.call = true }
      guard isDurable else {
        out.append(.event(.commitFailed(done.subject)))
        return
      }
      for entry in done.entries { state.broadcastWritten(entry, at: now, &out) }
      if done.subject == .callEnd, let last = done.entries.last {
        state.lastWords = (state.lastWords + [last.id]).suffix(4)
      }
    }
  }

  /// Sends out an entry that is on the disk already.
  private mutating func broadcastWritten(
    _ entry: SignedEntry, at now: Instant, _ out: inout [Output]
  ) {
    let outputs = gossip.broadcast(entry, at: now)
    let isKept = outputs.contains { output in
      if case .inserted(entry, _) = output { true } else { false }
    }
    // The document has no room for it, or newer entries already: neither does the disk need it.
    if !isKept { out.append(.forget([entry.id])) }
    apply(outputs, isWritten: true, at: now, &out)
  }

  /// The claims and ends that this node goes by: its own count for itself as soon as it has signed
  /// them.
  func callEntries(_ kind: EntryBody.Kind) -> [SignedEntry] {
    let own = pending.flatMap(\.entries).filter { $0.entry.body.kind == kind }
    return own.isEmpty ? gossip.document.all(kind) : gossip.document.all(kind) + own
  }

  /// The messages that the next one of this node follows, those on their way to the disk included.
  var messageHeads: [UInt64] {
    var heads = messages.heads
    for entry in pending.flatMap(\.entries) {
      guard case .message(let message) = entry.entry.body else { continue }
      heads.removeAll { message.after.contains($0) }
      heads.append(entry.id.prefix)
    }
    return Array(heads.suffix(Message.predecessorLimit))
  }
}

import MusterBase
import MusterWire

/// Identifies one write of this node's entries until the host reports the outcome.
public struct CommitID: Equatable, Hashable, Sendable {
  /// The channel whose document the entries are for.
  public var channel: ChannelID
  /// The sequence number of the first entry, which no two processes of an author share.
  public var number: UInt64

  /// `number` is the sequence number of the first entry.
  public init(channel: ChannelID, number: UInt64) {
    self.channel = channel
    self.number = number
  }
}

/// The subject of a commit, for the report of a failure.
public enum CommitSubject: String, Equatable, Sendable {
  /// A text message of this node.
  case message
  /// A role that this node granted or revoked.
  case role
  /// A new channel key, with the removal that requires it.
  case key
  /// The bearer grant of an invite.
  case invite
  /// A call that this node starts, or continues as its initiator.
  case call
  /// The end of the call that this node leads.
  case callEnd
  /// The muting of a member, or its removal from the call.
  case moderation
}

/// Entries of this node that must be durable before they are sent.
///
/// These entries wait for the disk, since a crash before the write would have these effects:
/// - Grants, invites, removals and key changes: an owner that has forgotten its last entry signs
///   the next one with a lower Lamport counter, so the forgotten entry prevails; and members would
///   have a key that the owner has lost.
/// - Messages: the author's next message would sort before a message that other members have seen.
/// - The end of a call: an initiator that has forgotten it would meet members that know only the
///   claim, and would continue the call that it had ended.
///
/// All other entries are written without waiting (`ChannelState.Output.keep`): entries of other
/// members, which their authors and neighbours have; this node's redemption, which it can repeat;
/// claims, without which a call starts anew. Presences and neighbour reports are not written at
/// all.
///
/// Until they are durable, the entries also stay out of this node's document: gossip retransmits
/// and compares everything in the document, so holding back the first datagram would not be enough.
struct PendingCommit: Sendable {
  let id: CommitID
  let subject: CommitSubject
  let entries: [SignedEntry]

  /// The maximum number of pending commits; a full list means that the disk no longer completes
  /// writes.
  static let limit = 64
}

extension ChannelState {
  /// Whether too many writes are in flight to sign further entries.
  public var isWaitingForDisk: Bool { pending.count >= PendingCommit.limit }

  /// Signs entries and requests their write; `finish` broadcasts them. Callers that can refuse an
  /// action check `isWaitingForDisk` first; for other callers, a full list fails the commit.
  mutating func signAndCommit(
    _ bodies: [EntryBody], as subject: CommitSubject, _ out: inout [Output]
  ) {
    commit(bodies.map { sign($0) }, as: subject, &out)
  }

  /// Requests the write of signed entries of this node; see `signAndCommit`.
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

  /// Completes a commit: broadcasts the entries that the host has written or, if `isDurable` is
  /// false, drops them and reports the failure. An unknown commit changes nothing.
  public mutating func finish(
    _ id: CommitID, isDurable: Bool, at now: Instant
  ) -> [Output] {
    guard pending.contains(where: { $0.id == id }) else { return [] }
    return commit(at: now) { state, out in
      guard let index = state.pending.firstIndex(where: { $0.id == id }) else { return }
      let done = state.pending.remove(at: index)
      // This node has treated its call as ended since it signed the end; after a failed write, the
      // call continues.
      if done.subject == .callEnd { state.changes.call = true }
      guard isDurable else {
        out.append(.event(.commitFailed(done.subject)))
        return
      }
      var isKept = true
      for entry in done.entries {
        isKept = state.broadcastWritten(entry, at: now, &out) && isKept
      }
      if !isKept { out.append(.event(.notKept(done.subject))) }
      if done.subject == .callEnd, let last = done.entries.last {
        state.finalEntries = (state.finalEntries + [last.id]).suffix(4)
      }
    }
  }

  /// Broadcasts an entry that is already on disk; returns whether the document keeps it.
  private mutating func broadcastWritten(
    _ entry: SignedEntry, at now: Instant, _ out: inout [Output]
  ) -> Bool {
    let isKept = broadcast(entry, isWritten: true, at: now, &out)
    // What the document does not keep, the disk does not need either.
    if !isKept { out.append(.forget([entry.id])) }
    return isKept
  }

  /// The entries about calls that apply on this node: those in the document, and signed claims and
  /// ends that wait for the disk.
  var callEntries: CallEntries {
    let rights = rights
    return CallEntries(
      claims: applied(.claim), ends: applied(.end), joinings: gossip.document.all(.joining),
      moderations: gossip.document.all(.moderation).filter { entry in
        guard case .moderation(let moderation) = entry.entry.body else { return false }
        return rights.moderates(entry.entry.author, moderation.member)
      }, invite: { rights.invite(of: $0) })
  }

  private func applied(_ kind: EntryBody.Kind) -> [SignedEntry] {
    let own = pending.flatMap(\.entries).filter { $0.entry.body.kind == kind }
    return own.isEmpty ? gossip.document.all(kind) : gossip.document.all(kind) + own
  }

  /// The predecessors of this node's next message, including messages that wait for the disk.
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

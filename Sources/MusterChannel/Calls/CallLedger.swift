import MusterBase
import MusterWire

/// The entries of a document that concern calls.
public struct CallEntries: Sendable {
  /// The claims in document order.
  public var claims: [SignedEntry]
  /// The ends in document order.
  public var ends: [SignedEntry]
  /// The newest joining of each author.
  public var joinings: [SignedEntry]
  /// The moderations that count (`Rights.moderates`) in document order.
  public var moderations: [SignedEntry]

  /// Collects entries; those of other kinds are ignored.
  public init(
    claims: [SignedEntry], ends: [SignedEntry], joinings: [SignedEntry],
    moderations: [SignedEntry] = []
  ) {
    self.claims = claims
    self.ends = ends
    self.joinings = joinings
    self.moderations = moderations
  }

  /// The member that has removed `member` from a call; nil if it may be in the call.
  public func remover(of member: NodeID, from call: CallID) -> NodeID? {
    removal(of: member, from: call)?.entry.author
  }

  /// The moderation that has removed `member` from a call; nil if it may be in the call.
  public func removal(of member: NodeID, from call: CallID) -> SignedEntry? {
    moderations.first { entry in
      guard case .moderation(let moderation) = entry.entry.body else { return false }
      return moderation.call == call && moderation.member == member
        && moderation.actions.contains(.remove)
    }
  }
}

/// Derives a channel's one active call from signed entries and the members present.
///
/// The same input gives the same call on every node, in whatever order the entries arrived. A claim
/// or an end counts as long as its author has the right to make it, and a claim is live while no
/// end covers it. A call ends when its initiator loses its role, unless another member has taken
/// the call over. A member that was removed from a call neither is in it, nor takes it over or ends
/// it; the call that it started goes on, with the next in the order of succession as its initiator.
public enum CallLedger {
  /// A claim whose author has the right to make it.
  private struct Claim {
    var entry: SignedEntry
    var body: CallClaim

    var author: NodeID { entry.entry.author }

    /// A higher term wins; within a term, the earlier claim wins.
    static func isStronger(_ a: Claim, than b: Claim) -> Bool {
      a.body.term != b.body.term ? a.body.term > b.body.term : a.entry < b.entry
    }
  }

  /// The best established call with a live claim and a present participant that may join; nil if
  /// there is no such call. The number of participants does not matter: after a crash, a call may
  /// have fewer than one that a newcomer has just started.
  public static func active(
    _ entries: CallEntries,
    present: [(member: NodeID, participation: Participation)],
    may: (Capability, NodeID) -> Bool,
    precedes: (CallInfo, CallInfo) -> Bool = CallInfo.precedes
  ) -> ActiveCall? {
    let present = present.filter { member, participation in
      may(.joinCall, member) && entries.remover(of: member, from: participation.id) == nil
    }
    var calls = present.map(\.participation.id)
    calls.sort()
    var best: CallInfo?
    for (index, call) in calls.enumerated() where index == 0 || calls[index - 1] != call {
      guard let info = info(of: call, entries, may: may) else { continue }
      if let known = best, precedes(known, info) { continue }
      best = info
    }
    guard let best else { return nil }
    let inside = present.filter { $0.participation.id == best.id }.sorted {
      let (a, b) = ($0.participation.joined, $1.participation.joined)
      return a != b ? a < b : $0.member < $1.member
    }.map(\.member)
    return ActiveCall(info: best, participants: inside.sorted(), byPresence: inside)
  }

  /// Whether ends cover all valid claims to the call; false without a valid claim.
  public static func isOver(
    _ call: CallID, _ entries: CallEntries, may: (Capability, NodeID) -> Bool
  ) -> Bool {
    let valid = valid(entries, of: call, may: may)
    return !valid.isEmpty && live(valid, of: call, entries).isEmpty
  }

  /// The call as its strongest live claim describes it; nil without a live claim.
  public static func info(
    of call: CallID, _ entries: CallEntries, may: (Capability, NodeID) -> Bool
  ) -> CallInfo? {
    let valid = valid(entries, of: call, may: may)
    guard let leader = live(valid, of: call, entries).min(by: Claim.isStronger) else { return nil }
    let first = valid.filter { $0.body.term == 1 }.min { $0.entry < $1.entry }
    return CallInfo(
      id: call, initiator: leader.author,
      startedAt: first?.body.startedAt ?? leader.body.startedAt, term: leader.body.term,
      order: first?.entry.entry.lamport ?? leader.body.order,
      standing: standing(of: call, first: first ?? leader, valid, entries.joinings, may: may))
  }

  /// How well a call is established: by entries of two different members, since one alone could
  /// claim anything.
  private static func standing(
    of call: CallID, first: Claim, _ claims: [Claim], _ joinings: [SignedEntry],
    may: (Capability, NodeID) -> Bool
  ) -> CallStanding {
    if claims.contains(where: { $0.body.term > 1 && $0.author != first.author }) { return .lasting }
    var met = 0
    var lasting = 0
    for entry in joinings {
      guard case .joining(let joining) = entry.entry.body, joining.call == call,
        may(.joinCall, entry.entry.author)
      else { continue }
      if joining.stage == .lasting { lasting += 1 }
      if entry.entry.author != first.author { met += 1 }
    }
    if lasting > 1 { return .lasting }
    if met > 0 { return .joined }
    return first.body.knowledge == .none ? .blind : .informed
  }

  /// The strongest live claim to the call; its author is the initiator. Nil without a live claim.
  public static func leadingClaim(
    of call: CallID, _ entries: CallEntries, may: (Capability, NodeID) -> Bool
  ) -> SignedEntry? {
    live(valid(entries, of: call, may: may), of: call, entries).min(by: Claim.isStronger)?.entry
  }

  /// The entries with which `own`, the initiator, ends the call for all: the end of its term. If a
  /// healed partition has left another member's claim to the same or a higher term, a claim to the
  /// next term comes first, because that end alone would not cover the other claim.
  public static func ending(
    _ call: CallInfo, by own: NodeID, _ entries: CallEntries,
    may: (Capability, NodeID) -> Bool
  ) -> [EntryBody] {
    let live = live(valid(entries, of: call.id, may: may), of: call.id, entries)
    let isShared = live.contains { $0.author != own && $0.body.term >= call.term }
    guard isShared, call.term < .max, may(.handOver, own) else {
      return [.end(CallEnd(call: call.id, term: call.term))]
    }
    let last = CallClaim(continuing: call)
    return [.claim(last), .end(CallEnd(call: call.id, term: last.term))]
  }

  private static func valid(
    _ entries: CallEntries, of call: CallID, may: (Capability, NodeID) -> Bool
  ) -> [Claim] {
    entries.claims.compactMap { entry in
      guard case .claim(let body) = entry.entry.body, body.call == call,
        may(body.term == 1 ? .startCall : .handOver, entry.entry.author),
        body.term == 1 || entries.remover(of: entry.entry.author, from: call) == nil
      else { return nil }
      return Claim(entry: entry, body: body)
    }
  }

  /// The valid claims to one call that no end covers.
  private static func live(
    _ claims: [Claim], of call: CallID, _ entries: CallEntries
  ) -> [Claim] {
    var live = claims
    for entry in entries.ends {
      let author = entry.entry.author
      guard case .end(let end) = entry.entry.body, end.call == call,
        entries.remover(of: author, from: call) == nil
      else { continue }
      // An end is valid only for a term that its author has claimed.
      guard claims.contains(where: { $0.author == author && $0.body.term == end.term }) else {
        continue
      }
      live.removeAll {
        $0.body.term < end.term || ($0.body.term == end.term && $0.author == author)
      }
    }
    return live
  }
}

extension CallClaim {
  /// The claim to the term after that of `call`, which must not be the last.
  init(continuing call: CallInfo) {
    self.init(
      call: call.id, term: call.term + 1, startedAt: call.startedAt, order: call.order,
      knowledge: call.standing == .blind ? .none : .compared)
  }
}

import MusterBase
import MusterWire

/// Derives a channel's one active call from signed entries and the members present.
///
/// The same input gives the same call on every node, in whatever order the entries arrived. A claim
/// or an end counts as long as its author has the right to make it, and a claim is live while no
/// end covers it. A call ends when its initiator loses its role, unless another member has taken
/// the call over. A member that was removed from a call neither is in it, nor takes it over or ends
/// it; the call that it started goes on, with the next in the order of succession as its initiator.
///
/// A call without a participant that may lead it displaces no other. A claim stays live if its
/// author has crashed, and members who may start no call could bring the others into that one.
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

  /// A channel's call as `viewer` sees it; nil if it sees none. A nil viewer is in no call and has
  /// started none.
  ///
  /// Of the calls with a live claim and a present participant that may join, it is the best
  /// established one that a participant may lead. The number of participants does not matter: after
  /// a crash, a call may have fewer than one that a newcomer has just started.
  ///
  /// Where nobody may lead any of them, a call stays for those who are in it. It takes newcomers
  /// where another may take it over, and its initiator alone where it ends with its initiator.
  public static func active(
    _ entries: CallEntries,
    present: [(member: NodeID, participation: Participation)], viewer: NodeID?,
    rules: CallRules = CallRules(), may: (Capability, NodeID) -> Bool
  ) -> ActiveCall? {
    let own = present.first { $0.member == viewer }?.participation.id
    var ids = present.map(\.participation.id)
    ids.sort()
    var best: ActiveCall?
    for (index, id) in ids.enumerated() where index == 0 || ids[index - 1] != id {
      guard let call = call(id, entries, present, rules, may: may),
        call.isLed || id == own || !rules.endsWithInitiator || call.info.initiator == viewer
      else { continue }
      if let known = best, stays(known, beside: call, own: own, rules) { continue }
      best = call
    }
    return best
  }

  /// A call with its participants; nil without a live claim, or without participants.
  private static func call(
    _ id: CallID, _ entries: CallEntries,
    _ present: [(member: NodeID, participation: Participation)], _ rules: CallRules,
    may: (Capability, NodeID) -> Bool
  ) -> ActiveCall? {
    guard let info = info(of: id, entries, may: may) else { return nil }
    let inside = present.filter { member, participation in
      participation.id == id && may(.joinCall, member)
        && entries.removal(of: member, joined: participation.joined, from: info) == nil
    }.sorted {
      let (a, b) = ($0.participation.joined, $1.participation.joined)
      return a != b ? a < b : $0.member < $1.member
    }.map(\.member)
    guard !inside.isEmpty else { return nil }
    let isLed =
      inside.contains(info.initiator)
      || !rules.endsWithInitiator && inside.contains { may(.handOver, $0) }
    return ActiveCall(
      info: info, participants: inside.sorted(), byPresence: inside,
      isLed: isLed || !rules.needsLeader)
  }

  /// Whether `a` is the channel's call rather than `b`, for a viewer that is in the call `own`.
  private static func stays(
    _ a: ActiveCall, beside b: ActiveCall, own: CallID?, _ rules: CallRules
  ) -> Bool {
    if a.isLed != b.isLed { return a.isLed }
    if !a.isLed, a.info.id == own || b.info.id == own { return a.info.id == own }
    return rules.precedes(a.info, b.info)
  }

  /// Whether ends cover all valid claims to the call; false without a valid claim.
  public static func isOver(
    _ call: CallID, _ entries: CallEntries, may: (Capability, NodeID) -> Bool
  ) -> Bool {
    ender(of: call, entries, may: may) != nil
  }

  /// The member that has ended a call; nil for one that is not over. Of several ends, that of the
  /// highest term counts.
  public static func ender(
    of call: CallID, _ entries: CallEntries, may: (Capability, NodeID) -> Bool
  ) -> NodeID? {
    let valid = valid(entries, of: call, may: may)
    guard !valid.isEmpty, live(valid, of: call, entries).isEmpty else { return nil }
    return ends(of: call, valid, entries).max { $0.end.term < $1.end.term }?.author
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

  /// How well a call is established: above `informed` by entries of two different members, since
  /// one alone could claim anything.
  private static func standing(
    of call: CallID, first: Claim, _ claims: [Claim], _ joinings: [SignedEntry],
    may: (Capability, NodeID) -> Bool
  ) -> CallStanding {
    if claims.contains(where: { $0.body.term > 1 && $0.author != first.author }) { return .lasting }
    var met = 0
    var lasting = 0
    var hasWaited = false
    for entry in joinings {
      guard case .joining(let joining) = entry.entry.body, joining.call == call,
        may(.joinCall, entry.entry.author)
      else { continue }
      if joining.stage == .lasting { lasting += 1 }
      if entry.entry.author == first.author { hasWaited = true } else { met += 1 }
    }
    if lasting > 1 { return .lasting }
    if met > 0 { return .joined }
    return first.body.knowledge == .none && !hasWaited ? .blind : .informed
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
        body.term == 1 || !entries.isRemoved(entry.entry.author, from: call)
      else { return nil }
      return Claim(entry: entry, body: body)
    }
  }

  /// The valid claims to one call that no end covers.
  private static func live(
    _ claims: [Claim], of call: CallID, _ entries: CallEntries
  ) -> [Claim] {
    var live = claims
    for (author, end) in ends(of: call, claims, entries) {
      live.removeAll {
        $0.body.term < end.term || ($0.body.term == end.term && $0.author == author)
      }
    }
    return live
  }

  /// The ends of one call that count, with their authors: those for a term that the author has
  /// claimed.
  private static func ends(
    of call: CallID, _ claims: [Claim], _ entries: CallEntries
  ) -> [(author: NodeID, end: CallEnd)] {
    entries.ends.compactMap { entry in
      let author = entry.entry.author
      guard case .end(let end) = entry.entry.body, end.call == call,
        !entries.isRemoved(author, from: call),
        claims.contains(where: { $0.author == author && $0.body.term == end.term })
      else { return nil }
      return (author, end)
    }
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

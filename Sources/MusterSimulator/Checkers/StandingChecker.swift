import MusterBase
import MusterChannel
import MusterWire

/// Checks that the call that people are in stays, and that they say truly that they are in it.
///
/// Follows what members sign, and for how long each host has been in a call together with others,
/// rather than the standing that nodes derive for a call.
public struct StandingChecker: Sendable {
  /// The stages of being in a call together; `none` covers all calls that one member is in alone.
  private enum Level: Int, Comparable {
    case none, joined, lasting

    static func < (a: Level, b: Level) -> Bool { a.rawValue < b.rawValue }
  }

  /// What members have signed about one call in the whole run.
  private struct Record: Sendable {
    var firstInitiator: NodeID?
    var joined: [NodeID] = []
    var lasting: [NodeID] = []
    var successors: [NodeID] = []

    /// The level of the call at a node that knows its first claim and these entries.
    var level: Level {
      if lasting.count > 1 || successors.contains(where: { $0 != firstInitiator }) {
        return .lasting
      }
      return joined.contains { $0 != firstInitiator } ? .joined : .none
    }

    /// The highest level of the call at any node: without that claim, the first one known is a
    /// successor's, and the first initiator counts as another member.
    var highest: Level { max(level, joined.isEmpty || successors.isEmpty ? .none : .joined) }
  }

  /// A host's uninterrupted time in a call together with others.
  private struct Together: Equatable, Sendable {
    var call: CallID
    var since: Instant
    /// The start, unless the others were gone for a moment: within one input, a node may lose its
    /// only link and get another. It may or may not begin to count anew then.
    var latestSince: Instant
  }

  private var records = PeerTable<CallID, Record>()
  private var signed = PeerTable<EntryID, Bool>()
  private var newest = PeerTable<NodeID, CallJoining>()
  private var inside: [CallID?]
  private var together: [Together?]
  /// The start of each host's uninterrupted time alone in a call.
  private var alone: [(call: CallID, since: Instant)?]

  /// The time by which a joining may come late: the interval between checks and a tick.
  private static let slack = Duration.milliseconds(500)
  /// The time alone after which the first initiator of a call may say that it has waited in it.
  private static let waiting = Duration.seconds(7)

  /// `nodes` is the number of hosts; methods take their indices, 0 to `nodes` - 1.
  public init(nodes: Int) {
    inside = Array(repeating: nil, count: nodes)
    together = Array(repeating: nil, count: nodes)
    alone = Array(repeating: nil, count: nodes)
  }

  // MARK: Signed entries

  /// Records a claim or joining of the host at `index`, which has signed it just now, or before it
  /// lost its disk. Returns the fault in it; nil for none.
  public mutating func signed(
    _ body: EntryBody, _ id: EntryID, by author: NodeID, at index: Int, _ now: Instant
  ) -> String? {
    guard signed[id] == nil else { return nil }
    signed[id] = true
    switch body {
    case .claim(let claim):
      var record = records[claim.call] ?? Record()
      if claim.term == 1 {
        record.firstInitiator = author
      } else {
        record.successors.append(author)
      }
      records[claim.call] = record
    case .joining(let joining):
      var record = records[joining.call] ?? Record()
      if !record.joined.contains(author) { record.joined.append(author) }
      if joining.stage == .lasting, !record.lasting.contains(author) {
        record.lasting.append(author)
      }
      records[joining.call] = record
      newest[author] = joining
      if joining.stage == .met, record.firstInitiator == author, let time = alone[index],
        time.call == joining.call, now - time.since >= Self.waiting
      {
        return nil
      }
      guard let time = time(in: joining.call, at: index, now), time >= joining.stage.time else {
        return "signs that it has been in call \(joining.call) with others for \(joining.stage)"
      }
    default: break
    }
    return nil
  }

  // MARK: Time in calls

  /// Records the call that a host is in after an input (nil for none), and whether others are.
  public mutating func isIn(_ call: CallID?, withOthers: Bool, at index: Int, _ now: Instant) {
    inside[index] = call
    guard let call, withOthers else {
      together[index] = nil
      if alone[index]?.call != call { alone[index] = call.map { ($0, now) } }
      return
    }
    alone[index] = nil
    if together[index]?.call != call {
      together[index] = Together(call: call, since: now, latestSince: now)
    }
  }

  /// Records that the others were gone from the host's call for a moment within an input.
  public mutating func wasAlone(at index: Int, _ now: Instant) {
    together[index]?.latestSince = now
  }

  /// The fault when a host has long been in a call with others without having signed that; nil for
  /// none. `member` is the identity of the host's node, and `known` the entries that it has: after
  /// a loss of its disk, its newest joining may be one before the last that it has signed.
  public func missing(
    of member: NodeID, at index: Int, known: () -> [SignedEntry], _ now: Instant
  ) -> String? {
    guard let (call, time) = together[index].map({ ($0.call, now - $0.latestSince) }) else {
      return nil
    }
    let said = newest[member].flatMap { $0.call == call ? $0.stage : nil }
    let due = CallJoining.Stage.allCases.last { time >= $0.time + Self.slack }
    guard let due, said.map({ $0 < due }) ?? true else { return nil }
    let isKnown = known().contains { entry in
      guard entry.entry.author == member, case .joining(let joining) = entry.entry.body else {
        return false
      }
      return joining.call == call && joining.stage >= due
    }
    if isKnown { return nil }
    return "has been in call \(call) with others for \(time) and says nothing"
  }

  private func time(in call: CallID, at index: Int, _ now: Instant) -> Duration? {
    together[index].flatMap { $0.call == call ? now - $0.since : nil }
  }

  // MARK: Moves

  /// Whether a host is in the call, as of its last input.
  public func isInside(_ call: CallID, at index: Int) -> Bool { inside[index] == call }

  /// The fault when a participant of `old`, which has not ended, is moved to the call `new`; nil
  /// for none. `isLed` says whether anybody in the old call may lead it; `known` are the entries
  /// in its document, `may` its judgement of roles.
  public func moved(
    from old: CallInfo, to new: CallInfo, isLed: Bool = true, known: [SignedEntry],
    may: (Capability, NodeID) -> Bool
  ) -> String? {
    var record = Record()
    let removed = known.compactMap { entry -> NodeID? in
      guard case .moderation(let moderation) = entry.entry.body, moderation.call == old.id else {
        return nil
      }
      return moderation.actions.contains(.remove) ? moderation.member : nil
    }
    for entry in known {
      let author = entry.entry.author
      switch entry.entry.body {
      case .claim(let claim) where claim.call == old.id:
        if claim.term == 1, may(.startCall, author) { record.firstInitiator = author }
        if claim.term > 1, may(.handOver, author), !removed.contains(author) {
          record.successors.append(author)
        }
      case .joining(let joining) where joining.call == old.id && may(.joinCall, author):
        record.joined.append(author)
        if joining.stage == .lasting { record.lasting.append(author) }
      default: break
      }
    }
    let highest = records[new.id]?.highest ?? .none
    guard isLed, record.firstInitiator != nil, record.level > highest else { return nil }
    return "is moved from call \(old.id), \(record.level), to call \(new.id), \(highest)"
  }
}

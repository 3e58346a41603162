import MusterBase

/// Decides what happens to a call whose initiator has vanished.
public struct Succession: Sendable {
  /// The action that the rules of succession require of this node.
  public enum Verdict: Equatable, Sendable {
    /// No action.
    case none
    /// This node is the successor: it is to publish a claim of this term.
    case takeOver(term: UInt32)
    /// The call ends with its initiator: this node is to leave it.
    case giveUp
  }

  /// How long an initiator may be gone (crash, cable) before that has consequences.
  public static let grace = Duration.seconds(10)
  /// How long the next in line waits for one before it to act.
  public static let turn = Duration.seconds(2)

  private struct Absence: Sendable {
    var call: CallID
    var term: UInt32
    var since: Instant
    /// This node has done its part.
    var hasActed = false
  }

  private var absence: Absence?
  /// When this node has to act, if nothing changes until then.
  public private(set) var deadline: Instant?

  /// Starts with no initiator known to be absent.
  public init() {}

  /// Updates from the current call; each vanished initiator leads to one verdict.
  public mutating func update(
    _ call: ActiveCall?, own: NodeID, isInCall: Bool, endsWithInitiator: Bool,
    mayHandOver: (NodeID) -> Bool, at now: Instant
  ) -> Verdict {
    deadline = nil
    guard let call, !call.participants.contains(call.info.initiator) else {
      absence = nil
      return .none
    }
    if absence?.call != call.info.id || absence?.term != call.info.term {
      absence = Absence(call: call.info.id, term: call.info.term, since: now)
    }
    // A node that rejoins the call is a candidate again.
    if !isInCall { absence?.hasActed = false }
    guard isInCall, let absence, !absence.hasActed else { return .none }
    var due = absence.since + Self.grace
    if !endsWithInitiator {
      // The term is a 32-bit counter; no honest call comes near its end.
      guard call.info.term < .max,
        let index = call.byPresence.filter(mayHandOver).firstIndex(of: own)
      else { return .none }
      due = due + Self.turn * index
    }
    guard due <= now else {
      deadline = due
      return .none
    }
    self.absence?.hasActed = true
    return endsWithInitiator ? .giveUp : .takeOver(term: call.info.term + 1)
  }
}

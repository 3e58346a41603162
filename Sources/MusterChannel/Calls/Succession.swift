import MusterBase

/// Decides when an active call without its initiator is taken over or ends.
public struct Succession: Sendable {
  /// The action that the rules of succession require of this node.
  public enum Verdict: Equatable, Sendable {
    /// No action.
    case none
    /// This node is the successor and must publish a claim to this term.
    case takeOver(term: UInt32)
    /// The call ends with its initiator; this node must leave the call.
    case giveUp
  }

  /// The grace: the maximum absence of an initiator (after a crash or a network failure) before a
  /// successor takes the call over or the call ends.
  public static let grace = Duration.seconds(10)
  /// The additional wait for each member ahead of this node in the order of succession.
  public static let turn = Duration.seconds(2)

  private struct Absence: Sendable {
    var call: CallID
    var term: UInt32
    var since: Instant
    /// Whether this node has acted on this absence.
    var hasActed = false
  }

  private var absence: Absence?
  /// The time at which this node last took a call over.
  private var tookOverAt: Instant?
  /// The time at which this node must act if the call does not change; nil if no action is pending.
  public private(set) var deadline: Instant?

  /// Creates a state in which no initiator is absent.
  public init() {}

  /// Updates the state from the current call; each absence leads to at most one action.
  ///
  /// - Parameter isHandedOver: whether the initiator has left the call to others, who then need not
  ///   wait for it to come back. A node that has taken a call over within the grace waits all the
  ///   same: a member that claims the call and hands it over again and again would make it sign as
  ///   many claims.
  public mutating func update(
    _ call: ActiveCall?, own: NodeID, isInCall: Bool, endsWithInitiator: Bool,
    isHandedOver: Bool = false, mayHandOver: (NodeID) -> Bool, at now: Instant
  ) -> Verdict {
    deadline = nil
    guard let call, !call.participants.contains(call.info.initiator) else {
      absence = nil
      return .none
    }
    if absence?.call != call.info.id || absence?.term != call.info.term {
      absence = Absence(call: call.info.id, term: call.info.term, since: now)
    }
    // A node that rejoins the call may take it over again.
    if !isInCall { absence?.hasActed = false }
    guard isInCall, let absence, !absence.hasActed else { return .none }
    var due = absence.since + Self.grace
    if isHandedOver, !endsWithInitiator {
      due = max(absence.since, tookOverAt.map { $0 + Self.grace } ?? absence.since)
    }
    if !endsWithInitiator {
      // The term is a 32-bit counter, which no honest call comes close to exhausting.
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
    if endsWithInitiator { return .giveUp }
    tookOverAt = now
    return .takeOver(term: call.info.term + 1)
  }
}

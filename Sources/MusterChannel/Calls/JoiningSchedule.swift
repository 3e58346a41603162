import MusterBase
import MusterWire

/// Decides when this node attests that it is in a call together with others (`CallJoining`), or
/// that it has waited for them in a call that it started.
public struct JoiningSchedule: Sendable {
  /// The time alone in a call after which its initiator says so. Longer than a node waits to hear
  /// of others before it starts a call: a newcomer that has heard of nobody has not waited so long.
  static let waiting = Duration.seconds(7)

  private var call: CallID?
  private var isAlone = false
  /// The time since which another participant has been there, or none, without a break.
  private var since = Instant.zero
  /// The time at which the next joining is due if nothing changes; nil if none is.
  public private(set) var deadline: Instant?

  /// Creates a state outside of any call.
  public init() {}

  /// Updates the state from the call that this node is in (nil for none). Returns the joining to
  /// publish; nil if none is due, or if `published`, this node's newest one, says as much already.
  public mutating func update(
    _ active: ActiveCall?, own: NodeID, published: CallJoining?, at now: Instant
  ) -> CallJoining? {
    deadline = nil
    guard let active, active.participants.contains(own) else {
      call = nil
      return nil
    }
    let isAlone = active.participants.count == 1
    if call != active.info.id || isAlone != self.isAlone {
      (call, self.isAlone, since) = (active.info.id, isAlone, now)
    }
    let known = published.flatMap { $0.call == active.info.id ? $0.stage : nil }
    if isAlone {
      guard active.info.standing == .blind, active.info.initiator == own, known == nil else {
        return nil
      }
      guard since + Self.waiting <= now else {
        deadline = since + Self.waiting
        return nil
      }
      return CallJoining(call: active.info.id, stage: .met)
    }
    var due: CallJoining?
    for stage in CallJoining.Stage.allCases where known.map({ $0 < stage }) ?? true {
      guard since + stage.time <= now else {
        deadline = since + stage.time
        break
      }
      due = CallJoining(call: active.info.id, stage: stage)
    }
    return due
  }
}

import MusterBase
import MusterWire

/// Decides when this node attests that it is in a call together with others (`CallJoining`).
public struct Togetherness: Sendable {
  private var call: CallID?
  /// The time since which another participant has been there, without a break.
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
    guard let active, active.participants.contains(own), active.participants.count > 1 else {
      call = nil
      return nil
    }
    if call != active.info.id { (call, since) = (active.info.id, now) }
    let known = published.flatMap { $0.call == active.info.id ? $0.stage : nil }
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

import MusterBase
import MusterChannel

/// Which call of a channel this node enters without being told again.
///
/// A node that joins a channel for its call enters the one there is, or starts one; if its role
/// does not permit that, it enters the next that a member starts. A node that answers calls enters
/// every one that members start, except the one that it has left.
struct CallIntent: Equatable, Sendable {
  /// The time at which this node starts a call if none is known by then; nil if this node is in the
  /// call or not about to enter a call.
  private(set) var startsAt: Instant?
  /// The latest that `startsAt` may become, whoever comes meanwhile.
  private(set) var startsBy: Instant?
  /// Whether this node enters the next call that there is.
  private(set) var joinsNext = false
  /// The call that this node has left, or declined before it was in it.
  private(set) var declined: CallID?

  /// An intent for the next call if `joinsNext` is set, otherwise for none.
  init(joinsNext: Bool) { self.joinsNext = joinsNext }

  /// Schedules the start of a call, at `latest` if not before.
  mutating func start(at due: Instant, by latest: Instant) {
    startsBy = latest
    startsAt = min(due, latest)
  }

  /// Notes that this node is in a call, by which the intent is carried out.
  mutating func entered() { self = Self(joinsNext: false) }

  /// Gives up after a refusal, except for the next call if `waits` is set.
  mutating func refused(waits: Bool) {
    (startsAt, startsBy) = (nil, nil)
    joinsNext = joinsNext && waits
  }

  /// Gives up because the user leaves or declines `call`, nil if there is none.
  mutating func decline(_ call: CallID?) {
    self = Self(joinsNext: false)
    declined = call
  }

  /// Whether this node enters a call that members are in; `answers` is whether it answers calls.
  func accepts(_ call: CallID, answers: Bool) -> Bool {
    joinsNext || answers && call != declined
  }
}

import MusterBase

/// Decides which challenges in one channel this node answers: each once, and only about recent
/// announcements.
struct AnswerLedger: Sendable {
  /// Recent announcements that a challenge may refer to.
  static let recentAnnouncements = 32
  /// An echo is valid for at most 20 s (`EchoSecret`), so later answers are useless.
  static let memory = Duration.seconds(20)
  /// What the budget admits within `memory`, 64 + 20 * 20, fits: no answer is forgotten early.
  static let answers = 512

  /// One answer for every peer that may challenge at once. Only members can challenge, but even a
  /// member that forges source addresses must not direct much traffic at a victim.
  private var budget = TokenBucket(capacity: 64, perSecond: 20)
  private var announcements = RingBuffer<Sent>(capacity: recentAnnouncements)
  private var answered = RingBuffer<Answered>(capacity: answers)

  enum Verdict: Equatable {
    case answer
    case notAsked
    case repeated
  }

  private struct Sent: Sendable {
    var counter: UInt64
    var at: Instant
  }

  /// An echo stays the same within its slot: if the answer is lost, the next announcement is
  /// challenged with the same echo.
  private struct Answered: Sendable {
    var counter: UInt64
    var echo: [UInt8]
    var at: Instant
  }

  mutating func announced(_ counter: UInt64, at now: Instant) {
    announcements.append(Sent(counter: counter, at: now))
  }

  /// Whether a challenge about `counter` is answered; the verdict `answer` also records it.
  mutating func judge(counter: UInt64, echo: [UInt8], at now: Instant) -> Verdict {
    while let first = answered.first, now - first.at > Self.memory { answered.popFirst() }
    let isRecent = (0..<announcements.count).contains {
      announcements[$0].counter == counter && now - announcements[$0].at <= Self.memory
    }
    guard isRecent else { return .notAsked }
    let isRepeated = (0..<answered.count).contains {
      answered[$0].counter == counter && answered[$0].echo == echo
    }
    guard !isRepeated, !answered.isFull, budget.take(at: now) else { return .repeated }
    answered.append(Answered(counter: counter, echo: echo, at: now))
    return .answer
  }
}

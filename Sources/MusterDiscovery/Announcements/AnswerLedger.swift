import MusterBase

/// The challenges in one channel that this node has answered: each is answered once, and only if it
/// refers to a recent announcement.
struct AnswerLedger: Sendable {
  /// The number of recent announcements that a challenge may refer to.
  static let recentAnnouncements = 32
  /// The lifetime of a remembered answer: an echo is valid for at most 20 s (`EchoSecret`), so
  /// later answers are useless.
  static let memory = Duration.seconds(20)
  /// The maximum number of remembered answers; above the 464 answers (64 + 20 * 20) that the rate
  /// limit admits within `memory`, so that the rate limit always takes effect first.
  static let answers = 512

  /// The rate limit for answers, with a burst of one for every peer of a full channel. Only members
  /// can challenge, but even a member that forges source addresses must not direct much traffic at
  /// a victim.
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

  /// An answered challenge. The echo stays the same within a time slot of `EchoSecret`: if the
  /// answer is lost, the next announcement is challenged with the same echo.
  private struct Answered: Sendable {
    var counter: UInt64
    var echo: [UInt8]
    var at: Instant
  }

  mutating func announced(_ counter: UInt64, at now: Instant) {
    announcements.append(Sent(counter: counter, at: now))
  }

  /// Decides whether to answer a challenge about announcement `counter`; with the verdict `answer`,
  /// also records the answer.
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

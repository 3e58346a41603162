import MusterBase

/// Which challenges this node owes an answer in one channel: each once, about its latest announces.
struct AnswerLedger: Sendable {
  /// Announces that a challenge may be about.
  static let recentAnnouncements = 32
  /// An echo is good for 20 s at most, so that later answers would help nobody.
  static let memory = Duration.seconds(20)
  /// What the budget lets through within `memory`, 64 + 20 * 20, fits: nothing is forgotten early.
  static let answers = 512

  /// One answer for each peer that may ask at once. Only who has the channel key can ask, but with
  /// a forged source even a member should not get much sent to a victim.
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

  /// An echo is the same for a while: the answer to a challenge may be lost, and the next announce
  /// is then asked about with the same one.
  private struct Answered: Sendable {
    var counter: UInt64
    var echo: [UInt8]
    var at: Instant
  }

  mutating func announced(_ counter: UInt64, at now: Instant) {
    announcements.append(Sent(counter: counter, at: now))
  }

  /// Whether a challenge about `counter` gets an answer; `answer` counts as done.
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

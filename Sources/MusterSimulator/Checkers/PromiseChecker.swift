import MusterBase

/// Checks what a channel promises to members in good standing, whatever others do: they see each
/// other, are in the call, and read what each of them writes.
///
/// A promise may be broken for a while, since nodes need time to learn of each other.
public struct PromiseChecker: Sendable {
  /// A promise to a member, given by its index.
  public enum Promise: Hashable, Comparable, Sendable, CustomStringConvertible {
    /// The first member has the second in its roster, with the right role.
    case sees(Int, Int)
    /// The first member is in a call together with the second.
    case meets(Int, Int)

    public var description: String {
      switch self {
      case .sees(let one, let other): "n\(one) does not see n\(other)"
      case .meets(let one, let other): "n\(one) is not in a call with n\(other)"
      }
    }
  }

  private struct Sent: Sendable {
    var text: String
    var author: Int
    var at: Instant
    /// The members that have not shown the message yet.
    var missing: [Int]
    /// Whether the author's own node has shown it, which it does once it is durable.
    var isDurable = false
    /// Whether the author crashed before that: nobody need have it.
    var isLost = false
  }

  /// The time for which a promise may be broken.
  public static let patience = Duration.seconds(4)
  /// The number of an author's newest messages that stay in everyone's history.
  public static let remembered = 10

  private var brokenSince = PeerTable<Promise, Instant>()
  private var exemptUntil: [Instant]
  private var sent: [Sent] = []

  /// `nodes` is the number of members; methods take their indices.
  public init(nodes: Int) { exemptUntil = Array(repeating: .zero, count: nodes) }

  /// The number of messages that members have written.
  public var messageCount: Int { sent.count }

  /// Promises to these members, and about them, may be broken until `time`: they have just been
  /// restarted, or have left the call.
  public mutating func exempt(_ members: some Sequence<Int>, until time: Instant) {
    for member in members { exemptUntil[member] = max(exemptUntil[member], time) }
  }

  /// Records whether a promise is kept now. Returns it if it has been broken for too long.
  public mutating func observed(
    _ promise: Promise, isKept: Bool, at now: Instant
  ) -> String? {
    let (one, other) =
      switch promise {
      case .sees(let one, let other), .meets(let one, let other): (one, other)
      }
    guard !isKept, exemptUntil[one] <= now, exemptUntil[other] <= now else {
      brokenSince[promise] = nil
      return nil
    }
    guard let since = brokenSince[promise] else {
      brokenSince[promise] = now
      return nil
    }
    return now - since > Self.patience ? promise.description : nil
  }

  // MARK: Messages

  /// Records a message, which `readers` must show.
  public mutating func wrote(_ text: String, by author: Int, for readers: [Int], at now: Instant) {
    sent.append(Sent(text: text, author: author, at: now, missing: readers.filter { $0 != author }))
  }

  /// The time at which a member wrote the message with this content; nil for other messages.
  public func writtenAt(_ content: [UInt8]) -> Instant? {
    sent.last { Array($0.text.utf8) == content }?.at
  }

  /// Records that a member shows a message.
  public mutating func shown(_ text: String, at reader: Int) {
    guard let index = sent.lastIndex(where: { $0.text == text }) else { return }
    sent[index].missing.removeAll { $0 == reader }
    if sent[index].author == reader { sent[index].isDurable = true }
  }

  /// Records that a member has crashed: it need no longer show what it has not shown yet, and what
  /// it wrote last may be lost, unless its own node has shown it.
  public mutating func crashed(_ member: Int) {
    for index in sent.indices {
      sent[index].missing.removeAll { $0 == member }
      guard sent[index].author == member, !sent[index].isDurable else { continue }
      sent[index].isLost = true
      sent[index].missing = []
    }
  }

  /// The fault if a member has not shown a message in time; nil for none.
  public func unread(at now: Instant) -> String? {
    let late = sent.first { !$0.missing.isEmpty && now - $0.at > Self.patience }
    return late.map { "n\($0.missing[0]) does not show \"\($0.text)\" of n\($0.author)" }
  }

  /// The fault if a member's history lacks one of the newest messages that were written since a
  /// time; nil for none.
  public func forgotten(
    in history: [String], of reader: Int, since: Instant = .zero, at now: Instant
  ) -> String? {
    for author in exemptUntil.indices {
      let own = sent.filter {
        $0.author == author && !$0.isLost && $0.at >= since && now - $0.at > Self.patience
      }
      let lost = own.suffix(Self.remembered).first { !history.contains($0.text) }
      if let lost { return "n\(reader) has lost \"\(lost.text)\" of n\(author)" }
    }
    return nil
  }
}

import MusterBase
import MusterChannel

/// Checks that messages are not lost, duplicated or altered, reach only their addressees, and are
/// never shown before a message that they follow.
public struct MessageChecker: Sendable {
  /// A host with one particular disk: after the loss of its disk, a host counts as a new reader.
  public struct Reader: Equatable, Sendable {
    /// The index of the host, from 0.
    public var index: Int
    /// The number of disks that the host has lost so far.
    public var memory: Int

    /// The reader at host `index` after `memory` lost disks.
    public init(index: Int, memory: Int) {
      self.index = index
      self.memory = memory
    }
  }

  /// A message as its author sent it.
  public struct Draft: Equatable, Sendable {
    /// The text as the author typed it; every reader must be shown exactly this text.
    public var text: String
    /// The entry that carries the message.
    public var id: EntryID
    /// The author of the entry.
    public var from: NodeID
    /// The only addressee; nil for the whole channel.
    public var to: NodeID?
    /// The direct predecessors that the message names, each by the first eight bytes of its entry
    /// id.
    public var after: [UInt64]

    /// `after` lists the direct predecessors; indirect ones need not be named.
    public init(text: String, id: EntryID, from: NodeID, to: NodeID?, after: [UInt64]) {
      self.text = text
      self.id = id
      self.from = from
      self.to = to
      self.after = after
    }
  }

  /// A reader's copy of a message. The times are those at which the reader's node accepted the
  /// message and emitted it, not those of the disk writes that follow.
  private struct Copy: Sendable {
    var reader: Reader
    var arrivedAt: Instant
    var shownAt: Instant?
    /// Whether the message may be shown after its successors: the reader did not know that the
    /// author may write when the message arrived, or already showed the message before a crash.
    var isUnproven: Bool
    /// The predecessors whose authors might not write to the reader's knowledge when the message
    /// was shown. The reader withholds or refuses these until they may, and does not wait for them.
    var passed: [Int] = []
  }

  private struct Sent: Sendable {
    let draft: Draft
    let author: Reader
    let at: Instant
    /// The numbers of the direct predecessors. Indirect predecessors were shown before the direct
    /// ones, except messages that a former process accepted but had no time to show.
    let before: [Int]
    var copies: [Copy] = []
    /// Whether a node has dropped it because its author had no role, which it may have got later.
    var isDropped = false
    /// The readers that showed the message and then lost it in a crash.
    var shownThenLost: [Reader] = []
  }

  /// The minimum time that a message must wait for a missing predecessor before the message may be
  /// shown (`MessageLog.patience`).
  static let patience = Duration.seconds(3)

  private var messages: [Sent] = []
  private var numbers = PeerTable<EntryID, Int>()
  private var delays: [Duration] = []
  /// The authors of the messages sent so far, in the order of their first messages.
  public private(set) var authors: [NodeID] = []

  /// A checker before the first message.
  public init() {}

  /// The number of messages sent so far; messages are numbered from 0 to `count` - 1.
  public var count: Int { messages.count }

  /// The number of the message that an entry carries; nil for entries of other kinds.
  public func number(of id: EntryID) -> Int? { numbers[id] }

  /// The message counts and delays so far, without displays at the author's host.
  public var totals: MessageTotals {
    let sorted = delays.sorted()
    func part(_ fraction: Double) -> Duration {
      sorted.isEmpty ? .zero : sorted[Int(Double(sorted.count - 1) * fraction)]
    }
    return MessageTotals(
      sent: UInt64(messages.count), shown: UInt64(delays.count), medianDelay: part(0.5),
      p99Delay: part(0.99))
  }

  // MARK: Sending and showing

  /// Records that a node has sent a message and written it to its disk. `isUnproven` is set if the
  /// node does not know its own right to write.
  public mutating func sent(
    _ draft: Draft, at author: Reader, isUnproven: Bool = false, _ now: Instant
  ) {
    let number = messages.count
    numbers[draft.id] = number
    let before = numbers.filter { draft.after.contains($0.key.prefix) }.map(\.value)
    messages.append(Sent(draft: draft, author: author, at: now, before: before))
    if !authors.contains(draft.from) { authors.append(draft.from) }
    kept(draft.id, at: author, isUnproven: isUnproven, at: now)
  }

  /// Records that a reader has received a message's entry. `isUnproven` is set if the reader does
  /// not know that the author may write.
  public mutating func kept(
    _ id: EntryID, at reader: Reader, isUnproven: Bool, at now: Instant
  ) {
    guard let number = numbers[id], index(of: reader, number) == nil else { return }
    let isShownAgain = messages[number].shownThenLost.contains(reader)
    messages[number].copies.append(
      Copy(
        reader: reader, arrivedAt: now, shownAt: nil, isUnproven: isUnproven || isShownAgain))
  }

  /// Records that a reader's process died before the message was written: the message counts as
  /// never received. If it was already shown, it may be shown again, even after its successors.
  public mutating func lost(_ id: EntryID, at reader: Reader) {
    guard let number = numbers[id] else { return }
    if messages[number].copies.contains(where: { $0.reader == reader && $0.shownAt != nil }) {
      messages[number].shownThenLost.append(reader)
    }
    messages[number].copies.removeAll { $0.reader == reader }
  }

  /// Records that a reader's disk has the message, but no record of its display: the message may be
  /// shown again, even after its successors.
  public mutating func forgotten(_ id: EntryID, at reader: Reader) {
    guard let number = numbers[id], let copy = index(of: reader, number) else { return }
    messages[number].copies[copy].shownAt = nil
    messages[number].copies[copy].isUnproven = true
  }

  /// Records that a node drops a message whose author has no role, to its knowledge: nobody need
  /// have it any more, even if the author gets a role again.
  public mutating func dropped(_ id: EntryID) {
    if let number = numbers[id] { messages[number].isDropped = true }
  }

  /// The fault in a message that the node `own` shows, nil for none; `mayWrite` returns whether the
  /// node knows that a member may write.
  public mutating func shown(
    _ message: TextMessage, at reader: Reader, own: NodeID, at now: Instant,
    mayWrite: (NodeID) -> Bool = { _ in true }
  ) -> String? {
    guard let number = numbers[message.id] else { return "a message that nobody said" }
    let sent = messages[number]
    let draft = sent.draft
    guard draft.text == message.text, draft.from == message.from, draft.to == message.to else {
      return "message \(number) altered"
    }
    guard draft.to == nil || draft.to == own || draft.from == own else {
      return "message \(number) to somebody else"
    }
    guard let copy = index(of: reader, number) else { return "message \(number) never came" }
    guard sent.copies[copy].shownAt == nil else { return "message \(number) twice" }
    if let later = overtaker(of: number, at: reader) {
      return "message \(number) after \(later), which follows it"
    }
    messages[number].copies[copy].shownAt = now
    messages[number].copies[copy].passed = sent.before.filter {
      !mayWrite(messages[$0].draft.from)
    }
    if reader.index != sent.author.index { delays.append(now - sent.at) }
    return nil
  }

  /// The author of a message; nil for other entries.
  public func author(of id: EntryID) -> NodeID? {
    numbers[id].map { messages[$0].draft.from }
  }

  /// The number of a message that was shown before its predecessor `number`; nil if there is none
  /// or if that order is permitted.
  private func overtaker(of number: Int, at reader: Reader) -> Int? {
    guard let position = index(of: reader, number) else { return nil }
    let copy = messages[number].copies[position]
    guard !copy.isUnproven else { return nil }
    return messages.indices.first { later in
      guard later != number, messages[later].before.contains(number),
        let position = index(of: reader, later)
      else { return false }
      let other = messages[later].copies[position]
      guard let shownAt = other.shownAt, !other.passed.contains(number) else { return false }
      // The wait for a missing predecessor is bounded (`MessageLog.patience`).
      let since = firstArrival(of: later, at: reader) ?? other.arrivedAt
      return copy.arrivedAt <= shownAt || shownAt - since < Self.patience
    }
  }

  /// The arrival of a message, or of the first of those that follow it: when the wait of one of
  /// these ends, the message is shown before it. Nil if none has arrived.
  private func firstArrival(of number: Int, at reader: Reader) -> Instant? {
    var followers = NumberSet()
    var first: Instant?
    for later in number..<messages.count {
      guard
        later == number
          || messages[later].before.contains(where: { followers.contains(UInt64($0)) })
      else { continue }
      _ = followers.insert(UInt64(later))
      first = soonest(first, index(of: reader, later).map { messages[later].copies[$0].arrivedAt })
    }
    return first
  }

  private func index(of reader: Reader, _ number: Int) -> Int? {
    messages[number].copies.firstIndex { $0.reader == reader }
  }

  // MARK: Completeness

  /// The numbers of the messages that at least one of `readers` has received and that all of them
  /// must therefore have. If there are more messages than a document is guaranteed to keep, only
  /// those count that at least one reader still holds, according to `stillHolds`.
  public func held(
    by readers: [Reader], stillHolds: (EntryID, Reader) -> Bool = { _, _ in true }
  ) -> [Int] {
    let mayBeDropped = messages.count > Limits.messagesPerAuthor
    return messages.indices.filter { number in
      !messages[number].isDropped
        && messages[number].copies.contains { copy in
          readers.contains(copy.reader)
            && (!mayBeDropped || stillHolds(messages[number].draft.id, copy.reader))
        }
    }
  }

  /// The fault when a node's history lacks a required message or contains a message twice; nil for
  /// none.
  public func fault(
    in history: [EntryID], of own: NodeID, among required: [Int], isAuthor: (NodeID) -> Bool
  ) -> String? {
    let sorted = history.sorted()
    if zip(sorted, sorted.dropFirst()).contains(where: { $0 == $1 }) {
      return "has a message twice"
    }
    var present = NumberSet()
    for id in history {
      if let number = numbers[id] { _ = present.insert(UInt64(number)) }
    }
    let missing = required.first { number in
      let draft = messages[number].draft
      let isForIt = draft.to == nil || draft.to == own || draft.from == own
      return isForIt && isAuthor(draft.from) && !present.contains(UInt64(number))
    }
    return missing.map { "lacks message \($0)" }
  }
}

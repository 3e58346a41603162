import MusterBase

/// A text message as it is shown: to all members, or between this node and one other.
public struct TextMessage: Equatable, Sendable {
  /// The id of the message's entry in the document.
  public var id: EntryID
  /// The author, which may have left since.
  public var from: NodeID
  /// The recipient; nil for a message to all members.
  public var to: NodeID?
  /// The sanitised text, on one line.
  public var text: String
  /// The time of sending in milliseconds since 1970, by the author's wall clock; for display only.
  public var sentAt: UInt64
  /// The counter by which messages are listed (`MessageOrder`); the author breaks ties.
  public var counter: UInt64

  /// Sanitises `text`, puts it on one line and limits it to `Limits.textBytes` bytes.
  public init(
    id: EntryID, from: NodeID, to: NodeID?, text: String, sentAt: UInt64, counter: UInt64
  ) {
    self.id = id
    self.from = from
    self.to = to
    self.text = Self.shown(text)
    self.sentAt = sentAt
    self.counter = counter
  }

  /// The text on one line, so that it cannot imitate another member's message on another line.
  private static func shown(_ text: String) -> String {
    var line = ""
    for scalar in text.unicodeScalars {
      line.unicodeScalars.append(scalar == "\n" || scalar == "\r" || scalar == "\t" ? " " : scalar)
    }
    return DisplayText.sanitized(line, limit: Limits.textBytes)
  }
}

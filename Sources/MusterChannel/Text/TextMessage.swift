import MusterBase

/// A message as it is shown: to everyone, or to this node or from it alone.
public struct TextMessage: Equatable, Sendable {
  public var id: EntryID
  public var from: NodeID
  /// Nil for everyone.
  public var to: NodeID?
  /// One line, safe to show.
  public var text: String
  /// Milliseconds since 1970 by the author's wall clock; for display only.
  public var sentAt: UInt64
  public var lamport: UInt64

  public init(
    id: EntryID, from: NodeID, to: NodeID?, text: String, sentAt: UInt64, lamport: UInt64
  ) {
    self.id = id
    self.from = from
    self.to = to
    self.text = Self.shown(text)
    self.sentAt = sentAt
    self.lamport = lamport
  }

  /// On one line, so that no text can look like that of another member on the next.
  private static func shown(_ text: String) -> String {
    var line = ""
    for scalar in text.unicodeScalars {
      line.unicodeScalars.append(scalar == "\n" || scalar == "\r" || scalar == "\t" ? " " : scalar)
    }
    return DisplayText.sanitized(line, limit: Limits.textBytes)
  }
}

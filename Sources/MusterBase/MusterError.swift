/// What went wrong, in words for people: the fact, and what to do about it.
public struct MusterError: Error, Equatable, Sendable, CustomStringConvertible {
  public enum Kind: Sendable {
    /// The request makes no sense: exit code 2.
    case usage
    /// The request could not be carried out: exit code 1.
    case failure
  }

  public var kind: Kind
  public var message: String
  public var hint: String

  public init(_ message: String, hint: String, kind: Kind = .failure) {
    self.kind = kind
    self.message = message
    self.hint = hint
  }

  public var description: String { hint.isEmpty ? message : "\(message): \(hint)" }
}

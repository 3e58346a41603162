/// An error to be shown to people: what went wrong, and what to do about it.
public struct MusterError: Error, Equatable, Sendable, CustomStringConvertible {
  /// The kind of error, which decides the exit code.
  public enum Kind: Sendable {
    /// The request makes no sense: exit code 2.
    case usage
    /// The request could not be carried out: exit code 1.
    case failure
  }

  /// Decides the exit code.
  public var kind: Kind
  /// What went wrong, without a full stop.
  public var message: String
  /// What to do about it; empty if there is nothing to advise.
  public var hint: String

  public init(_ message: String, hint: String, kind: Kind = .failure) {
    self.kind = kind
    self.message = message
    self.hint = hint
  }

  /// `message: hint`, as printed behind `muster: `.
  public var description: String { hint.isEmpty ? message : "\(message): \(hint)" }
}

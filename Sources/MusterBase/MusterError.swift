/// An error to be shown to people, with the problem and a remedy.
public struct MusterError: Error, Equatable, Sendable, CustomStringConvertible {
  /// The kind of an error, which determines the exit code.
  public enum Kind: Sendable {
    /// The request is invalid; exit code 2.
    case usage
    /// The request could not be carried out; exit code 1.
    case failure
  }

  /// The kind, which determines the exit code.
  public var kind: Kind
  /// The problem, without a full stop.
  public var message: String
  /// The remedy; empty if there is none to suggest.
  public var hint: String

  public init(_ message: String, hint: String, kind: Kind = .failure) {
    self.kind = kind
    self.message = message
    self.hint = hint
  }

  /// The text `message: hint`, or only the message if there is no hint; printed after `muster: `.
  public var description: String { hint.isEmpty ? message : "\(message): \(hint)" }
}

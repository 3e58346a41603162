/// The error of a codec that rejected its input or could not start.
public struct CodecError: Error, Equatable, Sendable, CustomStringConvertible {
  /// The failure, in words for a log line.
  public let what: String

  public init(_ what: String) { self.what = what }

  /// The same text as `what`.
  public var description: String { what }
}

/// A codec refused its input or could not start.
public struct CodecError: Error, Equatable, Sendable, CustomStringConvertible {
  public let what: String

  public init(_ what: String) { self.what = what }

  public var description: String { what }
}

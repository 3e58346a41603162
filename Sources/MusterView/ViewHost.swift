/// What the page's server asks of the node.
public struct ViewHost: Sendable {
  public var snapshot: @Sendable () async -> ViewSnapshot
  /// Does one command, in the JSON of `muster join --json`; answers what went wrong, if anything.
  public var perform: @Sendable (_ commandJSON: [UInt8]) async -> String?

  public init(
    snapshot: @escaping @Sendable () async -> ViewSnapshot,
    perform: @escaping @Sendable (_ commandJSON: [UInt8]) async -> String?
  ) {
    self.snapshot = snapshot
    self.perform = perform
  }
}

/// Why the page cannot be served, and what to do about it.
public struct ViewError: Error, Equatable, Sendable, CustomStringConvertible {
  public var message: String
  public var hint: String

  public init(message: String, hint: String) {
    self.message = message
    self.hint = hint
  }

  public var description: String { "\(message): \(hint)" }
}

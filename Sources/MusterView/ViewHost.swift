import Muster

/// What the page's server asks of the node.
public struct ViewHost: Sendable {
  /// Everything that the page shows, as it is now.
  public var snapshot: @Sendable () async -> ViewSnapshot
  /// Does one command; answers what went wrong, if anything.
  public var perform: @Sendable (Command) async -> String?
  /// The number of open pages has changed; called on the server's event loop.
  public var pagesChanged: @Sendable (Int) -> Void

  /// A host that answers from any thread.
  public init(
    snapshot: @escaping @Sendable () async -> ViewSnapshot,
    perform: @escaping @Sendable (Command) async -> String?,
    pagesChanged: @escaping @Sendable (Int) -> Void = { _ in }
  ) {
    self.snapshot = snapshot
    self.perform = perform
    self.pagesChanged = pagesChanged
  }
}

/// Why the page cannot be served, and what to do about it.
public struct ViewError: Error, Equatable, Sendable, CustomStringConvertible {
  /// The problem, in one sentence.
  public var message: String
  /// What to do about it.
  public var hint: String

  /// An error in words.
  public init(message: String, hint: String) {
    self.message = message
    self.hint = hint
  }

  /// Both in one line.
  public var description: String { "\(message): \(hint)" }
}

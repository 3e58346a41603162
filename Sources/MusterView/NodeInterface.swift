import Muster

/// The functions of a node that the page's server uses.
public struct NodeInterface: Sendable {
  /// Returns the current state of the node, for display on the page.
  public var snapshot: @Sendable () async -> ViewSnapshot
  /// Carries out a command; returns an error message, or nil on success.
  public var perform: @Sendable (Command) async -> String?
  /// Receives the number of open pages after every change; called on the server's event loop.
  public var pagesChanged: @Sendable (Int) -> Void

  /// Creates an interface whose functions may be called from any thread.
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

/// An error that prevents serving the page, with a remedy.
public struct ViewError: Error, Equatable, Sendable, CustomStringConvertible {
  /// The problem, in one sentence.
  public var message: String
  /// The remedy.
  public var hint: String

  /// Creates an error from problem and remedy.
  public init(message: String, hint: String) {
    self.message = message
    self.hint = hint
  }

  /// The problem and the remedy in one line.
  public var description: String { "\(message): \(hint)" }
}

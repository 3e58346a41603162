import Muster

/// The functions of a node that the page's server uses.
public struct NodeInterface: Sendable {
  /// Returns the current state of the node, for display on the page.
  public var snapshot: @Sendable () async -> ViewSnapshot
  /// Carries out a command; returns an error message, or nil on success.
  public var perform: @Sendable (Command) async -> String?
  /// Receives the tiles that the open pages show, of all pages together, and nil when no page is
  /// open any more; called after every change, on the server's event loop.
  public var show: @Sendable ([ShownTile]?) -> Void

  /// Creates an interface whose functions may be called from any thread.
  public init(
    snapshot: @escaping @Sendable () async -> ViewSnapshot,
    perform: @escaping @Sendable (Command) async -> String?,
    show: @escaping @Sendable ([ShownTile]?) -> Void = { _ in }
  ) {
    self.snapshot = snapshot
    self.perform = perform
    self.show = show
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

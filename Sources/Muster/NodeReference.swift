import MusterBase
import MusterPipeline
import MusterSystem

/// The node, for what calls it but must not hold it: its sockets and media threads.
final class NodeReference: @unchecked Sendable {
  private let loop: PollLoop
  // Written once, on the event loop, and read only there.
  private weak var node: MusterNode?

  init(on loop: PollLoop) { self.loop = loop }

  /// Sets the node; what came before was for nobody.
  func set(_ node: MusterNode) async { await loop.submit { self.node = node } }

  /// Calls `body` on the event loop, from any thread, unless the node is gone by then.
  func execute(_ body: @escaping @Sendable (isolated MusterNode) -> Void) {
    loop.execute { self.onLoop(body) }
  }

  /// Calls `body` at once; for callers on the event loop.
  func onLoop(_ body: @Sendable (isolated MusterNode) -> Void) { node?.assumeIsolated { body($0) } }

  /// Reports a problem of a thread to the user.
  func warn(_ error: MusterError) { execute { $0.emit(.warning(error)) } }
}

import Muster
import MusterBase
import MusterCrypto
import NIOPosix

/// The call page of one node, with a server that receives the node's events and frames. It holds
/// the node, and stops serving when it is released.
public final class CallPage: Sendable {
  /// The URL to open, with the token that authorises a browser.
  public let url: String
  private let server: ViewServer
  private let following: Task<Void, Never>

  private init(url: String, server: ViewServer, following: Task<Void, Never>) {
    self.url = url
    self.server = server
    self.following = following
  }

  deinit {
    following.cancel()
    server.close()
  }

  /// Serves a page for `node` on 127.0.0.1 at `port`, or at a free port if `port` is 0.
  ///
  /// Throws if the port is not available.
  public static func start(
    _ node: MusterNode, port: Int
  ) async throws(MusterError) -> CallPage {
    var entropy = Entropy.system
    let token = Hex.encode(entropy.bytes(16))
    let bridge = PageBridge(node: node)
    let events = node.events()
    let (shown, show) = AsyncStream<[ShownTile]?>.makeStream(bufferingPolicy: .bufferingNewest(1))
    let interface = NodeInterface(
      snapshot: { await bridge.snapshot() }, perform: { await bridge.perform($0) },
      show: { show.yield($0) })
    let server = ViewServer(node: interface, port: port, token: token)
    do {
      let url = try await server.start(group: MultiThreadedEventLoopGroup.singleton)
      let following = Task {
        async let showing: Void = bridge.showFrames(on: server, of: shown)
        for await event in events {
          await bridge.noticed(event.event)
          server.changed()
        }
        show.finish()
        await showing
        // What the pages showed last must not be requested after this.
        await bridge.end()
      }
      return CallPage(url: url, server: server, following: following)
    } catch {
      throw MusterError(error.message, hint: error.hint)
    }
  }

  /// Closes the open pages and stops serving; the node continues.
  public func stop() async {
    following.cancel()
    await server.stop()
    await following.value
  }
}

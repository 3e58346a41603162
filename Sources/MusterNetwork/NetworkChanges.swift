import CMusterShims
import MusterSystem
import NIOCore
import NIOPosix

/// Reports changes of this machine's interfaces, addresses and routes.
///
/// The report has no details: the receiver lists the interfaces again. The kernel may drop
/// notifications (netlink(7)), so occasional polling is still needed. Ends with this object.
package final class NetworkChanges: Sendable {
  private let channel: any NIOCore.Channel

  private init(_ channel: any NIOCore.Channel) { self.channel = channel }

  deinit { channel.close(promise: nil) }

  /// Calls `changed` on the loop shortly after each change; nil if netlink is not available.
  package static func watch(
    on loop: any EventLoop, changed: @escaping @Sendable () -> Void
  ) async -> NetworkChanges? {
    let descriptor = muster_network_changes_open()
    guard descriptor >= 0 else { return nil }
    let channel = try? await NIOPipeBootstrap(group: loop)
      .channelInitializer { channel in
        channel.eventLoop.makeCompletedFuture {
          try channel.pipeline.syncOperations.addHandler(Listener(changed))
        }
      }
      .takingOwnershipOfDescriptor(input: descriptor).get()
    guard let channel else {
      MusterSystem.close(descriptor)
      return nil
    }
    return NetworkChanges(channel)
  }

  /// Stops watching.
  package func close() async { try? await channel.close() }

  private final class Listener: ChannelInboundHandler, Sendable {
    package typealias InboundIn = ByteBuffer

    private let changed: @Sendable () -> Void

    init(_ changed: @escaping @Sendable () -> Void) { self.changed = changed }

    func channelReadComplete(context: ChannelHandlerContext) { changed() }

    func errorCaught(context: ChannelHandlerContext, error: any Error) {}
  }
}

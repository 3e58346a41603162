import CMusterShims
import Glibc
import NIOCore
import NIOPosix

/// Tells when interfaces, addresses or routes of this machine have changed.
///
/// What exactly changed is looked up anew. The kernel may drop such news (netlink(7)), so that
/// looking now and then stays necessary.
package final class NetworkChanges: Sendable {
  private let channel: any NIOCore.Channel

  private init(_ channel: any NIOCore.Channel) { self.channel = channel }

  /// Calls `changed` on the loop, soon after a change; nil where the kernel tells nothing.
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
      Glibc.close(descriptor)
      return nil
    }
    return NetworkChanges(channel)
  }

  package func close() async { try? await channel.close() }

  private final class Listener: ChannelInboundHandler, Sendable {
    package typealias InboundIn = ByteBuffer

    private let changed: @Sendable () -> Void

    package init(_ changed: @escaping @Sendable () -> Void) { self.changed = changed }

    package func channelReadComplete(context: ChannelHandlerContext) { changed() }

    package func errorCaught(context: ChannelHandlerContext, error: any Error) {}
  }
}

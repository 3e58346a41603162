import MusterBase
import NIOCore

/// A datagram and the address that it came from.
package struct ReceivedDatagram: Sendable {
  /// The UDP payload.
  package let bytes: [UInt8]
  /// Where it came from.
  package let source: Address
}

/// Passes on the datagrams of each read, on the event loop: up to 16 that one system call brought,
/// so that their outputs leave together.
package final class DatagramHandler: ChannelInboundHandler {
  package typealias InboundIn = AddressedEnvelope<ByteBuffer>

  private var datagrams: [ReceivedDatagram] = []
  private let receive: @Sendable ([ReceivedDatagram]) -> Void

  /// Calls `receive` with the datagrams of every read, in the order of their arrival.
  package init(receive: @escaping @Sendable ([ReceivedDatagram]) -> Void) {
    self.receive = receive
  }

  package func channelRead(context: ChannelHandlerContext, data: NIOAny) {
    let envelope = unwrapInboundIn(data)
    guard let source = Address(envelope.remoteAddress) else { return }
    datagrams.append(
      ReceivedDatagram(bytes: envelope.data.withUnsafeReadableBytes { Array($0) }, source: source))
  }

  package func channelReadComplete(context: ChannelHandlerContext) {
    guard !datagrams.isEmpty else { return }
    receive(datagrams)
    datagrams.removeAll(keepingCapacity: true)
  }

  /// Errors of single datagrams (ICMP errors, full buffers) are ignored: the engines retransmit.
  package func errorCaught(context: ChannelHandlerContext, error: any Error) {}
}

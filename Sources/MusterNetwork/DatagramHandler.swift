import MusterBase
import NIOCore

/// A received datagram and its source address.
package struct ReceivedDatagram: Sendable {
  /// The UDP payload.
  package let bytes: [UInt8]
  /// The source address.
  package let source: Address
}

/// Passes on all datagrams of a turn of the event loop together, so that their outputs can be sent
/// together. One `recvmmsg` returns up to 16 datagrams, and a turn can make several such calls.
package final class DatagramHandler: ChannelInboundHandler {
  package typealias InboundIn = AddressedEnvelope<ByteBuffer>

  private var datagrams: [ReceivedDatagram] = []
  private let receive: @Sendable ([ReceivedDatagram]) -> Void

  /// Creates a handler that calls `receive` with the datagrams of every read, in the order of
  /// arrival.
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

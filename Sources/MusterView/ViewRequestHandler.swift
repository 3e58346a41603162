import NIOCore
import NIOHTTP1

/// Answers plain HTTP requests with the page's files, or with a one-sentence refusal.
final class ViewRequestHandler: ChannelInboundHandler, RemovableChannelHandler {
  typealias InboundIn = HTTPServerRequestPart
  typealias OutboundOut = HTTPServerResponsePart

  static let name = "ViewRequestHandler"
  /// The time after which a connection is closed; browsers on the same machine need less.
  private static let patience = TimeAmount.seconds(10)
  /// The maximum size of a request's body in bytes; a longer body closes the connection.
  private static let bodyBytes = 64 * 1024

  private let gate: ViewGuard
  private var request: HTTPRequestHead?
  private var received = 0
  private var timeout: Scheduled<Void>?

  init(gate: ViewGuard) { self.gate = gate }

  func handlerAdded(context: ChannelHandlerContext) {
    let channel = context.channel
    timeout = context.eventLoop.scheduleTask(in: Self.patience) {
      channel.close(promise: nil)
    }
  }

  func handlerRemoved(context: ChannelHandlerContext) { timeout?.cancel() }

  func channelRead(context: ChannelHandlerContext, data: NIOAny) {
    switch unwrapInboundIn(data) {
    case .head(let head):
      request = head
    case .body(let bytes):
      received += bytes.readableBytes
      if received > Self.bodyBytes { context.close(promise: nil) }
    case .end:
      // One request per connection is enough, since the page has only six files.
      if let request { answer(request, context: context) }
      request = nil
    }
  }

  /// Closes the connection on malformed HTTP. A refused upgrade is also reported here, but is then
  /// answered as a request.
  func errorCaught(context: ChannelHandlerContext, error: any Error) {
    if error is HTTPParserError { context.close(promise: nil) }
  }

  private func answer(_ request: HTTPRequestHead, context: ChannelHandlerContext) {
    let port = context.channel.localAddress?.port ?? 0
    switch gate.verdict(on: request, port: port) {
    case .asset(let index):
      send(
        .ok, ViewAssets.mediaType(of: index), ViewAssets.body(of: index, token: gate.token),
        to: request, port: port, context: context)
    case .socket:
      refuse(.upgradeRequired, "This address speaks WebSocket.", request, port, context)
    case .refused(let status, let sentence):
      refuse(status, sentence, request, port, context)
    }
  }

  private func refuse(
    _ status: HTTPResponseStatus, _ sentence: String, _ request: HTTPRequestHead, _ port: Int,
    _ context: ChannelHandlerContext
  ) {
    let body = ByteBuffer(string: sentence + "\n")
    send(status, "text/plain; charset=utf-8", body, to: request, port: port, context: context)
  }

  private func send(
    _ status: HTTPResponseStatus, _ mediaType: String, _ body: ByteBuffer,
    to request: HTTPRequestHead, port: Int, context: ChannelHandlerContext
  ) {
    var head = HTTPResponseHead(
      version: .http1_1, status: status, headers: ViewAssets.headers(port: port))
    head.headers.add(name: "content-type", value: mediaType)
    head.headers.add(name: "content-length", value: String(body.readableBytes))
    if status == .methodNotAllowed { head.headers.add(name: "allow", value: "GET, HEAD") }
    if status == .upgradeRequired { head.headers.add(name: "upgrade", value: "websocket") }
    context.write(wrapOutboundOut(.head(head)), promise: nil)
    if request.method != .HEAD {
      context.write(wrapOutboundOut(.body(.byteBuffer(body))), promise: nil)
    }
    let channel = context.channel
    context.writeAndFlush(wrapOutboundOut(.end(nil))).whenComplete { _ in
      channel.close(promise: nil)
    }
  }
}

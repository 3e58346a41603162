import NIOCore
import NIOWebSocket

/// One open page: commands in, snapshots and frames out, and never more than the socket takes.
///
/// Lives on the server's event loop. What a page does not read in time is not kept for it: a
/// snapshot is replaced by the next, and video goes on at the next keyframe.
final class ViewClient: ChannelInboundHandler {
  typealias InboundIn = WebSocketFrame
  typealias OutboundOut = WebSocketFrame

  /// A page that reads nothing for so long has been suspended or is not a page.
  static let patience = TimeAmount.seconds(30)
  /// Commands whose answer is still outstanding; a person sends one at a time.
  static let commandsInFlight = 32

  /// Whether the first snapshot, and with it the request for keyframes, is still to come.
  var isNew = true
  /// The command that the next one waits for.
  var lastCommand: Task<Void, Never>?

  private let hub: ViewHub
  private var context: ChannelHandlerContext?
  /// Tiles of which this page has not had a keyframe, or has missed a frame since.
  private var isBehind = [Bool](repeating: true, count: 256)
  private var hasMissedSnapshot = false
  private var pendingCommands = 0
  private var suspension: Scheduled<Void>?

  init(hub: ViewHub) { self.hub = hub }

  /// Sends a frame's message unless the page is behind; true when it reads but needs a keyframe.
  func deliver(_ message: ByteBuffer, tile: UInt8, isKeyframe: Bool) -> Bool {
    guard let context else { return false }
    guard context.channel.isWritable else {
      isBehind[Int(tile)] = true
      return false
    }
    if isKeyframe { isBehind[Int(tile)] = false }
    if !isBehind[Int(tile)] { write(.binary, message, context) }
    return isBehind[Int(tile)]
  }

  /// Sends the newest snapshot, or remembers that one is due.
  func show(_ snapshot: ByteBuffer) {
    guard let context else { return }
    hasMissedSnapshot = !context.channel.isWritable
    if !hasMissedSnapshot { write(.text, snapshot, context) }
  }

  /// Sends the answer to a command that could not be done.
  func answered(_ error: ByteBuffer?) {
    pendingCommands -= 1
    guard let error, let context, context.channel.isWritable else { return }
    write(.text, error, context)
  }

  /// Says good-bye and closes.
  func close(_ code: WebSocketErrorCode) {
    guard let context else { return }
    var reason = context.channel.allocator.buffer(capacity: 2)
    reason.write(webSocketErrorCode: code)
    let frame = WebSocketFrame(fin: true, opcode: .connectionClose, data: reason)
    context.writeAndFlush(wrapOutboundOut(frame), promise: nil)
    // Not when the write completes: a page that does not read would keep the connection open.
    context.close(promise: nil)
  }

  func handlerAdded(context: ChannelHandlerContext) {
    self.context = context
    if !hub.add(self) { close(.unknown(1013)) }
  }

  func handlerRemoved(context: ChannelHandlerContext) {
    suspension?.cancel()
    self.context = nil
    hub.remove(self)
  }

  func channelInactive(context: ChannelHandlerContext) {
    hub.remove(self)
    context.fireChannelInactive()
  }

  func channelRead(context: ChannelHandlerContext, data: NIOAny) {
    let frame = unwrapInboundIn(data)
    switch frame.opcode {
    case .text:
      guard pendingCommands < Self.commandsInFlight else { return close(.policyViolation) }
      pendingCommands += 1
      hub.perform(Array(frame.unmaskedData.readableBytesView), for: self)
    case .ping:
      // A client that pings without reading the answers gets none.
      if context.channel.isWritable { write(.pong, frame.unmaskedData, context) }
    case .connectionClose:
      close(.normalClosure)
    case .pong, .continuation:
      break
    default:
      close(.unacceptableData)
    }
  }

  func channelWritabilityChanged(context: ChannelHandlerContext) {
    suspension?.cancel()
    suspension = nil
    if context.channel.isWritable {
      if hasMissedSnapshot { hub.changed() }
    } else {
      let channel = context.channel
      suspension = context.eventLoop.scheduleTask(in: Self.patience) {
        channel.close(promise: nil)
      }
    }
    context.fireChannelWritabilityChanged()
  }

  func errorCaught(context: ChannelHandlerContext, error: any Error) {
    context.close(promise: nil)
  }

  private func write(
    _ opcode: WebSocketOpcode, _ data: ByteBuffer, _ context: ChannelHandlerContext
  ) {
    let frame = WebSocketFrame(fin: true, opcode: opcode, data: data)
    context.writeAndFlush(wrapOutboundOut(frame), promise: nil)
  }
}

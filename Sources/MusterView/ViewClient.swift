import NIOCore
import NIOWebSocket

/// The server's end of the connection to one page: receives commands, sends snapshots and frames.
///
/// The handler runs on the server's event loop. It queues nothing for a page that reads too slowly:
/// a snapshot is replaced by the next one, and video resumes at the next keyframe.
final class ViewClient: ChannelInboundHandler {
  typealias InboundIn = WebSocketFrame
  typealias OutboundOut = WebSocketFrame

  /// The time after which a client that reads nothing is disconnected: the page has been suspended,
  /// or the client is not a page.
  static let patience = TimeAmount.seconds(30)
  /// The maximum number of unanswered commands; a person sends one at a time.
  static let commandsInFlight = 32

  /// The tiles that the page shows, each once; none until the page says so.
  private(set) var shown: [ShownTile] = []
  /// The task of the last command, which the next command awaits.
  var lastCommand: Task<Void, Never>?

  private let hub: ViewHub
  private var context: ChannelHandlerContext?
  /// For each tile, whether the page lacks a keyframe or has missed a frame since the last
  /// keyframe.
  private var isBehind = [Bool](repeating: true, count: 256)
  private var hasMissedSnapshot = false
  private var pendingCommands = 0
  private var suspension: Scheduled<Void>?

  init(hub: ViewHub) { self.hub = hub }

  /// Sets the tiles that the page shows; returns the numbers of those that it did not show before.
  func show(_ tiles: [ShownTile]) -> [UInt8] {
    let before = shown.map(\.tile)
    shown = []
    for tile in tiles where !shown.contains(where: { $0.tile == tile.tile }) { shown.append(tile) }
    return shown.map(\.tile).filter { !before.contains($0) }
  }

  /// Sends a frame unless the page does not show its tile or is behind; returns true if a writable
  /// page needs a keyframe.
  func deliver(_ message: ByteBuffer, tile: UInt8, isKeyframe: Bool) -> Bool {
    guard let context else { return false }
    guard shown.contains(where: { $0.tile == tile }) else {
      isBehind[Int(tile)] = true
      return false
    }
    guard context.channel.isWritable else {
      isBehind[Int(tile)] = true
      return false
    }
    if isKeyframe { isBehind[Int(tile)] = false }
    if !isBehind[Int(tile)] { write(.binary, message, context) }
    return isBehind[Int(tile)]
  }

  /// Sends a snapshot, or notes that a page that reads too slowly has missed a snapshot.
  func update(_ snapshot: ByteBuffer) {
    guard let context else { return }
    hasMissedSnapshot = !context.channel.isWritable
    if !hasMissedSnapshot { write(.text, snapshot, context) }
  }

  /// Completes a command, and sends the error message if the command failed.
  func answered(_ error: ByteBuffer?) {
    pendingCommands -= 1
    guard let error, let context, context.channel.isWritable else { return }
    write(.text, error, context)
  }

  /// Sends a close frame and closes the connection.
  func close(_ code: WebSocketErrorCode) {
    guard let context else { return }
    var reason = context.channel.allocator.buffer(capacity: 2)
    reason.write(webSocketErrorCode: code)
    let frame = WebSocketFrame(fin: true, opcode: .connectionClose, data: reason)
    context.writeAndFlush(wrapOutboundOut(frame), promise: nil)
    // The close does not wait for the write: a page that does not read would keep the connection
    // open.
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
      hub.receive(Array(frame.unmaskedData.readableBytesView), from: self)
    case .ping:
      // A client that does not read gets no answer to its pings.
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

import Muster
import NIOCore
import NIOWebSocket

/// The set of open pages, which distributes snapshots and frames; confined to one event loop.
final class ViewHub {
  /// The maximum number of open pages, which bounds the memory for their socket buffers.
  static let clients = 16
  /// The minimum interval between snapshots: ten per second look live, and more only add cost.
  private static let snapshotInterval = TimeAmount.milliseconds(100)
  /// The interval of snapshots without a reported change, which keep the statistics current and
  /// show that the node responds; the page waits for 2.5 s (`SILENCE` of worker.js).
  private static let heartbeat = TimeAmount.seconds(1)
  /// The minimum interval between keyframe requests; senders answer at most one per 300 ms.
  private static let keyframeInterval = TimeAmount.milliseconds(300)

  private let node: NodeInterface
  private let loop: any EventLoop
  private let clientsChanged: @Sendable (Int) -> Void
  private var clients: [ViewClient] = []
  private var newest: ViewSnapshot?
  private var askedAt: [String: NIODeadline] = [:]
  private var publishedAt = NIODeadline.uptimeNanoseconds(0)
  private var isFetching = false
  private var isScheduled = false
  private var isStale = false
  private var isClosed = false
  private var timer: RepeatedTask?

  init(node: NodeInterface, loop: any EventLoop, clientsChanged: @escaping @Sendable (Int) -> Void)
  {
    self.node = node
    self.loop = loop
    self.clientsChanged = clientsChanged
  }

  /// Adds a page; returns false if the maximum number of pages is open, or none may be any more.
  func add(_ client: ViewClient) -> Bool {
    guard !isClosed, clients.count < Self.clients else { return false }
    clients.append(client)
    clientsChanged(clients.count)
    shownChanged()
    if timer == nil {
      let hub = NIOLoopBound(self, eventLoop: loop)
      timer = loop.scheduleRepeatedTask(initialDelay: Self.heartbeat, delay: Self.heartbeat) { _ in
        hub.value.changed()
      }
    }
    changed()
    return true
  }

  func remove(_ client: ViewClient) {
    guard clients.contains(where: { $0 === client }) else { return }
    clients.removeAll { $0 === client }
    clientsChanged(clients.count)
    shownChanged()
    guard clients.isEmpty else { return }
    timer?.cancel()
    timer = nil
    newest = nil
    askedAt = [:]
  }

  /// Closes all pages for good.
  func closeAll() {
    isClosed = true
    // Closing removes the client from the list, so the list must not be iterated.
    while let client = clients.last {
      remove(client)
      client.close(.goingAway)
    }
  }

  func deliver(_ frame: ViewFrame) {
    // Decoding an empty frame would fail and close the page's decoder.
    guard !clients.isEmpty, !frame.data.isEmpty else { return }
    let message = frame.message
    var isKeyframeMissing = false
    // The loop runs backwards by index, because a client whose connection fails meanwhile removes
    // itself.
    for index in clients.indices.reversed() where index < clients.count {
      let client = clients[index]
      if client.deliver(message, tile: frame.tile, isKeyframe: frame.isKeyframe) {
        isKeyframeMissing = true
      }
    }
    if isKeyframeMissing { requestKeyframes { $0 == frame.tile } }
  }

  /// Schedules a snapshot; calls in quick succession share one snapshot.
  func changed() {
    guard !clients.isEmpty else { return }
    guard !isFetching else {
      isStale = true
      return
    }
    guard !isScheduled else { return }
    let due = publishedAt + Self.snapshotInterval
    isScheduled = true
    let hub = NIOLoopBound(self, eventLoop: loop)
    loop.scheduleTask(deadline: max(due, .now())) { hub.value.fetch() }
  }

  /// Handles a message of a page.
  func receive(_ json: [UInt8], from client: ViewClient) {
    do {
      switch try PageMessage(json: json) {
      case .command(let command): perform(command, for: client)
      case .show(let tiles):
        let added = client.show(tiles)
        client.answered(nil)
        shownChanged()
        requestKeyframes { added.contains($0) }
      }
    } catch { client.answered(ViewMessage(message: "\(error)").encoded) }
  }

  private func shownChanged() {
    node.show(clients.isEmpty ? nil : clients.flatMap(\.shown))
  }

  /// Passes a page's command to the node.
  private func perform(_ command: Command, for client: ViewClient) {
    if case .keyframe(let member, let stream, _) = command, !mayAsk(member, stream) {
      return client.answered(nil)
    }
    let (node, loop, reply) = (node, loop, NIOLoopBound(client, eventLoop: loop))
    // Commands run one after the other: a mute and an unmute must not be reordered.
    client.lastCommand = Task { [previous = client.lastCommand] in
      await previous?.value
      let error = await node.perform(command)
      loop.execute {
        reply.value.answered(
          error.flatMap { ViewMessage(message: $0, command: command.verb?.rawValue).encoded })
      }
    }
  }

  private func fetch() {
    isScheduled = false
    guard !clients.isEmpty else { return }
    isFetching = true
    isStale = false
    let (node, loop, hub) = (node, loop, NIOLoopBound(self, eventLoop: loop))
    Task {
      let snapshot = await node.snapshot()
      let message = ViewMessage(snapshot: snapshot).encoded
      loop.execute { hub.value.broadcast(snapshot, as: message) }
    }
  }

  private func broadcast(_ snapshot: ViewSnapshot, as message: ByteBuffer?) {
    isFetching = false
    publishedAt = .now()
    guard !clients.isEmpty else { return }
    newest = snapshot
    forgetOldRequests()
    if let message { for client in clients { client.update(message) } }
    if isStale { changed() }
  }

  /// Requests keyframes of the tiles for which `isWanted` is true.
  private func requestKeyframes(where isWanted: (UInt8) -> Bool) {
    guard let newest else { return }
    if isWanted(0) { requestKeyframe(of: newest.own.id, in: newest.channel) }
    for room in newest.rooms {
      for member in room.members {
        if let tile = member.tile, isWanted(tile) {
          requestKeyframe(of: member.id, in: room.channel)
        }
        for stream in member.streams where isWanted(stream.tile) {
          requestKeyframe(of: member.id, stream.stream, in: room.channel)
        }
      }
    }
  }

  private func requestKeyframe(
    of member: String, _ stream: String? = nil, in channel: String
  ) {
    guard mayAsk(member, stream) else { return }
    let node = node
    Task { _ = await node.perform(.keyframe(member: member, stream: stream, channel: channel)) }
  }

  /// Returns true, and notes the time of the request, if the stream is known and the last request
  /// for the stream was at least 300 ms ago.
  private func mayAsk(_ member: String, _ stream: String?) -> Bool {
    guard let newest, isKnown(member, stream, in: newest) else { return false }
    let now = NIODeadline.now()
    let key = "\(member)/\(stream ?? "camera")"
    if let last = askedAt[key], now - last < Self.keyframeInterval { return false }
    askedAt[key] = now
    return true
  }

  private func isKnown(_ member: String, _ stream: String?, in snapshot: ViewSnapshot) -> Bool {
    if member == snapshot.own.id { return true }
    return snapshot.rooms.contains { room in
      room.members.contains { known in
        known.id == member
          && (stream == nil || stream == "camera" || known.streams.contains { $0.stream == stream })
      }
    }
  }

  private func forgetOldRequests() {
    let now = NIODeadline.now()
    askedAt = askedAt.filter { now - $0.value < Self.keyframeInterval }
  }
}

/// A WebSocket text message to the page: a snapshot, or the error of a command.
struct ViewMessage: Encodable {
  var type: String
  var snapshot: ViewSnapshot?
  var message: String?
  var command: String?

  init(snapshot: ViewSnapshot) {
    type = "snapshot"
    self.snapshot = snapshot
  }

  init(message: String, command: String? = nil) {
    type = "error"
    self.message = message
    self.command = command
  }

  /// The message as JSON text; fields without a value are omitted.
  var encoded: ByteBuffer? {
    ByteBuffer(string: JSONValue(encoding: self, nulls: .omitted).text)
  }
}

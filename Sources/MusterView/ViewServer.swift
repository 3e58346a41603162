import MusterSystem
import NIOCore
import NIOHTTP1
import NIOPosix
import NIOWebSocket
import Synchronization

/// A server for the call page on the loopback interface, open only to bearers of the token.
///
/// The server sends snapshots and frames and receives commands; the node holds all state. All pages
/// are served on one event loop; `offer` and `changed` may be called from any thread.
public final class ViewServer: Sendable {
  /// The maximum size of a message from a page, in bytes.
  static let inboundBytes = 64 * 1024
  /// The maximum number of frames queued for the event loop; a full queue means that the loop has
  /// stalled, and further frames are dropped.
  static let framesInFlight = 512
  /// The low and high watermarks of a connection's write buffer, in bytes. A page is slow once more
  /// than the high watermark is buffered, until the buffer falls below the low one; sixteen
  /// keyframes of 20 kB fit below the high watermark.
  static let outboundBytes = (low: 128 * 1024, high: 512 * 1024)
  /// The size of the kernel's send buffer in bytes; without this limit the buffer would grow to
  /// megabytes and hold seconds of stale video.
  static let socketBytes: ChannelOptions.Types.SocketOption.Value = 256 * 1024

  private struct Running: Sendable {
    var channel: any Channel
    var hub: NIOLoopBound<ViewHub>
  }

  /// What the connections share on the event loop.
  private struct Shared {
    let hub: ViewHub
    let connections = ViewConnections()
  }

  private let node: NodeInterface
  private let port: Int
  private let gate: ViewGuard
  private let running = Mutex<Running?>(nil)
  private let pages = Atomic<Int>(0)
  private let inFlight = Atomic<Int>(0)

  /// Prepares a server at `port` (0 for any free port), for bearers of `token`.
  public init(node: NodeInterface, port: Int, token: String) {
    self.node = node
    self.port = port
    gate = ViewGuard(token: token)
  }

  /// Whether a page is open; otherwise, frames need not be offered.
  public var wantsFrames: Bool { pages.load(ordering: .relaxed) > 0 }

  /// Starts serving; returns the URL of the page.
  public func start(group: any EventLoopGroup) async throws(ViewError) -> String {
    let loop = group.next()
    do {
      let (hub, shared) = try await loop.submit { self.prepare(on: loop) }.get()
      let channel = try await bootstrap(on: loop, shared)
        .bind(host: "127.0.0.1", port: port).get()
      running.withLock { $0 = Running(channel: channel, hub: hub) }
      return "http://127.0.0.1:\(channel.localAddress?.port ?? port)/?t=\(gate.token)"
    } catch {
      throw ViewError(binding: error, port: port)
    }
  }

  /// Stops serving; the open pages receive a close frame.
  public func stop() async { try? await ending()?.get() }

  /// As `stop`, without waiting for it.
  public func close() { _ = ending() }

  /// Begins to stop; nil if nothing is served.
  private func ending() -> EventLoopFuture<Void>? {
    let ended = running.withLock { running in
      defer { running = nil }
      return running
    }
    return ended.map { ended in
      ended.channel.close().recover { _ in }.map { ended.hub.value.closeAll() }
    }
  }

  /// Passes a frame to the pages without blocking; the frame is dropped for pages that are too
  /// slow, and for all pages if the event loop has stalled.
  public func offer(_ frame: ViewFrame) {
    guard wantsFrames, let running = running.withLock({ $0 }) else { return }
    guard inFlight.load(ordering: .relaxed) < Self.framesInFlight else { return }
    inFlight.wrappingAdd(1, ordering: .relaxed)
    running.channel.eventLoop.execute {
      self.inFlight.wrappingSubtract(1, ordering: .relaxed)
      running.hub.value.deliver(frame)
    }
  }

  /// Schedules a new snapshot for the open pages, after the node's state has changed.
  public func changed() {
    guard wantsFrames, let running = running.withLock({ $0 }) else { return }
    running.channel.eventLoop.execute { running.hub.value.changed() }
  }

  private func prepare(
    on loop: any EventLoop
  ) -> (NIOLoopBound<ViewHub>, NIOLoopBound<Shared>) {
    let hub = ViewHub(node: node, loop: loop) { [weak self] count in
      self?.pages.store(count, ordering: .relaxed)
    }
    return (
      NIOLoopBound(hub, eventLoop: loop), NIOLoopBound(Shared(hub: hub), eventLoop: loop)
    )
  }

  private func bootstrap(
    on loop: any EventLoop, _ shared: NIOLoopBound<Shared>
  ) -> ServerBootstrap {
    ServerBootstrap(group: loop)
      .serverChannelOption(.backlog, value: 64)
      .serverChannelOption(.socketOption(.so_reuseaddr), value: 1)
      // Nagle's algorithm would hold back the last segment of a frame until the page's delayed
      // acknowledgement, up to 40 ms later.
      .childChannelOption(.tcpOption(.tcp_nodelay), value: 1)
      .childChannelOption(.socketOption(.so_sndbuf), value: Self.socketBytes)
      .childChannelOption(
        .writeBufferWaterMark,
        value: .init(low: Self.outboundBytes.low, high: Self.outboundBytes.high)
      )
      .childChannelInitializer { channel in self.configure(channel, shared) }
  }

  private func configure(
    _ channel: any Channel, _ shared: NIOLoopBound<Shared>
  ) -> EventLoopFuture<Void> {
    guard shared.value.connections.add(channel) else { return channel.close() }
    channel.closeFuture.whenComplete { _ in shared.value.connections.ended(channel) }
    let upgrade: NIOHTTPServerUpgradeSendableConfiguration = (
      upgraders: [upgrader(to: shared)],
      completionHandler: { context in
        context.pipeline.syncOperations.removeHandler(name: ViewRequestHandler.name, promise: nil)
      }
    )
    return channel.eventLoop.makeCompletedFuture {
      let pipeline = channel.pipeline.syncOperations
      try pipeline.configureHTTPServerPipeline(
        withPipeliningAssistance: false, withServerUpgrade: upgrade)
      try pipeline.addHandler(ViewRequestHandler(gate: self.gate), name: ViewRequestHandler.name)
    }
  }

  private func upgrader(to shared: NIOLoopBound<Shared>) -> NIOWebSocketServerUpgrader {
    NIOWebSocketServerUpgrader(
      maxFrameSize: Self.inboundBytes,
      shouldUpgrade: { [gate] channel, request in
        let port = channel.localAddress?.port ?? 0
        let isWelcome = gate.verdict(on: request, port: port) == .socket
        return channel.eventLoop.makeSucceededFuture(isWelcome ? HTTPHeaders() : nil)
      },
      upgradePipelineHandler: { channel, _ in
        channel.eventLoop.makeCompletedFuture {
          shared.value.connections.upgraded(channel)
          let aggregator = NIOWebSocketFrameAggregator(
            minNonFinalFragmentSize: 0, maxAccumulatedFrameCount: 64,
            maxAccumulatedFrameSize: Self.inboundBytes)
          try channel.pipeline.syncOperations.addHandler(aggregator)
          try channel.pipeline.syncOperations.addHandler(ViewClient(hub: shared.value.hub))
        }
      })
  }
}

extension ViewError {
  /// Creates an error that explains why the port cannot be bound.
  init(binding error: any Error, port: Int) {
    let code = (error as? IOError)?.errnoCode
    switch code {
    case EADDRINUSE:
      self.init(
        message: "the call page cannot be served, port \(port) is in use",
        hint: "choose another with --view PORT, or leave the number out for a free one")
    case EACCES:
      self.init(
        message: "the call page cannot be served, port \(port) needs privileges",
        hint: "choose a port from 1024 on, or leave the number out for a free one")
    default:
      self.init(
        message: "the call page cannot be served at 127.0.0.1:\(port) (\(error))",
        hint: "check that the loopback interface is up, or go without the page: --no-view")
    }
  }
}

import MusterBase
import MusterStore
import MusterSystem
import NIOCore
import NIOPosix
import Synchronization

/// A Unix stream socket in the data directory over which a running node accepts commands of its
/// user.
///
/// Each connection carries one `Command` and one `Administration.Reply`, each as a line of JSON.
/// The modes of the directory (0700) and the socket (0600) keep other users out.
public final class ControlSocket: Sendable {
  /// Carries out a command; called on any thread.
  public typealias Handler =
    @Sendable (Command) async -> Result<Administration.Reply, MusterError>

  static let lineLimit = 65_536
  /// The maximum number of connections waiting to be accepted; a client that is refused retries.
  private static let backlog: Int32 = 64
  /// The time within which a client must send its command.
  static let patience = TimeAmount.seconds(5)

  private let channel: any Channel
  private let path: String
  /// The directory whose lock makes this process the owner of the path; nil once closed.
  private let directory: Mutex<DataDirectory?>

  private init(_ channel: any Channel, at path: String, in directory: DataDirectory) {
    self.channel = channel
    self.path = path
    self.directory = Mutex(directory)
  }

  deinit {
    channel.close(promise: nil)
    removePath()
  }

  /// Listens in `directory`, whose lock the caller holds; replaces a stale socket file.
  public static func open(
    in directory: DataDirectory, handler: @escaping Handler
  ) async throws(MusterError) -> ControlSocket {
    let path = directory.path + "/control.sock"
    unlink(path)
    do {
      let descriptor = try bind(in: directory.path)
      let channel = try await ServerBootstrap(group: MultiThreadedEventLoopGroup.singleton)
        .serverChannelOption(.backlog, value: backlog)
        .childChannelInitializer { channel in
          channel.pipeline.addHandler(Connection(handler: handler))
        }
        .withBoundSocket(descriptor).get()
      return ControlSocket(channel, at: path, in: directory)
    } catch {
      throw MusterError(
        "cannot listen for commands in \(directory.path) (\(error))",
        hint: "muster channel and invite work only while this node is not running")
    }
  }

  /// Sets the socket's mode to 0600 before binding, so that the file never has another mode.
  /// swift-nio must not bind the socket, because swift-nio would unlink the path on close, and the
  /// descriptor number in the path may then refer to another directory.
  private static func bind(in directory: String) throws -> Int32 {
    let address = try SocketPath(directory)
    defer { address.close() }
    let type = Int32(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue | SOCK_NONBLOCK.rawValue)
    let descriptor = socket(AF_UNIX, type, 0)
    guard descriptor >= 0 else { throw IOError(errnoCode: errno, reason: "socket") }
    let isBound = try SocketAddress(unixDomainSocketPath: address.path).withSockAddr {
      fchmod(descriptor, 0o600) == 0 && MusterSystem.bind(descriptor, $0, socklen_t($1)) == 0
    }
    guard isBound else {
      let code = errno
      MusterSystem.close(descriptor)
      throw IOError(errnoCode: code, reason: "bind")
    }
    return descriptor
  }

  /// Stops accepting requests and removes the socket.
  public func close() async {
    try? await channel.close()
    removePath()
  }

  /// Removes the socket, unless that has been done: by now the path may be another node's.
  private func removePath() {
    directory.withLock { directory in
      if directory != nil { unlink(path) }
      directory = nil
    }
  }

  /// Sends a command to the node that uses a data directory; nil if no node listens there.
  static func ask(
    _ command: Command, in directory: String
  ) async throws(MusterError) -> Administration.Reply? {
    let address = try SocketPath(directory)
    defer { address.close() }
    let group = MultiThreadedEventLoopGroup.singleton
    let answer = group.next().makePromise(of: [UInt8].self)
    let channel: any Channel
    do {
      channel = try await ClientBootstrap(group: group)
        .connectTimeout(.seconds(5))
        .channelInitializer { $0.pipeline.addHandler(Client(answer: answer)) }
        .connect(unixDomainSocketPath: address.path).get()
    } catch {
      answer.fail(error)
      return nil
    }
    do {
      let line = Array((command.json + "\n").utf8)
      let deadline = channel.eventLoop.scheduleTask(in: .seconds(10)) {
        channel.close(promise: nil)
      }
      defer { deadline.cancel() }
      try await channel.writeAndFlush(ByteBuffer(bytes: line)).get()
      let bytes = try await answer.futureResult.get()
      return try Administration.Reply(json: bytes)
    } catch {
      answer.fail(error)
      throw noAnswer(in: directory)
    }
  }

  static func noAnswer(in directory: String) -> MusterError {
    MusterError(
      "the data directory \(directory) is in use by \(DataDirectory.holderText(of: directory)), which "
        + "does not answer",
      hint: "end that process, or use --data with another directory")
  }
}

/// A short path to the socket through the directory's descriptor, because a socket address holds
/// only 107 bytes (unix(7)). Where there is no /proc, the directory's own path has to be short.
private struct SocketPath {
  let path: String
  private let descriptor: Int32

  init(_ directory: String) throws(MusterError) {
    descriptor = MusterSystem.open(directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC)
    guard descriptor >= 0 else {
      throw MusterError(
        "cannot open the data directory \(directory) (\(SystemError.last))",
        hint: "check its permissions")
    }
    let short = "/proc/self/fd/\(descriptor)"
    path = "\(access(short, F_OK) == 0 ? short : directory)/control.sock"
  }

  func close() { MusterSystem.close(descriptor) }
}

/// The server's side of a connection: one request, then one reply.
private final class Connection: ChannelInboundHandler, @unchecked Sendable {
  // The properties are accessed only on the event loop of the NIO channel.
  typealias InboundIn = ByteBuffer
  typealias OutboundOut = ByteBuffer

  private let handler: ControlSocket.Handler
  private var line: [UInt8] = []
  private var isAsked = false
  private var deadline: Scheduled<Void>?

  init(handler: @escaping ControlSocket.Handler) { self.handler = handler }

  func channelActive(context: ChannelHandlerContext) {
    let channel = context.channel
    deadline = context.eventLoop.scheduleTask(in: ControlSocket.patience) {
      channel.close(promise: nil)
    }
    context.fireChannelActive()
  }

  func channelInactive(context: ChannelHandlerContext) {
    deadline?.cancel()
    context.fireChannelInactive()
  }

  func channelRead(context: ChannelHandlerContext, data: NIOAny) {
    guard !isAsked else { return }
    line += Array(buffer: unwrapInboundIn(data))
    guard line.count <= ControlSocket.lineLimit else {
      context.close(promise: nil)
      return
    }
    guard let end = line.firstIndex(of: 0x0A) else { return }
    isAsked = true
    deadline?.cancel()
    let command: Command
    do {
      command = try Command(json: Array(line[..<end]), limit: ControlSocket.lineLimit)
      try command.check(from: .controlSocket)
    } catch { return Self.answer(.failure(error), on: context.channel) }
    let (channel, handler) = (context.channel, handler)
    Task { Self.answer(await handler(command), on: channel) }
  }

  private static func answer(
    _ result: Result<Administration.Reply, MusterError>, on channel: any Channel
  ) {
    var reply = Administration.Reply()
    switch result {
    case .success(let done): reply = done
    case .failure(let error):
      reply.failure = .init(
        message: error.message, hint: error.hint, isUsage: error.kind == .usage)
    }
    channel.writeAndFlush(ByteBuffer(string: reply.json.text + "\n")).whenComplete { _ in
      channel.close(promise: nil)
    }
  }
}

private final class Client: ChannelInboundHandler, @unchecked Sendable {
  // The properties are accessed only on the event loop of the NIO channel.
  typealias InboundIn = ByteBuffer

  private let answer: EventLoopPromise<[UInt8]>
  private var line: [UInt8] = []

  init(answer: EventLoopPromise<[UInt8]>) { self.answer = answer }

  func channelRead(context: ChannelHandlerContext, data: NIOAny) {
    line += Array(buffer: unwrapInboundIn(data))
    // The member list of a large channel takes several hundred kilobytes.
    if line.count > 16 * ControlSocket.lineLimit { context.close(promise: nil) }
    guard let end = line.firstIndex(of: 0x0A) else { return }
    answer.succeed(Array(line[..<end]))
    context.close(promise: nil)
  }

  func channelInactive(context: ChannelHandlerContext) {
    answer.fail(ChannelError.eof)
    context.fireChannelInactive()
  }
}

import Muster
import MusterView
import NIOPosix

/// A server with a host that records the commands it receives.
struct TestPage: Sendable {
  static let token = "00112233445566778899aabbccddeeff"
  static let error = "there is no such thing"
  /// A command that the host refuses.
  static let impossible = Command.leaveCall(channel: "nowhere")

  let server: ViewServer
  let port: Int
  /// Every command that reached the host, in order.
  let commands: AsyncStream<Command>
  /// The tiles that the open pages showed after every change.
  let shown: AsyncStream<[ShownTile]?>

  init() async throws {
    let (commands, seen) = AsyncStream.makeStream(of: Command.self)
    let (shown, show) = AsyncStream.makeStream(of: [ShownTile]?.self)
    let node = NodeInterface(
      snapshot: { Self.snapshot },
      perform: { command in
        seen.yield(command)
        return command == Self.impossible ? Self.error : nil
      },
      show: { show.yield($0) })
    self.commands = commands
    self.shown = shown
    server = ViewServer(node: node, port: 0, token: Self.token)
    let url = try await server.start(group: .singletonMultiThreadedEventLoopGroup)
    let digits = url.dropFirst("http://127.0.0.1:".count).prefix { $0 != "/" }
    port = Int(digits) ?? 0
  }

  var host: String { "127.0.0.1:\(port)" }
  var origin: String { "http://\(host)" }

  /// Runs a test against a fresh server and stops it whatever happens.
  static func run(_ body: (TestPage) async throws -> Void) async throws {
    let page = try await TestPage()
    do {
      try await body(page)
    } catch {
      await page.server.stop()
      throw error
    }
    await page.server.stop()
  }

  /// The tiles of the member and of the preview.
  static let tiles = [
    ShownTile(tile: 1, width: 640, height: 360),
    ShownTile(tile: 0, width: 160, height: 90, fps: 15),
  ]

  /// An open page that has had its first snapshot and shows both tiles, beside `others` that do.
  func open(receiveBuffer: Int32? = nil, others: Int = 0) async throws -> TestClient {
    let client = try await openEmpty(receiveBuffer: receiveBuffer)
    try await client.send(
      """
      {"do":"show","tiles":[{"tile":1,"width":640,"height":360},\
      {"tile":0,"width":160,"height":90,"fps":15}]}
      """)
    for await tiles in shown where tiles?.count == Self.tiles.count * (others + 1) { break }
    return client
  }

  /// An open page that has had its first snapshot and does not show any tile yet.
  func openEmpty(receiveBuffer: Int32? = nil) async throws -> TestClient {
    let client = try TestClient(port: port, receiveBuffer: receiveBuffer)
    let status = try await client.upgrade("/ws?t=\(Self.token)", host: host, origin: origin)
    guard status == 101 else { throw TestClient.Failure(description: "status \(status)") }
    _ = try await client.receive { $0.opcode == 1 }
    return client
  }

  static let snapshot = ViewSnapshot(
    own: .init(
      id: "00000000000000aa", name: "me", role: "owner", mayStart: true, maySend: true,
      inCall: true, callState: "connected", audioMuted: false, videoMuted: false, speaking: false,
      hasVideo: true,
      hasAudio: true),
    channel: "lab", channelID: "00000000000000ee", kind: .created, channels: ["lab"],
    call: .init(
      id: "c", initiator: "00000000000000bb", startedAt: 1_700_000_000_000,
      participants: ["00000000000000aa", "00000000000000bb"]),
    members: [
      .init(
        id: "00000000000000bb", name: "<b>", role: "presenter", inCall: true, audioMuted: true,
        videoMuted: false, speaking: false, tile: 1)
    ],
    messages: [
      .init(
        id: "00000000000000cc", from: "00000000000000bb", name: "<b>", text: "</script> \"hello\"",
        sentAt: 1_700_000_000_500),
      .init(
        id: "00000000000000dd", from: "00000000000000bb", name: "<b>", to: "00000000000000aa",
        toName: "me", text: "only you", sentAt: 1_700_000_001_000),
    ],
    notices: [])

  static func frame(
    _ sequence: UInt32, isKeyframe: Bool, isShown: Bool = true, bytes: Int = 100
  ) -> ViewFrame {
    ViewFrame(
      tile: 1, isKeyframe: isKeyframe, isShown: isShown, temporalLayer: 2, sequence: sequence,
      sentAtMilliseconds: 1.5, timestampMicroseconds: Double(sequence) * 33_333,
      data: [UInt8](repeating: UInt8(truncatingIfNeeded: sequence), count: bytes))
  }
}

import Muster
import MusterBase
import MusterView
import Testing

/// A node and its page that are released without being stopped.
struct LifetimeTests {
  @Test(.timeLimit(.minutes(1))) func aNodeIsReleasedWithItsPage() async throws {
    var configuration = Configuration()
    configuration.channels = [.init(name: "page", source: .open(.fromName("page")))]
    configuration.call = true
    configuration.video = "test:160x90@15"
    configuration.interfaces = ["lo"]
    configuration.lan = false
    configuration.isEphemeral = true
    weak var released: MusterNode?
    let client = try await {
      let node = try await MusterNode.start(configuration)
      released = node
      let page = try await CallPage.start(node, port: 0)
      let client = try await Self.open(page.url)
      // An open page that shows this node's own video, so that frames go to the server.
      try await client.send(#"{"do":"show","tiles":[{"tile":0,"width":160,"height":90}]}"#)
      _ = try await client.receive { $0.opcode == 2 }
      withExtendedLifetime(page) {}
      return client
    }()
    _ = try await client.receive { $0.opcode == 8 }
    while released != nil {
      try Task.checkCancellation()
      await Task.yield()
    }
  }

  /// A client at the URL of a page.
  private static func open(_ url: String) async throws -> TestClient {
    let parts = url.dropFirst("http://".count).split(separator: "/?t=")
    let host = String(parts[0])
    let client = try TestClient(port: try #require(Int(host.dropFirst("127.0.0.1:".count))))
    let status = try await client.upgrade("/ws?t=\(parts[1])", host: host, origin: "http://\(host)")
    #expect(status == 101)
    return client
  }
}

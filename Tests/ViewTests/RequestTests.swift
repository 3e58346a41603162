import Muster
import MusterView
import NIOPosix
import Testing

/// A request, in which `PORT` and `TOKEN` are replaced, and the expected status.
struct Attempt: Sendable, CustomTestStringConvertible {
  var what: String
  var method = "GET"
  var target = "/?t=TOKEN"
  var host = "127.0.0.1:PORT"
  var origin: String?
  var status: Int

  var testDescription: String { what }

  func filled(_ text: String, port: Int) -> String {
    let parts = text.split(separator: "PORT", omittingEmptySubsequences: false)
    let withPort = parts.joined(separator: String(port))
    return withPort.split(separator: "TOKEN", omittingEmptySubsequences: false)
      .joined(separator: TestPage.token)
  }
}

@Suite(.timeLimit(.minutes(1)))
struct RequestTests {
  @Test func thePageComesWithItsTokenAndStrictHeaders() async throws {
    try await TestPage.run { page in
      let answer = try await TestClient(port: page.port).exchange(
        "GET /?t=\(TestPage.token) HTTP/1.1\r\nHost: \(page.host)\r\n\r\n")
      #expect(answer.hasPrefix("HTTP/1.1 200"))
      #expect(answer.contains("app.js?t=\(TestPage.token)"))
      #expect(!answer.contains("__TOKEN__"))
      #expect(answer.contains("content-security-policy: default-src 'none'; script-src 'self'"))
      #expect(answer.contains("cache-control: no-store"))
      #expect(answer.contains("x-content-type-options: nosniff"))
    }
  }

  @Test func everyFileOfThePageIsThere() async throws {
    try await TestPage.run { page in
      let types = [
        "/": "text/html", "/style.css": "text/css", "/app.js": "text/javascript",
        "/tiles.js": "text/javascript", "/people.js": "text/javascript",
        "/chat.js": "text/javascript",
        "/leaving.js": "text/javascript", "/stage.js": "text/javascript",
        "/worker.js": "text/javascript",
      ]
      for (path, type) in types {
        let answer = try await TestClient(port: page.port).exchange(
          "GET \(path)?t=\(TestPage.token) HTTP/1.1\r\nHost: localhost:\(page.port)\r\n\r\n")
        #expect(answer.hasPrefix("HTTP/1.1 200"), "\(path)")
        #expect(answer.contains("content-type: \(type)"), "\(path)")
      }
    }
  }

  static let requests = [
    Attempt(what: "no token", target: "/", status: 403),
    Attempt(what: "empty token", target: "/?t=", status: 403),
    Attempt(what: "wrong token", target: "/?t=00112233445566778899aabbccddeefe", status: 403),
    Attempt(what: "short token", target: "/?t=0011223344556677", status: 403),
    Attempt(what: "long token", target: "/?t=TOKEN0", status: 403),
    Attempt(what: "script without token", target: "/app.js", status: 403),
    Attempt(what: "foreign host", host: "evil.test:PORT", status: 403),
    Attempt(what: "host with another port", host: "127.0.0.1:1", status: 403),
    Attempt(what: "host without port", host: "localhost", status: 403),
    Attempt(what: "two hosts", host: "127.0.0.1:PORT\r\nHost: evil.test", status: 403),
    Attempt(what: "localhost", host: "localhost:PORT", status: 200),
    Attempt(what: "head", method: "HEAD", status: 200),
    Attempt(what: "foreign origin", origin: "http://evil.test", status: 403),
    Attempt(what: "null origin", origin: "null", status: 403),
    Attempt(what: "post without origin", method: "POST", status: 403),
    Attempt(what: "post, foreign", method: "POST", origin: "http://evil.test", status: 403),
    Attempt(what: "post", method: "POST", origin: "http://127.0.0.1:PORT", status: 405),
    Attempt(what: "delete", method: "DELETE", origin: "http://127.0.0.1:PORT", status: 405),
    Attempt(what: "unknown path", target: "/nothing?t=TOKEN", status: 404),
    Attempt(what: "climbing path", target: "/../etc/passwd?t=TOKEN", status: 404),
    Attempt(
      what: "socket address, no upgrade", target: "/ws?t=TOKEN", origin: "http://127.0.0.1:PORT",
      status: 426),
  ]

  @Test(arguments: requests)
  func requestGetsItsStatus(_ attempt: Attempt) async throws {
    try await TestPage.run { page in
      func filled(_ text: String) -> String { attempt.filled(text, port: page.port) }
      var request = "\(attempt.method) \(filled(attempt.target)) HTTP/1.1\r\n"
      request += "Host: \(filled(attempt.host))\r\nContent-Length: 0\r\n"
      if let origin = attempt.origin { request += "Origin: \(filled(origin))\r\n" }
      let answer = try await TestClient(port: page.port).exchange(request + "\r\n")
      #expect(answer.hasPrefix("HTTP/1.1 \(attempt.status)"))
      #expect(attempt.status == 200 || !answer.contains(TestPage.token))
    }
  }

  static let upgrades = [
    Attempt(what: "own", target: "/ws?t=TOKEN", origin: "http://127.0.0.1:PORT", status: 101),
    Attempt(
      what: "localhost", target: "/ws?t=TOKEN", host: "localhost:PORT",
      origin: "http://localhost:PORT", status: 101),
    Attempt(what: "no token", target: "/ws", origin: "http://127.0.0.1:PORT", status: 403),
    Attempt(what: "wrong token", target: "/ws?t=00", origin: "http://127.0.0.1:PORT", status: 403),
    Attempt(what: "no origin", target: "/ws?t=TOKEN", status: 403),
    Attempt(what: "null origin", target: "/ws?t=TOKEN", origin: "null", status: 403),
    Attempt(
      what: "foreign origin", target: "/ws?t=TOKEN", origin: "http://evil.test", status: 403),
    Attempt(
      what: "secure origin", target: "/ws?t=TOKEN", origin: "https://127.0.0.1:PORT", status: 403),
    Attempt(
      what: "foreign host", target: "/ws?t=TOKEN", host: "evil.test:PORT",
      origin: "http://evil.test:PORT", status: 403),
    Attempt(
      what: "page as socket", target: "/?t=TOKEN", origin: "http://127.0.0.1:PORT", status: 200),
  ]

  @Test(arguments: upgrades)
  func upgradeGetsItsStatus(_ attempt: Attempt) async throws {
    try await TestPage.run { page in
      let status = try await TestClient(port: page.port).upgrade(
        attempt.filled(attempt.target, port: page.port),
        host: attempt.filled(attempt.host, port: page.port),
        origin: attempt.origin.map { attempt.filled($0, port: page.port) })
      #expect(status == attempt.status)
    }
  }

  /// Other users of the machine can connect, too, and say nothing.
  @Test func idleConnectionsKeepNobodyOut() async throws {
    try await TestPage.run { page in
      let open = try await page.openEmpty()
      var idle: [TestClient] = []
      for _ in 0..<ViewConnections.limit * 2 {
        idle.append(try TestClient(port: page.port))
        if idle.count % 8 == 0 {
          let answer = try await TestClient(port: page.port).exchange(
            "GET /?t=\(TestPage.token) HTTP/1.1\r\nHost: \(page.host)\r\n\r\n")
          #expect(answer.hasPrefix("HTTP/1.1 200"))
        }
      }
      // The page that was open has not given way.
      try await open.send(#"{"do":"leave-call","channel":"nowhere"}"#)
      for await command in page.commands {
        #expect(command == TestPage.impossible)
        break
      }
      withExtendedLifetime(idle) {}
    }
  }

  @Test func aBusyPortIsSaidInPlainWords() async throws {
    try await TestPage.run { page in
      let node = NodeInterface(snapshot: { TestPage.snapshot }, perform: { _ in nil })
      let second = ViewServer(node: node, port: page.port, token: TestPage.token)
      let error = await #expect(throws: ViewError.self) {
        _ = try await second.start(group: .singletonMultiThreadedEventLoopGroup)
      }
      #expect(error?.message.contains("port \(page.port) is in use") == true)
      #expect(error?.hint.contains("--view") == true)
    }
  }
}

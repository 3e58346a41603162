import NIOHTTP1

/// Decides whether a request comes from a page that this node has served.
///
/// Any web page in the user's browser can send requests to 127.0.0.1. The token rejects requests
/// from pages that guess the URL, the `Host` check requests from pages whose own name resolves to
/// this machine (DNS rebinding), and the `Origin` check requests from pages that have seen the
/// token.
struct ViewGuard: Sendable {
  enum Verdict: Equatable {
    case asset(Int)
    case socket
    case refused(HTTPResponseStatus, String)
  }

  static let socketPath = "/ws"
  let token: String

  func verdict(on request: HTTPRequestHead, port: Int) -> Verdict {
    let hosts = ["127.0.0.1:\(port)", "localhost:\(port)"]
    guard let host = only("host", of: request.headers), hosts.contains(host.lowercased()) else {
      return .refused(.forbidden, "This page answers only to http://127.0.0.1:\(port).")
    }
    let (path, query) = Self.split(request.uri)
    guard hasGoodOrigin(request, isSocket: path == Self.socketPath, hosts: hosts) else {
      return .refused(.forbidden, "Requests from other pages are refused.")
    }
    guard let given = Self.token(in: query), Self.isSame(given, token) else {
      return .refused(.forbidden, "The address is not complete: open the one that muster prints.")
    }
    guard request.method == .GET || request.method == .HEAD else {
      return .refused(.methodNotAllowed, "Only GET and HEAD are understood here.")
    }
    if path == Self.socketPath { return .socket }
    guard let asset = ViewAssets.index(of: path) else {
      return .refused(.notFound, "There is nothing at this address.")
    }
    return .asset(asset)
  }

  /// Whether the origin is acceptable. Browsers send an origin with every WebSocket request and
  /// every POST, so these requests are refused without an origin; a plain GET or HEAD request is
  /// accepted without an origin.
  private func hasGoodOrigin(_ request: HTTPRequestHead, isSocket: Bool, hosts: [String]) -> Bool {
    let isRead = request.method == .GET || request.method == .HEAD
    if request.headers["origin"].isEmpty { return isRead && !isSocket }
    guard let origin = only("origin", of: request.headers) else { return false }
    return hosts.contains { origin == "http://\($0)" }
  }

  /// The value of a header that occurs exactly once; nil otherwise.
  private func only(_ name: String, of headers: HTTPHeaders) -> String? {
    let values = headers[name]
    return values.count == 1 ? values[0] : nil
  }

  private static func split(_ uri: String) -> (path: Substring, query: Substring) {
    guard let mark = uri.firstIndex(of: "?") else { return (uri[...], "") }
    return (uri[..<mark], uri[uri.index(after: mark)...])
  }

  private static func token(in query: Substring) -> Substring? {
    query.split(separator: "&").first { $0.hasPrefix("t=") }?.dropFirst(2)
  }

  /// Compares in constant time, so that timing reveals nothing about the token.
  private static func isSame(_ a: Substring, _ b: String) -> Bool {
    guard a.utf8.count == b.utf8.count, !b.isEmpty else { return false }
    return zip(a.utf8, b.utf8).reduce(0 as UInt8) { $0 | ($1.0 ^ $1.1) } == 0
  }
}

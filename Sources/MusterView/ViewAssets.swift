import CMusterAssets
import NIOCore
import NIOHTTP1

/// The files of the page, which are compiled in, and the HTTP headers of all responses.
enum ViewAssets {
  /// The text in the page that stands for the token.
  private static let placeholder = "__TOKEN__"

  static func index(of path: Substring) -> Int? {
    (0..<muster_asset_count()).first { String(cString: muster_asset_at($0).path) == path }
  }

  static func mediaType(of index: Int) -> String {
    String(cString: muster_asset_at(index).media_type)
  }

  /// The content of a file; in HTML, the token replaces the placeholder in links to other files.
  static func body(of index: Int, token: String) -> ByteBuffer {
    let asset = muster_asset_at(index)
    let bytes = UnsafeBufferPointer(start: asset.bytes, count: asset.size)
    guard mediaType(of: index).hasPrefix("text/html") else { return ByteBuffer(bytes: bytes) }
    return ByteBuffer(string: replacing(placeholder, in: bytes, by: token))
  }

  private static func replacing(
    _ mark: String, in bytes: UnsafeBufferPointer<UInt8>, by text: String
  ) -> String {
    var result = ""
    var rest = String(decoding: bytes, as: UTF8.self)[...]
    while let found = rest.firstRange(of: mark) {
      result += rest[..<found.lowerBound]
      result += text
      rest = rest[found.upperBound...]
    }
    return result + rest
  }

  /// The headers of all responses, which forbid other origins, caching and framing of the page.
  static func headers(port: Int) -> HTTPHeaders {
    // Older browsers do not match ws: with 'self', so the WebSocket URLs are listed.
    let sockets = "ws://127.0.0.1:\(port) ws://localhost:\(port)"
    return [
      "content-security-policy":
        "default-src 'none'; script-src 'self'; style-src 'self'; worker-src 'self'; "
        + "img-src data:; connect-src 'self' \(sockets); base-uri 'none'; form-action 'none'; "
        + "frame-ancestors 'none'",
      "cache-control": "no-store",
      "x-content-type-options": "nosniff",
      "x-frame-options": "DENY",
      "referrer-policy": "no-referrer",
      "cross-origin-resource-policy": "same-origin",
      "cross-origin-opener-policy": "same-origin",
      "connection": "close",
    ]
  }
}

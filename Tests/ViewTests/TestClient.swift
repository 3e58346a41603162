import Glibc
import NIOPosix

/// A blocking TCP client that implements as much of HTTP and WebSocket as the tests need.
///
/// Its methods run on NIO's thread pool: a test that blocked Swift's own threads could keep the
/// server under test from answering.
final class TestClient: Sendable {
  struct Failure: Error, CustomStringConvertible {
    var description: String
  }

  /// One WebSocket message, or the close frame.
  struct Message: Sendable {
    var opcode: UInt8
    var data: [UInt8]
    var text: String { String(decoding: data, as: UTF8.self) }
  }

  private let descriptor: Int32

  init(port: Int, receiveBuffer: Int32? = nil) throws {
    descriptor = socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
    guard descriptor >= 0 else { throw Failure(description: "no socket") }
    if var size = receiveBuffer {
      setsockopt(descriptor, SOL_SOCKET, SO_RCVBUF, &size, socklen_t(MemoryLayout<Int32>.size))
    }
    // The timeout exceeds the duration of every test step, and turns a hang into a failure.
    var patience = timeval(tv_sec: 20, tv_usec: 0)
    setsockopt(
      descriptor, SOL_SOCKET, SO_RCVTIMEO, &patience, socklen_t(MemoryLayout<timeval>.size))
    var address = sockaddr_in()
    address.sin_family = sa_family_t(AF_INET)
    address.sin_port = UInt16(port).bigEndian
    address.sin_addr.s_addr = UInt32(0x7F00_0001).bigEndian
    let result = withUnsafePointer(to: &address) {
      $0.withMemoryRebound(to: sockaddr.self, capacity: 1) {
        connect(descriptor, $0, socklen_t(MemoryLayout<sockaddr_in>.size))
      }
    }
    guard result == 0 else { throw Failure(description: "cannot connect: \(errno)") }
  }

  deinit { close(descriptor) }

  /// Ends the connection, as a closed page does.
  func disconnect() { shutdown(descriptor, Int32(SHUT_RDWR)) }

  /// Sends a request and reads the response until the server closes.
  func exchange(_ request: String) async throws -> String {
    try await NIOThreadPool.singleton.runIfActive {
      try self.write(Array(request.utf8))
      return String(decoding: try self.readToEnd(), as: UTF8.self)
    }
  }

  /// Asks for a WebSocket and answers the status code.
  func upgrade(_ path: String, host: String, origin: String?) async throws -> Int {
    var lines = [
      "GET \(path) HTTP/1.1", "Host: \(host)", "Upgrade: websocket", "Connection: Upgrade",
      "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==", "Sec-WebSocket-Version: 13",
    ]
    if let origin { lines.append("Origin: \(origin)") }
    let request = lines.joined(separator: "\r\n") + "\r\n\r\n"
    return try await NIOThreadPool.singleton.runIfActive {
      try self.write(Array(request.utf8))
      var head: [UInt8] = []
      while !head.suffix(4).elementsEqual([13, 10, 13, 10]) { head += try self.read(1) }
      let status = String(decoding: head, as: UTF8.self).split(separator: " ").dropFirst().first
      return status.flatMap { Int($0) } ?? 0
    }
  }

  /// Sends a masked text message, as browsers do.
  func send(_ text: String) async throws {
    let data = Array(text.utf8)
    let mask: [UInt8] = [1, 2, 3, 4]
    var frame: [UInt8] = [0x81]
    if data.count < 126 {
      frame.append(0x80 | UInt8(data.count))
    } else {
      frame.append(0x80 | 127)
      frame += (0..<8).map { UInt8(truncatingIfNeeded: data.count >> (56 - 8 * $0)) }
    }
    frame += mask + data.indices.map { data[$0] ^ mask[$0 & 3] }
    let bytes = frame
    try await NIOThreadPool.singleton.runIfActive { try self.write(bytes) }
  }

  /// The next message; the server sends none in fragments.
  func receive() async throws -> Message {
    try await NIOThreadPool.singleton.runIfActive {
      let head = try self.read(2)
      var count = Int(head[1] & 127)
      if count >= 126 {
        count = try self.read(count == 126 ? 2 : 8).reduce(0) { $0 << 8 | Int($1) }
      }
      return Message(opcode: head[0] & 15, data: try self.read(count))
    }
  }

  /// The next message for which `isWanted` is true; others are read and dropped.
  func receive(where isWanted: (Message) -> Bool) async throws -> Message {
    while true {
      let message = try await receive()
      if isWanted(message) { return message }
    }
  }

  /// Reads until the server closes; returns the number of bytes.
  func drain() async throws -> Int {
    try await NIOThreadPool.singleton.runIfActive { try self.readToEnd().count }
  }

  private func write(_ bytes: [UInt8]) throws {
    var sent = 0
    while sent < bytes.count {
      let count = bytes[sent...].withUnsafeBytes {
        Glibc.send(descriptor, $0.baseAddress, $0.count, Int32(MSG_NOSIGNAL))
      }
      guard count > 0 else { throw Failure(description: "cannot send: \(errno)") }
      sent += count
    }
  }

  private func read(_ count: Int) throws -> [UInt8] {
    var bytes = [UInt8](repeating: 0, count: count)
    var got = 0
    while got < count {
      let more = bytes.withUnsafeMutableBytes {
        recv(descriptor, $0.baseAddress?.advanced(by: got), count - got, 0)
      }
      guard more > 0 else { throw Failure(description: "closed or timed out after \(got) bytes") }
      got += more
    }
    return bytes
  }

  private func readToEnd() throws -> [UInt8] {
    var all: [UInt8] = []
    var part = [UInt8](repeating: 0, count: 64 * 1024)
    while true {
      let more = part.withUnsafeMutableBytes { recv(descriptor, $0.baseAddress, $0.count, 0) }
      // A reset after the answer is an end like any other.
      if more == 0 || (more < 0 && errno == ECONNRESET) { return all }
      guard more > 0 else { throw Failure(description: "timed out: \(errno)") }
      all += part[..<more]
    }
  }
}

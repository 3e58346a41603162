import Glibc

/// Lines of a file or pipe, read on a thread of their own so that nothing else ever waits for them.
enum LineReader {
  /// A longer line is passed on in parts, which are no commands, so that memory stays bounded.
  private static let longestLine = 64 * 1024
  private static let linesWaiting = 256

  static func lines(of descriptor: Int32) -> AsyncStream<[UInt8]> {
    let (stream, continuation) = AsyncStream<[UInt8]>.makeStream(
      bufferingPolicy: .bufferingNewest(linesWaiting))
    let box = Unmanaged.passRetained(Box(descriptor, continuation))
    var thread = pthread_t()
    pthread_create(
      &thread, nil,
      { raw in
        guard let raw else { return nil }
        LineReader.read(Unmanaged<Box>.fromOpaque(raw).takeRetainedValue())
        return nil
      }, box.toOpaque())
    pthread_detach(thread)
    return stream
  }

  private final class Box {
    let descriptor: Int32
    let lines: AsyncStream<[UInt8]>.Continuation

    init(_ descriptor: Int32, _ lines: AsyncStream<[UInt8]>.Continuation) {
      self.descriptor = descriptor
      self.lines = lines
    }
  }

  private static func read(_ box: Box) {
    let lines = box.lines
    var line: [UInt8] = []
    var buffer = [UInt8](repeating: 0, count: 4096)
    while true {
      let count = Glibc.read(box.descriptor, &buffer, buffer.count)
      if count < 0 && errno == EINTR { continue }
      guard count > 0 else { break }
      for byte in buffer.prefix(count) {
        if byte == 0x0A || line.count >= longestLine {
          lines.yield(line)
          line.removeAll(keepingCapacity: true)
        }
        if byte != 0x0A { line.append(byte) }
      }
    }
    if !line.isEmpty { lines.yield(line) }
    lines.finish()
  }
}

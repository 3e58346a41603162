import Foundation
import MusterCommand
import Testing

/// The reader of standard input loses no line, however fast lines are written.
struct LineReaderTests {
  private func read(_ pipe: Pipe) -> AsyncStream<[UInt8]> {
    LineReader.lines(of: pipe.fileHandleForReading.fileDescriptor)
  }

  /// Writes from another thread, as another process would.
  private func write(_ text: String, to pipe: Pipe) {
    Thread.detachNewThread {
      try? pipe.fileHandleForWriting.write(contentsOf: Data(text.utf8))
      try? pipe.fileHandleForWriting.close()
    }
  }

  /// A line of 1,024 bytes, which is written to a pipe atomically (at most PIPE_BUF bytes).
  private static func line(_ number: Int) -> String {
    let digits = "\(number)"
    return digits + String(repeating: ".", count: 1023 - digits.utf8.count) + "\n"
  }

  /// The number of lines written until the reader stopped, and whether it read more afterwards.
  private struct Filled {
    var written = 0
    var hasStopped = false
    var hasReadOn = false
  }

  /// Fills the pipe and the buffer of a reader whose lines are not consumed.
  ///
  /// It waits for room in the pipe, however long that takes; a correct reader stops making room
  /// once it has read one line more than it buffers.
  private func fill(_ pipe: Pipe) async -> Filled {
    let descriptor = pipe.fileHandleForWriting.fileDescriptor
    return await withCheckedContinuation { continuation in
      Thread.detachNewThread { continuation.resume(returning: Self.fill(descriptor)) }
    }
  }

  private static func fill(_ descriptor: Int32) -> Filled {
    let flags = fcntl(descriptor, F_GETFL)
    _ = fcntl(descriptor, F_SETFL, flags | O_NONBLOCK)
    defer { _ = fcntl(descriptor, F_SETFL, flags) }
    var filled = Filled()
    // A pipe holds 64 KiB, the reader 256 lines and 4 KiB: far less than 4 MiB.
    while filled.written < 4096 {
      let hasStopped = linesRead(descriptor, of: filled.written) > LineReader.linesWaiting
      let bytes = Array(line(filled.written).utf8)
      if Glibc.write(descriptor, bytes, bytes.count) == bytes.count {
        filled.written += 1
      } else if hasStopped {
        // A correct reader passes with any wait here; a longer wait finds more defects.
        filled.hasStopped = true
        filled.hasReadOn = hasRoom(descriptor, within: 100)
        break
      } else if linesRead(descriptor, of: filled.written) <= LineReader.linesWaiting,
        !hasRoom(descriptor, within: 30_000)
      {
        break
      }
    }
    return filled
  }

  private static func linesRead(_ descriptor: Int32, of written: Int) -> Int {
    var unread: Int32 = 0
    _ = ioctl(descriptor, UInt(FIONREAD), &unread)
    return written - Int(unread) / 1024
  }

  private static func hasRoom(_ descriptor: Int32, within milliseconds: Int32) -> Bool {
    var wanted = pollfd(fd: descriptor, events: Int16(POLLOUT), revents: 0)
    return poll(&wanted, 1, milliseconds) > 0
  }

  @Test(.timeLimit(.minutes(1))) func everyLineComesInItsOrder() async throws {
    let pipe = Pipe()
    let lines = read(pipe)
    // This fills the pipe and the reader's buffer, so that the writer below has to wait.
    let first = await fill(pipe).written
    let count = first + 4 * LineReader.linesWaiting
    write((first..<count).map(Self.line).joined(), to: pipe)
    var next = 0
    for await line in lines {
      #expect(String(decoding: line, as: UTF8.self) + "\n" == Self.line(next))
      next += 1
    }
    #expect(next == count)
    withExtendedLifetime(pipe) {}
  }

  @Test(.timeLimit(.minutes(1))) func aReaderThatDoesNotTakeSlowsTheWriterDown() async throws {
    let pipe = Pipe()
    let lines = read(pipe)
    let filled = await fill(pipe)
    #expect(filled.hasStopped && !filled.hasReadOn)
    #expect(filled.written < LineReader.linesWaiting + 128)
    try pipe.fileHandleForWriting.close()
    var count = 0
    for await _ in lines { count += 1 }
    #expect(count == filled.written)
  }

  @Test(.timeLimit(.minutes(1))) func aLastLineWithoutAnEndCounts() async throws {
    let pipe = Pipe()
    write("one\n\ntwo", to: pipe)
    var lines: [String] = []
    for await line in read(pipe) { lines.append(String(decoding: line, as: UTF8.self)) }
    #expect(lines == ["one", "", "two"])
    withExtendedLifetime(pipe) {}
  }

  @Test(.timeLimit(.minutes(1))) func theTailOfALongLineIsNoLine() async throws {
    let pipe = Pipe()
    let long = String(repeating: "x", count: LineReader.longestLine + 10)
    write(long + "\n" + long + "\nnext\n" + long, to: pipe)
    var sizes: [Int] = []
    for await line in read(pipe) { sizes.append(line.count) }
    let cut = LineReader.longestLine + 1
    #expect(sizes == [cut, cut, 4, cut])
    withExtendedLifetime(pipe) {}
  }
}

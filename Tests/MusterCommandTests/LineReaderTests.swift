import Foundation
import MusterCommand
import Testing

/// Commands on standard input: none is lost, however fast they come.
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

  /// A line of 1,024 bytes, which a pipe takes as a whole or not at all.
  private static func line(_ number: Int) -> String {
    let digits = "\(number)"
    return digits + String(repeating: ".", count: 1023 - digits.utf8.count) + "\n"
  }

  /// The lines written until the reader had stopped, and whether it read on afterwards.
  private struct Filled {
    var written = 0
    var hasStopped = false
    var hasReadOn = false
  }

  /// Writes lines to the empty pipe of a reader whose lines nobody takes, until both are full.
  ///
  /// It waits for room in the pipe, however long that takes; a reader that works never makes room
  /// again once it has read one line more than may wait.
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
        // A working reader passes this wait however long it is; a longer one finds more defects.
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
    // From here on the writer is ahead of the reader, whose lines do not all fit.
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

  @Test(.timeLimit(.minutes(1))) func anEndlessLineComesInParts() async throws {
    let pipe = Pipe()
    write(String(repeating: "x", count: LineReader.longestLine + 10) + "\n", to: pipe)
    var sizes: [Int] = []
    for await line in read(pipe) { sizes.append(line.count) }
    #expect(sizes == [LineReader.longestLine, 10])
    withExtendedLifetime(pipe) {}
  }
}

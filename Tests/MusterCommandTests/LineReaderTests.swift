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

  @Test(.timeLimit(.minutes(1))) func everyLineComesInItsOrder() async throws {
    let pipe = Pipe()
    let count = 20 * LineReader.linesWaiting
    write((0..<count).map { "\($0)\n" }.joined(), to: pipe)
    var next = 0
    for await line in read(pipe) {
      // Slower than the writer, whose lines would not all fit.
      if next % 100 == 0 { try await Task.sleep(for: .milliseconds(1)) }
      #expect(String(decoding: line, as: UTF8.self) == String(next))
      next += 1
    }
    #expect(next == count)
    withExtendedLifetime(pipe) {}
  }

  @Test(.timeLimit(.minutes(1))) func aReaderThatDoesNotTakeSlowsTheWriterDown() async throws {
    let pipe = Pipe()
    let lines = read(pipe)
    let descriptor = pipe.fileHandleForWriting.fileDescriptor
    _ = fcntl(descriptor, F_SETFL, O_NONBLOCK)
    let line = Array(String(repeating: "x", count: 1023).utf8) + [0x0A]
    var written = 0
    // A pipe holds 64 KiB, the reader 256 lines and 4 KiB: far less than 4 MiB.
    for _ in 0..<100 {
      while line.withUnsafeBytes({ Glibc.write(descriptor, $0.baseAddress, $0.count) }) > 0 {
        written += 1
        guard written < 4096 else { break }
      }
      try await Task.sleep(for: .milliseconds(2))
    }
    #expect(written < LineReader.linesWaiting + 128)
    try pipe.fileHandleForWriting.close()
    var count = 0
    for await _ in lines { count += 1 }
    #expect(count >= written)
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

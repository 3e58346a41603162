import Foundation
import MusterCommand
import Synchronization
import Testing

/// The writer of standard output, whatever is at the other end.
struct OutputWriterTests {
  init() {
    // As the command does.
    signal(SIGPIPE, SIG_IGN)
  }

  /// The troubles that a writer has reported.
  private final class Reports: Sendable {
    private let all = Mutex<[OutputWriter.Trouble]>([])

    var list: [OutputWriter.Trouble] { all.withLock { $0 } }

    func note(_ trouble: OutputWriter.Trouble) { all.withLock { $0.append(trouble) } }
  }

  private func writer(_ file: FileHandle, _ reports: Reports = Reports()) -> OutputWriter {
    OutputWriter(file.fileDescriptor) { reports.note($0) }
  }

  private func fill(_ output: OutputWriter) -> Int {
    let line = [UInt8](repeating: 0x78, count: 4096)
    var count = 0
    while output.write(line) { count += 1 }
    return count
  }

  @Test(.timeLimit(.minutes(1))) func piecesOfSeveralTasksAreNotMixed() async throws {
    let pipe = Pipe()
    let output = writer(pipe.fileHandleForWriting)
    let reading = Task.detached { try pipe.fileHandleForReading.readToEnd() ?? Data() }
    await withTaskGroup { group in
      for task in 0..<4 {
        group.addTask {
          // Longer than what a pipe takes at once.
          for number in 0..<50 {
            let text = "\(task) \(number) " + String(repeating: "abc", count: 3000) + "\n"
            await output.waitForRoom()
            #expect(output.write(Array(text.utf8)))
          }
        }
      }
    }
    await output.drain(until: .now + .seconds(50))
    try pipe.fileHandleForWriting.close()
    let lines = try await reading.value.split(separator: 0x0A)
    #expect(lines.count == 200)
    for task in 0..<4 {
      let own = lines.filter { $0.first == UInt8(ascii: "0") + UInt8(task) }
      let numbers = own.map { String(decoding: $0.split(separator: 0x20)[1], as: UTF8.self) }
      #expect(numbers == (0..<50).map { "\($0)" })
      #expect(own.allSatisfy { $0.count == own[0].count || $0.count == own[49].count })
    }
  }

  /// Whether the pipe is blocking or not.
  @Test(.timeLimit(.minutes(1)), arguments: [false, true])
  func whoDoesNotReadDelaysNobody(isNonBlocking: Bool) async throws {
    let pipe = Pipe()
    if isNonBlocking { _ = fcntl(pipe.fileHandleForWriting.fileDescriptor, F_SETFL, O_NONBLOCK) }
    let output = writer(pipe.fileHandleForWriting)
    let written = fill(output)
    #expect(written >= OutputWriter.limit / 4096)
    #expect(output.trouble == nil)
    let start = ContinuousClock.now
    await output.drain(until: start + .milliseconds(50))
    #expect(!output.write([0x78]))
    // All that was queued is written once somebody reads.
    let reading = Task.detached {
      try pipe.fileHandleForReading.read(upToCount: written * 4096)?.count
    }
    await output.drain(until: start + .seconds(50))
    try pipe.fileHandleForWriting.close()
    #expect(try await reading.value == written * 4096)
  }

  @Test(.timeLimit(.minutes(1))) func aReaderThatIsGoneIsReportedOnce() async throws {
    let pipe = Pipe()
    let reports = Reports()
    let output = writer(pipe.fileHandleForWriting, reports)
    try pipe.fileHandleForReading.close()
    output.write([0x78])
    await output.drain(until: .now + .seconds(50))
    #expect(!output.write([0x78]))
    await output.waitForRoom()
    #expect(reports.list == [.closed])
    withExtendedLifetime(pipe) {}
  }

  @Test(.timeLimit(.minutes(1))) func aFullDiskIsReportedOnceAndEndsNothing() async throws {
    let full = try #require(FileHandle(forWritingAtPath: "/dev/full"))
    let reports = Reports()
    let output = writer(full, reports)
    #expect(fill(output) >= OutputWriter.limit / 4096)
    // It is tried twice.
    await output.drain(until: .now + .milliseconds(1500))
    #expect(reports.list == [.failing(ENOSPC)])
    withExtendedLifetime(full) {}
  }
}

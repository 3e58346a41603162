import MusterSystem

/// A reader for the lines of a file or pipe, on a dedicated thread because reads block.
///
/// The thread stops reading while `linesWaiting` lines are pending: the pipe then slows down a
/// writer that sends commands faster than they are executed, and no line is lost.
package enum LineReader {
  /// The maximum length of a line in bytes, which bounds memory. Of a longer line the first
  /// `longestLine + 1` bytes are delivered: its rest must not be taken for a line of its own.
  package static let longestLine = 64 * 1024
  package static let linesWaiting = 256

  /// The lines in order, without line terminators; the last line may lack its terminator. The
  /// stream ends with the file.
  package static func lines(of descriptor: Int32) -> AsyncStream<[UInt8]> {
    let (stream, continuation) = AsyncStream<[UInt8]>.makeStream(bufferingPolicy: .unbounded)
    let source = Source(descriptor, continuation)
    WorkerThread("muster-lines") { source.read() }
    let iterator = Iterator(stream)
    return AsyncStream(
      unfolding: {
        let line = await iterator.next()
        source.taken()
        return line
      }, onCancel: { source.stop() })
  }

  /// The producer, which runs on the reading thread.
  private final class Source: Sendable {
    private struct State {
      var waiting = 0
      var isStopped = false
    }

    private let descriptor: Int32
    private let lines: AsyncStream<[UInt8]>.Continuation
    private let state = Monitor(State())

    init(_ descriptor: Int32, _ lines: AsyncStream<[UInt8]>.Continuation) {
      self.descriptor = descriptor
      self.lines = lines
    }

    func taken() { state.withLock { $0.waiting -= 1 } }

    func stop() { state.withLock { $0.isStopped = true } }

    /// Delivers one line, after waiting while the queue is full; returns false if the consumer has
    /// stopped.
    private func give(_ line: [UInt8]) -> Bool {
      let goesOn = state.wait { state -> Bool? in
        if state.isStopped { return false }
        guard state.waiting < LineReader.linesWaiting else { return nil }
        state.waiting += 1
        return true
      }
      if goesOn { lines.yield(line) }
      return goesOn
    }

    func read() {
      defer { lines.finish() }
      var line: [UInt8] = []
      var buffer = [UInt8](repeating: 0, count: 4096)
      while true {
        let count = MusterSystem.read(descriptor, &buffer, buffer.count)
        if count < 0 && errno == EINTR { continue }
        guard count > 0 else { break }
        for byte in buffer.prefix(count) {
          if byte == 0x0A {
            guard give(line) else { return }
            line.removeAll(keepingCapacity: true)
          } else if line.count <= LineReader.longestLine {
            line.append(byte)
          }
        }
      }
      if !line.isEmpty { _ = give(line) }
    }
  }

  /// A reference to the stream's iterator, so that a `@Sendable` closure can advance it.
  private final class Iterator: @unchecked Sendable {
    // Only the task that reads the lines uses the iterator.
    private var iterator: AsyncStream<[UInt8]>.Iterator

    init(_ stream: AsyncStream<[UInt8]>) { iterator = stream.makeAsyncIterator() }

    func next() async -> [UInt8]? { await iterator.next(isolation: nil) }
  }
}

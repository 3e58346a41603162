import MusterSystem

/// A writer for a pipe, file or terminal, on a thread of its own because writes block: the reader
/// at the other end may stop reading, and neither the node nor its end waits for that.
///
/// Each piece is written whole, and in the order given. A file that cannot be written to, such as
/// on a full disk, is tried again each second.
package final class OutputWriter: Sendable {
  /// Why nothing is written.
  package enum Trouble: Equatable, Sendable {
    /// The reader has closed its end: nobody will ever read more.
    case closed
    /// Writing fails with this `errno`, and may succeed later.
    case failing(Int32)
  }

  private struct State {
    /// The pieces that wait, and the number of their bytes with those of the one being written.
    var pieces: [[UInt8]] = []
    var waiting = 0
    var isFinished = false
    var trouble: Trouble?
  }

  /// The number of bytes that wait at most: dozens of the longest events.
  package static let limit = 256 * 1024
  private static let pollInterval = Duration.milliseconds(20)
  private static let retryMilliseconds: Int32 = 1000

  private let descriptor: Int32
  private let state = Monitor(State())
  private let report: @Sendable (Trouble) -> Void

  /// Writes to a descriptor, which stays open. `report` is called on the writing thread when output
  /// begins to fail, and when the reason changes.
  package init(_ descriptor: Int32, report: @escaping @Sendable (Trouble) -> Void) {
    self.descriptor = descriptor
    self.report = report
    WorkerThread("muster-output") { self.run() }
  }

  /// What keeps output from being written; nil if nothing does.
  package var trouble: Trouble? { state.withLock { $0.trouble } }

  /// Queues a piece; false if there is no room for it or nobody will read it.
  @discardableResult
  package func write(_ bytes: [UInt8]) -> Bool {
    state.withLock { state in
      let hasRoom = state.waiting == 0 || state.waiting + bytes.count <= Self.limit
      guard hasRoom, !state.isFinished, state.trouble != .closed else { return false }
      state.pieces.append(bytes)
      state.waiting += bytes.count
      return true
    }
  }

  /// Waits until half of the queue is free, or nobody will read any more.
  package func waitForRoom() async {
    await wait { $0.waiting <= Self.limit / 2 || $0.isFinished }
  }

  /// Takes nothing more.
  package func close() { state.withLock { $0.isFinished = true } }

  /// Takes nothing more, and waits until all is written, but not beyond `end`.
  package func drain(until end: ContinuousClock.Instant) async {
    close()
    await wait { $0.waiting == 0 || ContinuousClock.now >= end }
  }

  private func wait(_ holds: (State) -> Bool) async {
    while !state.withLock({ holds($0) || $0.trouble == .closed }) {
      try? await Task.sleep(for: Self.pollInterval)
    }
  }

  // MARK: The thread

  private func run() {
    while let piece = next() {
      guard write(whole: piece) else { return }
      state.withLock { $0.waiting -= piece.count }
    }
  }

  private func next() -> [UInt8]? {
    state.wait { state -> [UInt8]?? in
      if !state.pieces.isEmpty { return .some(state.pieces.removeFirst()) }
      return state.isFinished ? .some(nil) : nil
    }
  }

  /// Writes a piece however long that takes; false if nobody will read it.
  private func write(whole bytes: [UInt8]) -> Bool {
    var offset = 0
    while offset < bytes.count {
      let count = bytes[offset...].withUnsafeBytes {
        MusterSystem.write(descriptor, $0.baseAddress, $0.count)
      }
      if count > 0 {
        offset += count
        note(nil)
        continue
      }
      switch errno {
      case EINTR: continue
      case EAGAIN: waitForReader()
      case EPIPE:
        note(.closed)
        return false
      case let reason:
        note(.failing(reason))
        _ = poll(nil, 0, Self.retryMilliseconds)
      }
    }
    return true
  }

  private func waitForReader() {
    var writable = pollfd(fd: descriptor, events: Int16(POLLOUT), revents: 0)
    _ = poll(&writable, 1, -1)
  }

  private func note(_ trouble: Trouble?) {
    let isNew = state.withLock { state in
      defer { state.trouble = trouble }
      return state.trouble != trouble
    }
    if isNew, let trouble { report(trouble) }
  }
}

extension OutputWriter.Trouble: CustomStringConvertible {
  /// The fault, and what follows from it.
  package var description: String {
    switch self {
    case .closed: "nobody reads it any more: ending"
    case .failing(let reason):
      "\(SystemError.text(of: reason)): it is tried again each second"
    }
  }
}

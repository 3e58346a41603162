import MusterBase
import MusterSystem

/// A file or FIFO as a byte stream, read in bounded chunks; waiting for a FIFO can be cancelled.
final class ByteStream {
  /// How a read ended.
  enum Outcome: Equatable {
    case complete
    /// The file ended, the FIFO's writer closed it, or no data arrived in time; the buffer may be
    /// partly filled.
    case ended
    case cancelled
  }

  let path: String
  let isFIFO: Bool
  private var descriptor: Int32
  private let cancellation: Cancellation
  private var buffer = [UInt8](repeating: 0, count: 1 << 16)
  private var filled = 0
  private var position = 0
  private var patience: Duration?

  init(path: String, cancellation: Cancellation) throws(DeviceError) {
    self.path = path
    self.cancellation = cancellation
    // Non-blocking, because opening a FIFO would otherwise block until it has a writer, which
    // `cancel()` could not interrupt.
    descriptor = Self.open(path)
    guard descriptor >= 0 else { throw .file(path, errno) }
    var status = stat()
    guard fstat(descriptor, &status) == 0 else {
      let code = errno
      close(descriptor)
      throw .file(path, code)
    }
    let type = status.st_mode & S_IFMT
    guard type == S_IFREG || type == S_IFIFO else {
      close(descriptor)
      throw DeviceError(
        what: "\(path) is not a file", hint: "name a file or a FIFO, or see 'muster devices'")
    }
    isFIFO = type == S_IFIFO
  }

  deinit { if descriptor >= 0 { close(descriptor) } }

  /// Sets the time that a read waits for a FIFO before it returns `ended`; nil waits without limit.
  func setPatience(_ duration: Duration?) { patience = duration }

  /// Returns to the start of a file. A FIFO cannot seek: reading continues with its next writer.
  func rewind() throws(DeviceError) {
    filled = 0
    position = 0
    guard isFIFO else {
      if lseek(descriptor, 0, Int32(SEEK_SET)) != 0 { throw .file(path, errno) }
      return
    }
    // A new descriptor is needed, because `poll` would keep reporting the old writer's hang-up. The
    // old descriptor is closed last, so that a new writer always finds a reader.
    let fresh = Self.open(path)
    guard fresh >= 0 else { throw .file(path, errno) }
    close(descriptor)
    descriptor = fresh
  }

  /// Fills `target` and returns `complete`, or returns why the read ended early.
  func read(into target: UnsafeMutableRawBufferPointer) throws(DeviceError) -> Outcome {
    var done = 0
    while done < target.count {
      if position == filled {
        let outcome = try refill()
        if outcome != .complete { return outcome }
      }
      let count = min(filled - position, target.count - done)
      buffer.withUnsafeBytes { bytes in
        UnsafeMutableRawBufferPointer(rebasing: target[done..<(done + count)])
          .copyMemory(from: UnsafeRawBufferPointer(rebasing: bytes[position..<(position + count)]))
      }
      position += count
      done += count
    }
    return .complete
  }

  /// Reads `count` bytes, or fewer at the end of the stream; nil if cancelled.
  func read(count: Int) throws(DeviceError) -> [UInt8]? {
    var result = [UInt8]()
    while result.count < count {
      if position == filled {
        switch try refill() {
        case .complete: break
        case .ended: return result
        case .cancelled: return nil
        }
      }
      let piece = min(filled - position, count - result.count)
      result += buffer[position..<(position + piece)]
      position += piece
    }
    return result
  }

  /// Returns `count` bytes without consuming them, or fewer at the end of the stream; nil if
  /// cancelled. Valid only before the first read.
  func peek(count: Int) throws(DeviceError) -> [UInt8]? {
    precondition(position == 0 && filled == 0)
    guard let start = try read(count: count) else { return nil }
    // A FIFO may deliver these bytes in pieces, so they are put back before the buffered rest.
    var joined = start + buffer[position..<filled]
    position = 0
    filled = joined.count
    joined += [UInt8](repeating: 0, count: max(buffer.count - joined.count, 0))
    buffer = joined
    return start
  }

  /// Reads a line, without its newline, up to the end of the stream or `limit` bytes; nil if
  /// cancelled.
  func readLine(limit: Int) throws(DeviceError) -> [UInt8]? {
    var line = [UInt8]()
    while line.count < limit {
      if position == filled {
        switch try refill() {
        case .complete: break
        case .ended: return line
        case .cancelled: return nil
        }
      }
      let byte = buffer[position]
      position += 1
      if byte == UInt8(ascii: "\n") { return line }
      line.append(byte)
    }
    return line
  }

  /// Consumes `count` bytes without returning them.
  func skip(_ count: Int) throws(DeviceError) -> Outcome {
    var left = count
    while left > 0 {
      if position == filled {
        let outcome = try refill()
        if outcome != .complete { return outcome }
      }
      let step = min(filled - position, left)
      position += step
      left -= step
    }
    return .complete
  }

  private static func open(_ path: String) -> Int32 {
    MusterSystem.open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC)
  }

  private func refill() throws(DeviceError) -> Outcome {
    while true {
      if isFIFO {
        // Before the first writer opens the FIFO, `poll` waits; it reports a hang-up only after a
        // writer has closed the FIFO.
        if cancellation.isCancelled { return .cancelled }
        guard cancellation.waitReadable(descriptor, timeout: patience ?? .seconds(3600)) else {
          if cancellation.isCancelled { return .cancelled }
          if patience != nil { return .ended }
          continue
        }
      }
      let count = buffer.withUnsafeMutableBytes {
        MusterSystem.read(descriptor, $0.baseAddress, $0.count)
      }
      if count > 0 {
        position = 0
        filled = count
        return .complete
      }
      if count == 0 { return .ended }
      if errno != EINTR && errno != EAGAIN { throw .file(path, errno) }
    }
  }
}

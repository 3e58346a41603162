import Glibc
import MusterBase

/// Bytes of a file or FIFO, read forward in bounded steps; a wait on a FIFO can be cancelled.
final class ByteStream {
  /// What reading came to.
  enum Outcome: Equatable {
    case complete
    /// The end of the file, or the writer has left; perhaps in the middle of what was wanted.
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
    // Non-blocking, because opening a FIFO would otherwise wait for its writer, deaf to cancel().
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

  /// How long a FIFO may be silent before reading counts as ended; nil waits for ever.
  func setPatience(_ duration: Duration?) { patience = duration }

  /// Back to the beginning of a file. A FIFO has none: it goes on with what its next writer writes.
  func rewind() throws(DeviceError) {
    filled = 0
    position = 0
    guard isFIFO else {
      if lseek(descriptor, 0, Int32(SEEK_SET)) != 0 { throw .file(path, errno) }
      return
    }
    // Opened anew, else poll would report the old writer's hang-up for ever; the old one is closed
    // afterwards, so that the next writer never finds nobody listening.
    let fresh = Self.open(path)
    guard fresh >= 0 else { throw .file(path, errno) }
    close(descriptor)
    descriptor = fresh
  }

  /// Fills `target` completely, or says why not.
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

  /// `count` bytes, or fewer where the stream ends; nil when cancelled.
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

  /// The next bytes (up to `count`, fewer where the stream ends) without consuming them; nil when
  /// cancelled. Only before anything else is read.
  func peek(count: Int) throws(DeviceError) -> [UInt8]? {
    precondition(position == 0 && filled == 0)
    guard let start = try read(count: count) else { return nil }
    // A FIFO may have delivered these in pieces: put them back in front of what is left.
    var joined = start + buffer[position..<filled]
    position = 0
    filled = joined.count
    joined += [UInt8](repeating: 0, count: max(buffer.count - joined.count, 0))
    buffer = joined
    return start
  }

  /// A line without its newline; what there is when it ends or grows beyond `limit`; nil when
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

  /// Reads past `count` bytes.
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
    Glibc.open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC)
  }

  private func refill() throws(DeviceError) -> Outcome {
    while true {
      if isFIFO {
        // No writer yet: poll waits. (It reports a hang-up only after one has come and gone.)
        if cancellation.isCancelled { return .cancelled }
        guard cancellation.waitReadable(descriptor, timeout: patience ?? .seconds(3600)) else {
          if cancellation.isCancelled { return .cancelled }
          if patience != nil { return .ended }
          continue
        }
      }
      let count = buffer.withUnsafeMutableBytes { Glibc.read(descriptor, $0.baseAddress, $0.count) }
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

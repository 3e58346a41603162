import MusterBase
import MusterCodecs
import MusterSystem
import Synchronization

/// A writer of 48 kHz mono 16-bit audio to a WAV file that is playable at any time, even if the
/// process is killed, because the header is updated after every append.
public final class WAVWriter: Sendable {
  private let file: OutputFile
  private let dataBytes = Mutex<UInt32>(0)
  private static let headerBytes = 44

  /// Creates the file at `path`, which replaces another unless it has to be new (`isNew`). Throws
  /// if the file cannot be created.
  public init(path: String, isNew: Bool = false) throws(DeviceError) {
    file = try OutputFile(path: path, isNew: isNew)
    try file.append(Self.header(dataBytes: 0))
  }

  /// Appends 48 kHz mono samples. Throws if the disk is full or the file would exceed 4 GB (12
  /// hours), the limit of the format.
  public func append(_ pcm: [Int16]) throws(DeviceError) {
    let bytes = [UInt8](unsafeUninitializedCapacity: pcm.count * 2) { buffer, used in
      for (index, sample) in pcm.enumerated() {
        UnsafeMutableRawBufferPointer(buffer).storeBytes(
          of: sample.littleEndian, toByteOffset: 2 * index, as: Int16.self)
      }
      used = pcm.count * 2
    }
    try append(bytes)
  }

  /// Closes the file; idempotent.
  public func close() { file.close() }

  private func append(_ bytes: [UInt8]) throws(DeviceError) {
    let result = dataBytes.withLock { count -> Result<Void, DeviceError> in
      let (total, overflow) = count.addingReportingOverflow(
        UInt32(truncatingIfNeeded: bytes.count))
      guard !overflow, total <= .max - UInt32(Self.headerBytes) else {
        return .failure(
          DeviceError(what: "\(file.path) has reached 4 GB", hint: "begin another recording"))
      }
      // The samples are written before the header that counts them.
      do throws(DeviceError) {
        try file.append(bytes)
        try file.overwrite(Self.header(dataBytes: total), at: 0)
      } catch { return .failure(error) }
      count = total
      return .success(())
    }
    try result.get()
  }

  private static func header(dataBytes: UInt32) -> [UInt8] {
    var header = emptyHeader
    header.withUnsafeMutableBytes {
      let riffBytes = dataBytes + UInt32(headerBytes) - 8
      $0.storeBytes(of: riffBytes.littleEndian, toByteOffset: 4, as: UInt32.self)
      $0.storeBytes(of: dataBytes.littleEndian, toByteOffset: 40, as: UInt32.self)
    }
    return header
  }

  /// The header of a file without samples; computed once, because every append writes a header.
  private static let emptyHeader: [UInt8] = {
    func little(_ value: UInt32, _ count: Int) -> [UInt8] {
      (0..<count).map { UInt8(truncatingIfNeeded: value >> UInt32(8 * $0)) }
    }
    let rate = UInt32(AudioFormat.samplesPerSecond)
    var header = [UInt8]("RIFF".utf8) + little(0, 4)
    header += [UInt8]("WAVEfmt ".utf8) + little(16, 4) + little(1, 2) + little(1, 2)
    header += little(rate, 4) + little(rate * 2, 4) + little(2, 2) + little(16, 2)
    return header + [UInt8]("data".utf8) + little(0, 4)
  }()
}

/// An output file whose header can be overwritten. Each append is one system call if possible, so
/// that a killed process leaves whole records.
final class OutputFile: Sendable {
  let path: String
  private let descriptor: Mutex<Int32>

  /// Opens a file that only this user may read. If `isNew`, there must be none, and no symbolic
  /// link: in a directory of others one could lead to any file of this user's.
  init(path: String, isNew: Bool) throws(DeviceError) {
    let mode = isNew ? O_EXCL | O_NOFOLLOW : O_TRUNC
    let opened = open(path, O_WRONLY | O_CREAT | O_CLOEXEC | mode, 0o600)
    guard opened >= 0 else { throw .file(path, errno) }
    self.path = path
    descriptor = Mutex(opened)
  }

  deinit { close() }

  func append(_ bytes: [UInt8]) throws(DeviceError) {
    try whole(bytes) { descriptor, piece in
      write(descriptor, piece.baseAddress, piece.count)
    }
  }

  func overwrite(_ bytes: [UInt8], at offset: Int) throws(DeviceError) {
    var index = offset
    try whole(bytes) { descriptor, piece in
      let count = pwrite(descriptor, piece.baseAddress, piece.count, index)
      index += max(count, 0)
      return count
    }
  }

  /// Closes the file; idempotent. Later writes have no effect.
  func close() {
    descriptor.withLock { descriptor in
      if descriptor >= 0 { MusterSystem.close(descriptor) }
      descriptor = -1
    }
  }

  private func whole(
    _ bytes: [UInt8], _ step: (Int32, UnsafeRawBufferPointer) -> Int
  ) throws(DeviceError) {
    let failure = descriptor.withLock { descriptor -> Int32 in
      guard descriptor >= 0 else { return 0 }
      return bytes.withUnsafeBytes { buffer -> Int32 in
        var done = 0
        while done < buffer.count {
          let count = step(descriptor, UnsafeRawBufferPointer(rebasing: buffer[done...]))
          if count > 0 { done += count } else if errno != EINTR { return errno }
        }
        return 0
      }
    }
    if failure != 0 { throw .file(path, failure) }
  }
}

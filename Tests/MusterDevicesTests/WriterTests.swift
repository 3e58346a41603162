import Glibc
import MusterBase
import MusterCodecs
import MusterDevices
import Testing

@Suite struct WriterTests {
  private let scratch = Scratch()

  private func encodedPattern(_ count: Int) throws -> [[UInt8]] {
    let size = VideoSize(width: 160, height: 96)
    let encoder = try VP8Encoder(size: size, framesPerSecond: 30, kilobitsPerSecond: 300)
    let frame = I420Frame(size: size)
    return try (0..<count).compactMap { number in
      let time = Instant(nanoseconds: Int64(number) * 33_333_333)
      TestPattern.draw(number: UInt32(number), capturedAt: time, into: frame, flash: false)
      return try encoder.encode(frame, at: time)?.data
    }
  }

  @Test func ivfCutAnywhereHoldsEverythingBefore() throws {
    let frames = try encodedPattern(12)
    let writer = try IVFWriter(
      path: scratch.path + "/r.ivf", size: VideoSize(width: 160, height: 96))
    for (index, frame) in frames.enumerated() {
      try writer.append(frame, timestamp: UInt64(index) * 3000)
    }
    // Not closed, as if the process had been killed.
    let whole = scratch.read("r.ivf")
    #expect(whole.count == 32 + frames.reduce(0) { $0 + 12 + $1.count })
    for length in stride(from: 32, through: whole.count, by: 61) {
      let path = scratch.write("cut.ivf", [UInt8](whole.prefix(length)))
      let reader = try IVFReader(path: path)
      #expect(reader.rate == 90_000 && reader.scale == 1)
      var index = 0
      var bytes = 32
      while let frame = try reader.next() {
        #expect(frame.data == frames[index] && frame.timestamp == UInt64(index) * 3000)
        bytes += 12 + frame.data.count
        index += 1
      }
      let following = index < frames.count ? 12 + frames[index].count : .max / 2
      #expect(bytes <= length && bytes + following > length)
    }
  }

  /// Players take the number for the length in units of the timestamps.
  @Test func theHeaderOfAnIVFFileHasItsLength() throws {
    let writer = try IVFWriter(
      path: scratch.path + "/l.ivf", size: VideoSize(width: 16, height: 16))
    func length() -> Int {
      scratch.read("l.ivf")[24..<28].reversed().reduce(0) { $0 << 8 | Int($1) }
    }
    #expect(length() == 0)
    try writer.append([1, 2], timestamp: 9_000)
    #expect(length() == 9_000)
    for frame in UInt64(1)..<60 { try writer.append([1, 2], timestamp: 9_000 + frame * 3_000) }
    // A second or so behind, should the process end without a word.
    #expect(length() == 9_000 + 33 * 3_000)
    writer.close()
    #expect(length() == 9_000 + 60 * 3_000)
  }

  @Test func ivfTimesAlwaysGrow() throws {
    let writer = try IVFWriter(
      path: scratch.path + "/t.ivf", size: VideoSize(width: 16, height: 16))
    for time: UInt64 in [100, 100, 50, 200] { try writer.append([1, 2], timestamp: time) }
    writer.close()
    writer.close()
    let reader = try IVFReader(path: scratch.path + "/t.ivf")
    var times = [UInt64]()
    while let frame = try reader.next() { times.append(frame.timestamp) }
    #expect(times == [100, 101, 102, 200])
  }

  @Test func wavIsCompleteWithoutBeingClosed() throws {
    let writer = try WAVWriter(path: scratch.path + "/r.wav")
    var samples = [Int16]()
    for piece in 0..<5 {
      let pcm = (0..<960).map { Int16($0 * 7 - 3000 + piece) }
      try writer.append(pcm)
      samples += pcm
      let bytes = scratch.read("r.wav")
      #expect(bytes.count == 44 + samples.count * 2)
      #expect([UInt8](bytes[40..<44]) == TestFiles.little(samples.count * 2, 4))
      #expect([UInt8](bytes[4..<8]) == TestFiles.little(samples.count * 2 + 36, 4))
    }
    #expect(try readAll(scratch.path + "/r.wav") == samples)
    let whole = scratch.read("r.wav")
    for length in stride(from: 44, to: whole.count, by: 333) {
      let path = scratch.write("cut.wav", [UInt8](whole.prefix(length)))
      #expect(try readAll(path) == Array(samples.prefix((length - 44) / 2)))
    }
  }

  private func readAll(_ path: String) throws -> [Int16] {
    let reader = try WAVReader(path: path)
    var result = [Int16]()
    while true {
      let piece = try reader.next(500)
      if piece.isEmpty { return result }
      result += piece
    }
  }

  @Test func aFailedWriteIsReported() {
    #expect(throws: DeviceError.self) { try WAVWriter(path: scratch.path + "/none/x.wav") }
    #expect(throws: DeviceError.self) { try WAVWriter(path: scratch.path) }
    #expect(throws: DeviceError.self) {
      let full = try WAVWriter(path: "/dev/full")
      try full.append([0])
    }
  }

  /// What leads elsewhere is not followed, and what is there is kept.
  @Test(arguments: [false, true]) func aRecordingIsNewAndItsOwnersAlone(isLink: Bool) throws {
    let (path, target) = (scratch.path + "/r.ivf", scratch.path + "/other")
    let size = VideoSize(width: 320, height: 180)
    _ = try IVFWriter(path: isLink ? target : path, size: size)
    if isLink { symlink(target, path) }
    var status = stat()
    #expect(stat(path, &status) == 0 && status.st_mode & 0o777 == 0o600)
    #expect(throws: DeviceError.self) { try IVFWriter(path: path, size: size) }
    #expect(throws: DeviceError.self) { try WAVWriter(path: path, isNew: true) }
    unlink(target)
    // Now the link leads nowhere.
    if isLink { #expect(throws: DeviceError.self) { try WAVWriter(path: path, isNew: true) } }
    #expect(access(target, F_OK) != 0)
  }
}

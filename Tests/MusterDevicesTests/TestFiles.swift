import Glibc
import MusterBase
import MusterCodecs

/// A directory that is removed after the test.
final class Scratch: Sendable {
  let path: String

  init() {
    var template = [CChar]("/tmp/muster-test-XXXXXX".utf8CString)
    path = mkdtemp(&template).map { String(cString: $0) } ?? "/tmp"
  }

  deinit {
    guard path != "/tmp", let directory = opendir(path) else { return }
    while let entry = readdir(directory) {
      let name = withUnsafeBytes(of: entry.pointee.d_name) {
        String(decoding: $0.prefix { $0 != 0 }, as: UTF8.self)
      }
      unlink(path + "/" + name)
    }
    closedir(directory)
    rmdir(path)
  }

  /// Writes a file and returns its path.
  @discardableResult
  func write(_ name: String, _ bytes: [UInt8]) -> String {
    let file = path + "/" + name
    guard let stream = fopen(file, "wb") else { return file }
    fwrite(bytes, 1, bytes.count, stream)
    fclose(stream)
    return file
  }

  func read(_ name: String) -> [UInt8] { TestFiles.read(path + "/" + name) }

  func fifo(_ name: String) -> String {
    let file = path + "/" + name
    mkfifo(file, 0o600)
    return file
  }
}

enum TestFiles {
  static func read(_ path: String) -> [UInt8] {
    guard let file = fopen(path, "rb") else { return [] }
    defer { fclose(file) }
    var result = [UInt8]()
    var piece = [UInt8](repeating: 0, count: 1 << 16)
    while true {
      let count = fread(&piece, 1, piece.count, file)
      if count == 0 { return result }
      result += piece[0..<count]
    }
  }

  /// A file of `Tests/Vectors`, or of this folder with `inVectors` false.
  static func path(
    _ name: String, inVectors: Bool = true, here: StaticString = #filePath
  ) -> String {
    let folder = "/" + "\(here)".split(separator: "/").dropLast(1).joined(separator: "/")
    return inVectors ? "\(folder)/../Vectors/\(name)" : "\(folder)/\(name)"
  }

  static func little(_ value: Int, _ count: Int) -> [UInt8] {
    (0..<count).map { UInt8(truncatingIfNeeded: value >> (8 * $0)) }
  }

  /// A Y4M file of test patterns, whose numbers identify the frames.
  static func y4m(
    count: Int, size: VideoSize = VideoSize(width: 96, height: 64), rate: String = "50:1"
  ) -> [UInt8] {
    var bytes = [UInt8]("YUV4MPEG2 W\(size.width) H\(size.height) F\(rate) Ip A1:1 C420\n".utf8)
    let frame = I420Frame(size: size)
    for number in 0..<count {
      TestPattern.draw(number: UInt32(number), capturedAt: .zero, into: frame, flash: false)
      bytes += [UInt8]("FRAME\n".utf8) + frame.packedBytes()
    }
    return bytes
  }

  /// A WAV file with the given fields of the format chunk and samples.
  static func wav(
    tag: Int = 1, channels: Int = 1, rate: Int = 48_000, bits: Int, audio: [UInt8],
    declared: Int? = nil, before: [UInt8] = []
  ) -> [UInt8] {
    let block = channels * bits / 8
    var bytes = [UInt8]("RIFF".utf8) + little(36 + audio.count, 4) + [UInt8]("WAVE".utf8) + before
    bytes += [UInt8]("fmt ".utf8) + little(16, 4) + little(tag, 2) + little(channels, 2)
    bytes += little(rate, 4) + little(rate * block, 4) + little(block, 2) + little(bits, 2)
    return bytes + [UInt8]("data".utf8) + little(declared ?? audio.count, 4) + audio
  }
}

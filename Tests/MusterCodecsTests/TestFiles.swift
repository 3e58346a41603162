import Glibc
import MusterBase
import MusterCodecs

/// The files of `Tests/Vectors`, located relative to this source file.
enum TestFiles {
  static func bytes(_ name: String, here: StaticString = #filePath) -> [UInt8] {
    let parts = "\(here)".split(separator: "/").dropLast(2)
    let path = "/" + parts.joined(separator: "/") + "/Vectors/" + name
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

  /// The frames of an IVF file.
  static func ivfFrames(_ name: String) -> [[UInt8]] {
    let bytes = bytes(name)
    var result = [[UInt8]]()
    var index = 32
    while index + 12 <= bytes.count {
      let count = bytes[index..<(index + 4)].reversed().reduce(0) { $0 << 8 | Int($1) }
      guard index + 12 + count <= bytes.count else { break }
      result.append([UInt8](bytes[(index + 12)..<(index + 12 + count)]))
      index += 12 + count
    }
    return result
  }

  /// Camera footage for encoder tests: 60 frames of 320x180.
  static func bunny() throws -> [I420Frame] {
    let decoder = try VP8Decoder()
    return try ivfFrames("media/bunny_320x180.ivf").compactMap { try decoder.decode($0) }
  }

  /// Three seconds of speech, as 48 kHz frames of 20 ms.
  static func speech() throws -> [[Int16]] {
    let bytes = bytes("media/speech_16k.wav").dropFirst(44)
    let samples = stride(from: bytes.startIndex, to: bytes.endIndex - 1, by: 2).map {
      Int16(truncatingIfNeeded: Int(bytes[$0]) | Int(bytes[$0 + 1]) << 8)
    }
    let pcm = try Resampler(from: 16_000).process(samples)
    return stride(from: 0, to: pcm.count - 959, by: 960).map { Array(pcm[$0..<($0 + 960)]) }
  }
}

/// Measures of similarity.
enum Quality {
  /// Luma PSNR in dB over pairs of frames of one size.
  static func psnr(_ pairs: [(I420Frame, I420Frame)]) -> Double {
    var squares = 0.0
    var count = 0
    for (a, b) in pairs {
      for row in 0..<a.size.height {
        for column in 0..<a.size.width {
          let difference =
            Int(a.y[row * a.strideY + column]) - Int(b.y[row * b.strideY + column])
          squares += Double(difference * difference)
        }
      }
      count += a.size.pixels
    }
    return squares == 0 ? 99 : 10 * log10(255 * 255 * Double(count) / squares)
  }

  static func energy(_ pcm: [Int16]) -> Double {
    pcm.reduce(0.0) { $0 + Double($1) * Double($1) }
  }
}

import MusterBase
import MusterCodecs
import MusterSystem

/// A reader that converts WAV files of any number of channels to mono at the file's sample rate.
public final class WAVReader {
  /// The sample rate in Hz.
  public let samplesPerSecond: Int
  /// The number of channels in the file.
  public let channels: Int

  private enum Encoding { case unsigned8, signed16, signed24, signed32, float32, float64 }

  private let stream: ByteStream
  private let encoding: Encoding
  private let sampleBytes: Int
  /// The remaining bytes of samples. The header of a file that is still being written states 0 or
  /// the maximum; both stand for "to the end of the file".
  private var left: Int

  /// The maximum number of chunks before the data chunk; no real file has more.
  private static let chunkLimit = 64

  /// Opens a file or FIFO and reads the header; throws for formats other than PCM and IEEE float.
  public convenience init(
    path: String, cancellation: Cancellation = Cancellation()
  ) throws(DeviceError) {
    try self.init(stream: ByteStream(path: path, cancellation: cancellation))
  }

  init(stream: ByteStream) throws(DeviceError) {
    self.stream = stream
    guard let start = try stream.read(count: 12), start.count == 12,
      start[0..<4].elementsEqual("RIFF".utf8), start[8..<12].elementsEqual("WAVE".utf8)
    else {
      throw DeviceError(
        what: "\(stream.path) is not a WAV file", hint: "convert it: ffmpeg -i FILE OUT.wav")
    }
    var format: [UInt8]?
    var audioBytes: Int?
    for _ in 0..<Self.chunkLimit where audioBytes == nil {
      guard let header = try stream.read(count: 8), header.count == 8 else { break }
      let count = Self.littleEndian(header[4..<8])
      if header[0..<4].elementsEqual("data".utf8) {
        audioBytes = count == 0 || count >= 0xFFFF_FF00 ? .max : count
      } else if header[0..<4].elementsEqual("fmt ".utf8), (16...1024).contains(count) {
        format = try stream.read(count: count + count % 2)
      } else {
        guard try stream.skip(count + count % 2) == .complete else { break }
      }
    }
    guard let format, format.count >= 16, let audioBytes else {
      throw Self.unusable(stream, "no audio in it")
    }
    channels = Self.littleEndian(format[2..<4])
    samplesPerSecond = Self.littleEndian(format[4..<8])
    guard let encoding = Self.encoding(format) else {
      throw Self.unusable(stream, "an encoding that cannot be read")
    }
    self.encoding = encoding
    sampleBytes = Self.byteCount(encoding)
    left = audioBytes
    guard (1...64).contains(channels), Resampler.rates.contains(samplesPerSecond) else {
      throw Self.unusable(stream, "\(channels) channels at \(samplesPerSecond) Hz")
    }
  }

  /// Reads up to `count` samples, each the mean of all channels; empty at the end of the file.
  public func next(_ count: Int) throws(DeviceError) -> [Int16] {
    let block = channels * sampleBytes
    let wanted = min(max(count, 0), left / block, 1 << 16)
    guard wanted > 0, let bytes = try stream.read(count: wanted * block) else { return [] }
    left -= bytes.count
    return bytes.withUnsafeBytes { bytes in
      let samples = 0..<(bytes.count / block)
      // The usual format needs no conversion, which would take half as long as Opus encoding.
      if encoding == .signed16, channels == 1 {
        return samples.map { Int16(littleEndian: Self.load(bytes, at: 2 * $0)) }
      }
      return samples.map { index in
        var sum = 0.0
        for channel in 0..<channels {
          sum += sample(bytes, at: index * block + channel * sampleBytes)
        }
        let mean = (sum / Double(channels)).rounded()
        return Int16(min(max(mean, -32768), 32767))
      }
    }
  }

  /// One sample, scaled to the range of 16 bits; NaN becomes 0.
  private func sample(_ bytes: UnsafeRawBufferPointer, at offset: Int) -> Double {
    switch encoding {
    case .unsigned8: return (Double(bytes[offset]) - 128) * 256
    case .signed16: return Double(Int16(littleEndian: Self.load(bytes, at: offset)))
    case .signed24:
      let high = Int32(Int8(bitPattern: bytes[offset + 2])) << 16
      return Double(high | Int32(bytes[offset + 1]) << 8 | Int32(bytes[offset])) / 256
    case .signed32: return Double(Int32(littleEndian: Self.load(bytes, at: offset))) / 65536
    case .float32:
      let bits = UInt32(littleEndian: Self.load(bytes, at: offset))
      return Self.finite(Double(Float(bitPattern: bits)) * 32767)
    case .float64:
      let bits = UInt64(littleEndian: Self.load(bytes, at: offset))
      return Self.finite(Double(bitPattern: bits) * 32767)
    }
  }

  private static func load<Value: FixedWidthInteger & BitwiseCopyable>(
    _ bytes: UnsafeRawBufferPointer, at offset: Int
  ) -> Value {
    bytes.loadUnaligned(fromByteOffset: offset, as: Value.self)
  }

  /// The value within bounds that keep the mean of extreme floats finite.
  private static func finite(_ value: Double) -> Double {
    value.isNaN ? 0 : min(max(value, -65536), 65536)
  }

  private static func encoding(_ format: [UInt8]) -> Encoding? {
    var tag = littleEndian(format[0..<2])
    let bits = littleEndian(format[14..<16])
    // WAVE_FORMAT_EXTENSIBLE: the actual format tag is the start of the sub-format GUID.
    if tag == 0xFFFE, format.count >= 26 { tag = littleEndian(format[24..<26]) }
    switch (tag, bits) {
    case (1, 8): return .unsigned8
    case (1, 16): return .signed16
    case (1, 24): return .signed24
    case (1, 32): return .signed32
    case (3, 32): return .float32
    case (3, 64): return .float64
    default: return nil
    }
  }

  private static func byteCount(_ encoding: Encoding) -> Int {
    switch encoding {
    case .unsigned8: 1
    case .signed16: 2
    case .signed24: 3
    case .signed32, .float32: 4
    case .float64: 8
    }
  }

  private static func unusable(_ stream: ByteStream, _ what: String) -> DeviceError {
    DeviceError(
      what: "\(stream.path): \(what)", hint: "convert it: ffmpeg -i FILE -c:a pcm_s16le OUT.wav")
  }

  private static func littleEndian(_ bytes: ArraySlice<UInt8>) -> Int {
    bytes.reversed().reduce(0) { $0 << 8 | Int($1) }
  }
}

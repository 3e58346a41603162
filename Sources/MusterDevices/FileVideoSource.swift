import MusterBase
import MusterCodecs
import MusterSystem

/// A `.y4m` or `.ivf` file, looped at its own frame rate, or a FIFO with either format.
///
/// Late frames of a file are skipped. A FIFO is paced by its writer: no frame is skipped, and a new
/// writer continues the stream.
final class FileVideoSource: VideoSource, @unchecked Sendable {
  let format: VideoFormat

  private enum Reader {
    case y4m(Y4MReader)
    case ivf(IVFFrames)
  }

  private let path: String
  private let isFIFO: Bool
  private let reader: Reader
  private let cancellation: Cancellation
  private var schedule: FrameSchedule
  private var isFirst = true

  /// The timeout for the first bytes of a FIFO.
  static let fifoPatience = Duration.seconds(10)

  init(path: String, cancellation: Cancellation) throws(DeviceError) {
    self.path = path
    self.cancellation = cancellation
    let stream = try ByteStream(path: path, cancellation: cancellation)
    isFIFO = stream.isFIFO
    let (size, rate): (VideoSize, (Int, Int))
    stream.setPatience(Self.fifoPatience)
    switch try Self.container(stream) {
    case .y4m:
      let y4m = try Y4MReader(stream: stream)
      (size, rate) = (y4m.size, (y4m.rateNumerator, y4m.rateDenominator))
      reader = .y4m(y4m)
    case .ivf:
      let ivf = try IVFFrames(IVFReader(stream: stream), path: path)
      (size, rate) = (ivf.size, (ivf.rateNumerator, ivf.rateDenominator))
      reader = .ivf(ivf)
    }
    stream.setPatience(nil)
    format = VideoFormat(
      size: size, framesPerSecond: max(1, (rate.0 + rate.1 / 2) / rate.1))
    schedule = FrameSchedule(numerator: rate.0, denominator: rate.1, start: BootClock.now)
  }

  func next() throws(DeviceError) -> CapturedFrame? {
    if isFirst {
      schedule.rebase(to: BootClock.now)
      isFirst = false
    }
    if !isFIFO {
      // At most one second is skipped, because the position in the loop does not matter after a
      // suspend.
      for _ in 0..<min(schedule.skipLate(at: BootClock.now), format.framesPerSecond) {
        guard try skip() else { return nil }
      }
    }
    guard let frame = try read() else { return nil }
    let now = BootClock.now
    if isFIFO, now - schedule.due > schedule.interval { schedule.rebase(to: now) }
    guard cancellation.sleep(until: schedule.due) else { return nil }
    schedule.advance()
    return CapturedFrame(frame: frame, capturedAt: BootClock.now, format: format)
  }

  func cancel() { cancellation.cancel() }

  /// The next frame, continuing with the first frame after the end of the file; nil if cancelled.
  private func read() throws(DeviceError) -> I420Frame? {
    try looped { () throws(DeviceError) -> I420Frame? in
      switch reader {
      case .y4m(let reader): try reader.next()
      case .ivf(let reader): try reader.next()
      }
    }
  }

  private func skip() throws(DeviceError) -> Bool {
    try looped { () throws(DeviceError) -> Bool? in
      switch reader {
      case .y4m(let reader): try reader.skip() ? true : nil
      // The skipped frame is decoded, because later frames refer to this frame.
      case .ivf(let reader): try reader.next() == nil ? nil : true
      }
    } ?? false
  }

  private func looped<Value>(
    _ step: () throws(DeviceError) -> Value?
  ) throws(DeviceError) -> Value? {
    for _ in 0..<2 {
      if cancellation.isCancelled { return nil }
      if let value = try step() { return value }
      if cancellation.isCancelled { return nil }
      switch reader {
      case .y4m(let reader): try reader.rewind()
      case .ivf(let reader): try reader.rewind()
      }
    }
    if cancellation.isCancelled { return nil }
    throw DeviceError(
      what: "\(path) holds no complete frame", hint: "the file is empty or damaged; make it again"
    )
  }

  private enum Container { case y4m, ivf }

  /// The container format, detected from the first bytes because a FIFO can have any name.
  private static func container(_ stream: ByteStream) throws(DeviceError) -> Container {
    guard let start = try stream.peek(count: 4) else {
      throw DeviceError(what: "\(stream.path): cancelled", hint: "start again")
    }
    if start.isEmpty && stream.isFIFO {
      throw DeviceError(
        what: "nobody wrote to \(stream.path) for \(fifoPatience.components.seconds) seconds",
        hint: "start the program that writes to it first")
    }
    if start.elementsEqual(Y4MReader.magic.prefix(4)) { return .y4m }
    if start.elementsEqual(IVFReader.magic) { return .ivf }
    throw DeviceError(
      what: "\(stream.path) is neither Y4M nor IVF",
      hint: "convert it: ffmpeg -i FILE -pix_fmt yuv420p OUT.y4m")
  }
}

/// The decoded frames of an IVF file, all scaled to the size of the first keyframe.
final class IVFFrames {
  let size: VideoSize
  private(set) var rateNumerator = 30
  private(set) var rateDenominator = 1

  private let reader: IVFReader
  private let path: String
  private var decoder: VP8Decoder
  /// Frames read ahead to determine size and rate.
  private var ahead: [IVFReader.Frame]

  init(_ reader: IVFReader, path: String) throws(DeviceError) {
    self.reader = reader
    self.path = path
    decoder = try Self.makeDecoder()
    var first = [IVFReader.Frame]()
    while first.count < 2, let frame = try reader.next() { first.append(frame) }
    ahead = first
    let announced = first.first.flatMap { VP8Decoder.keyframeSize($0.data) }
    guard let announced, announced.pixels > 0, announced.pixels <= VP8Decoder.maximumPixels else {
      throw DeviceError(
        what: "\(path) does not begin with a usable keyframe",
        hint: "the file is empty or damaged; make it again")
    }
    size = announced
    learnRate()
  }

  /// The next frame; nil at the end of the file. Frames that do not decode are skipped.
  func next() throws(DeviceError) -> I420Frame? {
    while true {
      let stored = ahead.isEmpty ? try reader.next() : ahead.removeFirst()
      guard let stored else { return nil }
      guard let image = try? decoder.decode(stored.data) else { continue }
      if image.size == size { return image }
      let scaled = I420Frame(size: size)
      if PixelConversion.scale(image, into: scaled) { return scaled }
    }
  }

  func rewind() throws(DeviceError) {
    try reader.rewind()
    ahead = []
    decoder = try Self.makeDecoder()
  }

  private static func makeDecoder() throws(DeviceError) -> VP8Decoder {
    do { return try VP8Decoder() } catch {
      throw DeviceError(what: error.what, hint: "check the installation of libvpx")
    }
  }

  /// Determines the frame rate from the interval of the first two frames, because the time base in
  /// the header can also be 1/1000 or 1/90000.
  private func learnRate() {
    guard ahead.count == 2, ahead[1].timestamp > ahead[0].timestamp,
      reader.rate <= 1_000_000, reader.scale <= 1_000_000
    else { return }
    let ticks = ahead[1].timestamp - ahead[0].timestamp
    guard ticks <= 1_000_000 else { return }
    let denominator = Int(ticks) * reader.scale
    guard reader.rate <= denominator * 240, denominator <= reader.rate else { return }
    rateNumerator = reader.rate
    rateDenominator = denominator
  }
}

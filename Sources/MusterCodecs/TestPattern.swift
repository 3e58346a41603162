import MusterBase

/// A moving test pattern that carries its frame number and capture time in its pixels.
///
/// The top quarter is a grid of 16 by 6 blocks, dark for 0 and bright for 1, in reading order, most
/// significant bit first:
///
/// | bits | content |
/// | --- | --- |
/// | 32 | frame number as a Gray code: consecutive numbers differ in one block |
/// | 48 | capture time in units of 100 us of the capturing machine's boot clock |
/// | 16 | CRC-16/CCITT (polynomial 0x1021, initial value 0xFFFF) of the preceding 10 bytes |
///
/// Block (column, row) starts at x = `column * width / 16` and y = `row * height / 24`. Positions
/// are relative to the frame size, so every simulcast layer can be read. The dark and bright levels
/// remain distinguishable in VP8 at 150 kbit/s. Below the grid, a ball and a bar move over a
/// gradient; the square at the lower left is white during a flash.
public enum TestPattern {
  static let columns = 16
  static let rows = 6
  /// The number of rows of blocks that would fill the height of the frame.
  static let rowsInFrame = 24
  private static let dark: UInt8 = 40
  private static let bright: UInt8 = 216
  /// The unit of capture times in nanoseconds: 100 us.
  private static let timeUnit: Int64 = 100_000
  static let smallestSide = 48

  /// The duration of the pattern's flash, and of the test tone's louder part, at every full second
  /// of boot time; together they show lip sync.
  public static let flashDuration = Duration.milliseconds(100)

  /// Whether a frame captured at this time shows the flash.
  public static func flashes(at instant: Instant) -> Bool {
    let phase = instant.nanoseconds % 1_000_000_000
    return phase >= 0 && phase < flashDuration.wholeNanoseconds
  }

  /// Draws one frame; `hue` (any number) selects the background's tint, to distinguish sources.
  public static func draw(
    number: UInt32, capturedAt: Instant, into frame: I420Frame, flash: Bool, hue: Int = 0
  ) {
    drawBackground(frame, hue: hue)
    drawBar(frame, number: number)
    drawBall(frame, number: number)
    drawFlash(frame, isOn: flash)
    drawBlocks(frame, bits: message(number: number, capturedAt: capturedAt))
  }

  /// The frame number and capture time in the blocks; nil if the checksum fails or the frame is too
  /// small.
  public static func read(_ frame: I420Frame) -> (number: UInt32, capturedAt: Instant)? {
    guard frame.size.shortSide >= smallestSide else { return nil }
    var bytes = [UInt8](repeating: 0, count: columns * rows / 8)
    for bit in 0..<(columns * rows) {
      let isBright = average(frame, column: bit % columns, row: bit / columns) >= 128
      bytes[bit / 8] = bytes[bit / 8] << 1 | (isBright ? 1 : 0)
    }
    let check = UInt16(bytes[10]) << 8 | UInt16(bytes[11])
    guard checksum(bytes[0..<10]) == check else { return nil }
    let gray = bytes[0..<4].reduce(UInt32(0)) { $0 << 8 | UInt32($1) }
    let units = bytes[4..<10].reduce(Int64(0)) { $0 << 8 | Int64($1) }
    // A 48-bit count of 100 us units can exceed the range of `Instant`, but only in a forged
    // pattern.
    guard units <= Int64.max / timeUnit else { return nil }
    return (ungrayed(gray), Instant(nanoseconds: units * timeUnit))
  }

  private static func message(number: UInt32, capturedAt: Instant) -> [UInt8] {
    let gray = number ^ (number >> 1)
    let units = UInt64(max(capturedAt.nanoseconds, 0) / timeUnit)
    var bytes = [24, 16, 8, 0].map { UInt8(truncatingIfNeeded: gray >> UInt32($0)) }
    bytes += [40, 32, 24, 16, 8, 0].map { UInt8(truncatingIfNeeded: units >> UInt64($0)) }
    let check = checksum(bytes[...])
    return bytes + [UInt8(check >> 8), UInt8(truncatingIfNeeded: check)]
  }

  private static func ungrayed(_ gray: UInt32) -> UInt32 {
    var value = gray
    for shift in [1, 2, 4, 8, 16] as [UInt32] { value ^= value >> shift }
    return value
  }

  private static func checksum(_ bytes: ArraySlice<UInt8>) -> UInt16 {
    var crc: UInt16 = 0xFFFF
    for byte in bytes {
      crc ^= UInt16(byte) << 8
      for _ in 0..<8 { crc = crc & 0x8000 != 0 ? crc << 1 ^ 0x1021 : crc << 1 }
    }
    return crc
  }

  private static func edges(_ frame: I420Frame, column: Int, row: Int) -> (Range<Int>, Range<Int>) {
    let width = frame.size.width
    let height = frame.size.height
    return (
      (column * width / columns)..<((column + 1) * width / columns),
      (row * height / rowsInFrame)..<((row + 1) * height / rowsInFrame)
    )
  }

  /// The mean luma of the inner part of a block; the edges have compression artefacts.
  private static func average(_ frame: I420Frame, column: Int, row: Int) -> Int {
    let (across, down) = edges(frame, column: column, row: row)
    let insetX = across.count / 4
    let insetY = down.count / 4
    var sum = 0
    var count = 0
    for y in (down.lowerBound + insetY)..<(down.upperBound - insetY) {
      for x in (across.lowerBound + insetX)..<(across.upperBound - insetX) {
        sum += Int(frame.y[y * frame.strideY + x])
        count += 1
      }
    }
    return count == 0 ? 0 : sum / count
  }
}

extension TestPattern {
  private static func paint(
    _ frame: I420Frame, x: Range<Int>, y: Range<Int>, luma: UInt8, u: UInt8? = nil, v: UInt8? = nil
  ) {
    let x = x.clamped(to: 0..<frame.size.width)
    let y = y.clamped(to: 0..<frame.size.height)
    guard !x.isEmpty else { return }
    for row in y {
      (frame.y + row * frame.strideY + x.lowerBound).update(repeating: luma, count: x.count)
    }
    guard let u, let v else { return }
    let first = x.lowerBound / 2
    let count = (x.upperBound + 1) / 2 - first
    for row in stride(from: y.lowerBound / 2, to: (y.upperBound + 1) / 2, by: 1) {
      (frame.u + row * frame.strideUV + first).update(repeating: u, count: count)
      (frame.v + row * frame.strideUV + first).update(repeating: v, count: count)
    }
  }

  private static func drawBackground(_ frame: I420Frame, hue: Int) {
    // Eight tints around the colour circle, all muted so that the ball stands out.
    let tints: [(UInt8, UInt8)] = [
      (150, 110), (128, 90), (100, 100), (95, 128), (105, 155), (128, 160), (155, 150), (165, 128),
    ]
    let (u, v) = tints[((hue % tints.count) + tints.count) % tints.count]
    for row in 0..<frame.size.height {
      let luma = UInt8(60 + 80 * row / frame.size.height)
      (frame.y + row * frame.strideY).update(repeating: luma, count: frame.size.width)
    }
    frame.u.update(repeating: u, count: frame.strideUV * frame.chromaHeight)
    frame.v.update(repeating: v, count: frame.strideUV * frame.chromaHeight)
  }

  /// A bar at the bottom that crosses the frame in 120 frames: 4 s at 30 frames per second.
  private static func drawBar(_ frame: I420Frame, number: UInt32) {
    let width = frame.size.width
    let height = frame.size.height
    let x = Int(number % 120) * width / 120
    paint(
      frame, x: x..<(x + max(width / 40, 2)), y: (height * 15 / 16)..<height, luma: 235, u: 128,
      v: 128)
  }

  /// A ball that bounces horizontally in 150 frames and vertically in 90: 5 s and 3 s at 30 frames
  /// per second.
  private static func drawBall(_ frame: I420Frame, number: UInt32) {
    let width = frame.size.width
    let height = frame.size.height
    let radius = frame.size.shortSide / 10
    let top = height * rows / rowsInFrame
    func bounce(_ period: UInt32, _ range: Range<Int>) -> Int {
      let phase = Int(number % period)
      let half = Int(period) / 2
      let offset = phase < half ? phase : Int(period) - phase
      return range.lowerBound + range.count * offset / half
    }
    let centerX = bounce(150, radius..<(width - radius))
    let centerY = bounce(90, (top + radius)..<(height * 15 / 16 - radius))
    for row in -radius...radius {
      let half = squareRoot(radius * radius - row * row)
      paint(
        frame, x: (centerX - half)..<(centerX + half),
        y: (centerY + row)..<(centerY + row + 1), luma: 190, u: 60, v: 180)
    }
  }

  private static func drawFlash(_ frame: I420Frame, isOn: Bool) {
    let side = frame.size.height / 6
    let bottom = frame.size.height * 15 / 16
    paint(
      frame, x: 0..<side, y: (bottom - side)..<bottom, luma: isOn ? 235 : 16, u: 128, v: 128)
  }

  private static func drawBlocks(_ frame: I420Frame, bits: [UInt8]) {
    guard frame.size.shortSide >= smallestSide else { return }
    for bit in 0..<(columns * rows) {
      let isBright = bits[bit / 8] >> UInt8(7 - bit % 8) & 1 == 1
      let (across, down) = edges(frame, column: bit % columns, row: bit / columns)
      paint(frame, x: across, y: down, luma: isBright ? bright : dark, u: 128, v: 128)
    }
  }

  private static func squareRoot(_ value: Int) -> Int {
    Int(Double(max(value, 0)).squareRoot())
  }
}

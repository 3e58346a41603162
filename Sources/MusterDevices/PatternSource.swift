import MusterBase
import MusterCodecs
import MusterSystem

/// A video source of the test pattern; late frames are skipped and leave a gap in the frame
/// numbers.
final class PatternSource: VideoSource, @unchecked Sendable {
  let format: VideoFormat

  private let cancellation: Cancellation
  private let pool: FramePool
  private var schedule: FrameSchedule
  /// The background's tint, one of eight by process id, to distinguish nodes on one screen.
  private let hue = Int(getpid())

  init(size: VideoSize, framesPerSecond: Int, cancellation: Cancellation) {
    format = VideoFormat(size: size, framesPerSecond: framesPerSecond, isPattern: true)
    self.cancellation = cancellation
    pool = FramePool(size: size)
    schedule = FrameSchedule(
      numerator: framesPerSecond, denominator: 1, start: BootClock.now)
  }

  func next() throws(DeviceError) -> CapturedFrame? {
    _ = schedule.skipLate(at: BootClock.now)
    guard cancellation.sleep(until: schedule.due) else { return nil }
    let number = UInt32(truncatingIfNeeded: schedule.index)
    schedule.advance()
    let now = BootClock.now
    let frame = pool.frame()
    TestPattern.draw(
      number: number, capturedAt: now, into: frame, flash: TestPattern.flashes(at: now), hue: hue)
    return CapturedFrame(frame: frame, capturedAt: now, format: format)
  }

  func cancel() { cancellation.cancel() }
}

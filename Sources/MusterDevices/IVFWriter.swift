import MusterBase
import Synchronization

/// A writer of VP8 frames to an IVF file that is playable at any time, even if the process is
/// killed.
///
/// Each frame is written with its header in one system call. The length in the file header is
/// updated only occasionally.
public final class IVFWriter: Sendable {
  private struct State {
    var frames: UInt32 = 0
    var firstTimestamp: UInt64?
    var lastTimestamp: UInt64 = 0

    /// The time at which the last frame ends, if it is shown for as long as the others are.
    var length: UInt64 {
      guard let firstTimestamp else { return 0 }
      return lastTimestamp &+ (lastTimestamp - firstTimestamp) / UInt64(max(frames, 2) - 1)
    }
  }

  /// The timestamp ticks per second, equal to the RTP clock of VP8 (RFC 7741 section 4.1) so that
  /// RTP timestamps need no conversion.
  public static let ticksPerSecond = 90_000

  private let file: OutputFile
  private let size: VideoSize
  private let state = Mutex(State())

  /// Creates the file at `path`; `size` is that of the first keyframe. Throws if there is something
  /// at this path already, or the file cannot be created.
  public init(path: String, size: VideoSize) throws(DeviceError) {
    self.size = size
    file = try OutputFile(path: path, isNew: true)
    try file.append(Self.header(size: size, length: 0))
  }

  /// Appends a frame; a timestamp that does not increase is replaced by the previous timestamp plus
  /// 1. Throws when the disk is full.
  public func append(_ frame: [UInt8], timestamp: UInt64) throws(DeviceError) {
    let result = state.withLock { state -> Result<Void, DeviceError> in
      var time = timestamp
      if state.firstTimestamp != nil, time <= state.lastTimestamp {
        time = state.lastTimestamp &+ 1
      }
      do throws(DeviceError) {
        try file.append(
          Self.little(UInt64(frame.count), 4) + Self.little(time, 8) + frame)
        state.frames &+= 1
        state.firstTimestamp = state.firstTimestamp ?? time
        state.lastTimestamp = time
        if state.frames % 32 == 1 { try write(length: state.length) }
      } catch { return .failure(error) }
      return .success(())
    }
    try result.get()
  }

  /// Updates the length and closes the file; idempotent.
  public func close() {
    state.withLock { state in try? write(length: state.length) }
    file.close()
  }

  private func write(length: UInt64) throws(DeviceError) {
    try file.overwrite(Self.header(size: size, length: length), at: 0)
  }

  /// The file header. Its last number was meant to count the frames; players, FFmpeg first
  /// (`ivfdec.c`), take it for the length in units of the timestamps.
  private static func header(size: VideoSize, length: UInt64) -> [UInt8] {
    var header = [UInt8]("DKIF".utf8) + little(0, 2) + little(32, 2) + [UInt8]("VP80".utf8)
    header += little(UInt64(size.width), 2) + little(UInt64(size.height), 2)
    header += little(UInt64(ticksPerSecond), 4) + little(1, 4)
    header += little(min(length, UInt64(UInt32.max)), 4)
    return header + little(0, 4)
  }

  private static func little(_ value: UInt64, _ count: Int) -> [UInt8] {
    (0..<count).map { UInt8(truncatingIfNeeded: value >> UInt64(8 * $0)) }
  }
}

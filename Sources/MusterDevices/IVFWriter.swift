import MusterBase
import Synchronization

/// A writer of VP8 frames to an IVF file that is playable at any time, even if the process is
/// killed.
///
/// Each frame is written with its header in one system call. The frame count in the file header is
/// updated only occasionally, because players ignore it.
public final class IVFWriter: Sendable {
  private struct State {
    var frames: UInt32 = 0
    var lastTimestamp: UInt64?
  }

  /// The timestamp ticks per second, equal to the RTP clock of VP8 (RFC 7741 section 4.1) so that
  /// RTP timestamps need no conversion.
  public static let ticksPerSecond = 90_000

  private let file: OutputFile
  private let size: VideoSize
  private let state = Mutex(State())

  /// Creates or replaces the file at `path`; `size` is that of the first keyframe. Throws if the
  /// file cannot be created.
  public init(path: String, size: VideoSize) throws(DeviceError) {
    self.size = size
    file = try OutputFile(path: path)
    try file.append(Self.header(size: size, frames: 0))
  }

  /// Appends a frame; a timestamp that does not increase is replaced by the previous timestamp plus
  /// 1. Throws when the disk is full.
  public func append(_ frame: [UInt8], timestamp: UInt64) throws(DeviceError) {
    let result = state.withLock { state -> Result<Void, DeviceError> in
      var time = timestamp
      if let last = state.lastTimestamp, time <= last { time = last &+ 1 }
      do throws(DeviceError) {
        try file.append(
          Self.little(UInt64(frame.count), 4) + Self.little(time, 8) + frame)
        state.frames &+= 1
        state.lastTimestamp = time
        if state.frames % 32 == 1 { try writeCount(state.frames) }
      } catch { return .failure(error) }
      return .success(())
    }
    try result.get()
  }

  /// Updates the frame count and closes the file; idempotent.
  public func close() {
    state.withLock { state in try? writeCount(state.frames) }
    file.close()
  }

  private func writeCount(_ frames: UInt32) throws(DeviceError) {
    try file.overwrite(Self.header(size: size, frames: frames), at: 0)
  }

  private static func header(size: VideoSize, frames: UInt32) -> [UInt8] {
    var header = [UInt8]("DKIF".utf8) + little(0, 2) + little(32, 2) + [UInt8]("VP80".utf8)
    header += little(UInt64(size.width), 2) + little(UInt64(size.height), 2)
    header += little(UInt64(ticksPerSecond), 4) + little(1, 4) + little(UInt64(frames), 4)
    return header + little(0, 4)
  }

  private static func little(_ value: UInt64, _ count: Int) -> [UInt8] {
    (0..<count).map { UInt8(truncatingIfNeeded: value >> UInt64(8 * $0)) }
  }
}

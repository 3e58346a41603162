import MusterBase
import Synchronization

/// Writes VP8 frames as IVF; the file is playable at any moment, even when the process is killed.
///
/// A player goes by the frames, each written at once with its header. The count in the file's own
/// header is informative, and brought up to date now and then.
public final class IVFWriter: Sendable {
  private struct State {
    var frames: UInt32 = 0
    var lastTimestamp: UInt64?
  }

  /// Timestamps count 1/90000 s, as RTP's do, so they pass unchanged.
  public static let ticksPerSecond = 90_000

  private let file: OutputFile
  private let size: VideoSize
  private let state = Mutex(State())

  /// Replaces what is at `path`; `size` is that of the first keyframe.
  public init(path: String, size: VideoSize) throws(DeviceError) {
    self.size = size
    file = try OutputFile(path: path)
    try file.append(Self.header(size: size, frames: 0))
  }

  /// Adds a frame; times that do not grow are moved to just after the one before.
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

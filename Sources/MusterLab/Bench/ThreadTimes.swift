import MusterBase
import MusterSystem

/// The CPU time of the threads of a process, in seconds by name; threads of one name are added up.
struct ThreadTimes: Sendable {
  private(set) var seconds = PeerTable<String, Double>()

  /// The times until now, of threads that run; empty for a process that has ended.
  init(ofProcess id: pid_t) {
    guard let directory = opendir("/proc/\(id)/task") else { return }
    defer { closedir(directory) }
    while let entry = readdir(directory) {
      let thread = withUnsafeBytes(of: entry.pointee.d_name) {
        String(decoding: $0.prefix { $0 != 0 }, as: UTF8.self)
      }
      // The first field of schedstat is the time on a CPU in ns (Documentation/scheduler/
      // sched-stats.rst).
      guard thread.first != ".", let name = Self.line("/proc/\(id)/task/\(thread)/comm"),
        let times = Self.line("/proc/\(id)/task/\(thread)/schedstat"),
        let nanoseconds = times.split(separator: " ").first.flatMap({ Double($0) })
      else { continue }
      seconds[name] = (seconds[name] ?? 0) + nanoseconds / 1e9
    }
  }

  /// The times since an earlier measurement of the same process.
  func since(_ earlier: ThreadTimes) -> PeerTable<String, Double> {
    var result = PeerTable<String, Double>()
    for (name, now) in seconds { result[name] = max(now - (earlier.seconds[name] ?? 0), 0) }
    return result
  }

  /// The first line of a file of the kernel.
  private static func line(_ path: String) -> String? {
    guard let file = fopen(path, "r") else { return nil }
    defer { fclose(file) }
    var buffer = [UInt8](repeating: 0, count: 128)
    let count = fread(&buffer, 1, buffer.count, file)
    return String(decoding: buffer.prefix(count).prefix { $0 != 0x0A }, as: UTF8.self)
  }
}

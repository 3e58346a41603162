import Glibc

/// The CPU time and memory that this process uses.
public enum ProcessUsage {
  /// The user and system time of all threads since the process started.
  public static var cpuNanoseconds: Int64 {
    var time = timespec()
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time)
    return Int64(time.tv_sec) * 1_000_000_000 + Int64(time.tv_nsec)
  }

  /// The same in seconds.
  package static var cpuSeconds: Double { Double(cpuNanoseconds) / 1e9 }

  /// Resident memory in MB (10^6 bytes) from /proc/self/statm; 0 if that file is missing.
  public static var residentMegabytes: Double {
    let file = open("/proc/self/statm", O_RDONLY | O_CLOEXEC)
    guard file >= 0 else { return 0 }
    defer { close(file) }
    var bytes = [UInt8](repeating: 0, count: 128)
    let count = read(file, &bytes, bytes.count)
    guard count > 0 else { return 0 }
    let fields = String(decoding: bytes.prefix(count), as: UTF8.self).split(separator: " ")
    guard fields.count > 1, let pages = Double(fields[1]) else { return 0 }
    return pages * Double(sysconf(Int32(_SC_PAGESIZE))) / 1e6
  }
}

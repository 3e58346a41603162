import Glibc
import Muster

/// The CPU time of this process.
enum ProcessTime {
  static var cpuSeconds: Double {
    var time = timespec()
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time)
    return Double(time.tv_sec) + Double(time.tv_nsec) / 1e9
  }
}

/// Files named by the user.
enum TextFile {
  static func write(_ text: String, to path: String) throws {
    guard let file = fopen(path, "w") else {
      throw MusterError("cannot write \(path)", hint: String(cString: strerror(errno)))
    }
    let isWritten = fputs(text, file) >= 0
    guard fclose(file) == 0, isWritten else {
      throw MusterError("cannot write all of \(path)", hint: String(cString: strerror(errno)))
    }
  }
}

import MusterBase
import MusterSystem

/// Wall-clock time and its formatting.
enum Clocks {
  /// The current wall time in seconds since 1970.
  static var wallSeconds: Int64 { Int64(clamping: WallClock.milliseconds / 1000) }

  /// A time such as `14:03` for today or `2026-11-21 14:03` for any other day, in the local time
  /// zone.
  static func timeOfDay(milliseconds: UInt64) -> String {
    let seconds = Int64(clamping: milliseconds / 1000)
    guard let time = local(seconds), let now = local(wallSeconds) else { return "?" }
    let isToday = time.tm_year == now.tm_year && time.tm_yday == now.tm_yday
    return isToday ? clock(time) : "\(day(time)) \(clock(time))"
  }

  /// A date and time such as `2026-11-21 14:03`, in the local time zone.
  static func date(seconds: Int64) -> String {
    local(seconds).map { "\(day($0)) \(clock($0))" } ?? "?"
  }

  /// A time such as `2026-11-28 14:03:09`, in the local time zone.
  static func timestamp(seconds: Int64) -> String {
    local(seconds).map { "\(day($0)) \(clock($0)):\(twoDigits($0.tm_sec))" } ?? "?"
  }

  /// The local calendar time; nil if the year does not fit into 32 bits.
  private static func local(_ seconds: Int64) -> tm? {
    var time = time_t(seconds)
    var result = tm()
    return localtime_r(&time, &result) == nil ? nil : result
  }

  private static func day(_ time: tm) -> String {
    "\(Int64(time.tm_year) + 1900)-\(twoDigits(time.tm_mon + 1))-\(twoDigits(time.tm_mday))"
  }

  private static func clock(_ time: tm) -> String {
    "\(twoDigits(time.tm_hour)):\(twoDigits(time.tm_min))"
  }

  private static func twoDigits(_ number: Int32) -> String {
    number < 10 ? "0\(number)" : "\(number)"
  }
}

/// Files named by the user.
enum TextFile {
  /// All that can be read from a descriptor, or more than `limit` bytes of it if there is more; nil
  /// if reading fails, with the reason in `errno`.
  static func bytes(of descriptor: Int32, limit: Int) -> [UInt8]? {
    var bytes: [UInt8] = []
    var buffer = [UInt8](repeating: 0, count: 65_536)
    while bytes.count <= limit {
      let count = read(descriptor, &buffer, buffer.count)
      if count < 0 && errno == EINTR { continue }
      guard count >= 0 else { return nil }
      guard count > 0 else { break }
      bytes += buffer.prefix(count)
    }
    return bytes
  }

  /// Writes a secret into a new file that only its owner may read, durably. Throws if there is such
  /// a file already, or if not all of it can be written; no file is left then.
  static func write(secret text: String, toNew path: String) throws(MusterError) {
    let descriptor = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0o600)
    guard descriptor >= 0 else {
      throw MusterError("cannot write \(path)", hint: SystemError.last)
    }
    defer { close(descriptor) }
    var rest = Array(text.utf8)[...]
    while !rest.isEmpty {
      let count = rest.withUnsafeBytes { MusterSystem.write(descriptor, $0.baseAddress, $0.count) }
      if count < 0 && errno == EINTR { continue }
      guard count > 0 else { break }
      rest = rest.dropFirst(count)
    }
    guard rest.isEmpty, fsync(descriptor) == 0 else {
      let reason = SystemError.last
      unlink(path)
      throw MusterError("cannot write all of \(path)", hint: reason)
    }
  }
}

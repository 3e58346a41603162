import Muster
import MusterSystem

/// The expiry time of an invite or a role on the command line.
package enum Expiry {
  /// The longest permitted lifetime other than `never`, in seconds: 100 years.
  private static let furthest: Int64 = 100 * 366 * 86_400
  package static let never: UInt64 = 0

  private static let help = """
    write a time from now, such as 30m, 2h or 7d, a day or a moment in UTC, such as 2026-12-31 or \
    2026-12-31T18:00Z, or never
    """

  /// Parses an expiry time into seconds since 1970; 0 for never. A date means the end of that day
  /// in UTC.
  package static func parse(
    _ text: String, of option: String = "--expires", now: Int64
  ) throws(MusterError) -> UInt64 {
    if text == "never" { return never }
    let shown = Words.shown(text)
    guard let seconds = duration(text).map({ now + $0 }) ?? moment(text) else {
      throw MusterError("\(option) \(shown) is no time", hint: help, kind: .usage)
    }
    guard seconds > now else {
      throw MusterError("\(option) \(shown) is in the past", hint: help, kind: .usage)
    }
    guard seconds - now <= furthest else {
      throw MusterError(
        "\(option) \(shown) is more than 100 years away", hint: "use never", kind: .usage)
    }
    return UInt64(seconds)
  }

  /// The expiry time as `never`, or as a date and time in the local time zone.
  static func text(_ seconds: UInt64) -> String {
    seconds == never ? "never" : Clocks.date(seconds: Int64(clamping: seconds))
  }

  private static func duration(_ text: String) -> Int64? {
    let units: [(Character, Int64)] = [("s", 1), ("m", 60), ("h", 3600), ("d", 86_400)]
    guard let unit = units.first(where: { $0.0 == text.last }),
      let count = number(text.dropLast(), digits: 1...9), count > 0
    else { return nil }
    return count * unit.1
  }

  /// Parses `YYYY-MM-DD`, which means the end of that day in UTC, or `YYYY-MM-DDTHH:MM[:SS]Z`.
  private static func moment(_ text: String) -> Int64? {
    let parts = text.split(separator: "T", maxSplits: 1, omittingEmptySubsequences: false)
    let day = parts[0].split(separator: "-", omittingEmptySubsequences: false)
    guard day.count == 3, let year = number(day[0], digits: 4...4),
      let month = number(day[1], digits: 2...2), let date = number(day[2], digits: 2...2)
    else { return nil }
    guard parts.count == 2 else { return seconds(year, month, date).map { $0 + 86_400 } }
    guard parts[1].last == "Z" else { return nil }
    let time = parts[1].dropLast().split(separator: ":", omittingEmptySubsequences: false)
    let numbers = time.compactMap { number($0, digits: 2...2) }
    guard numbers.count == time.count, (2...3).contains(numbers.count), numbers[0] < 24,
      numbers.dropFirst().allSatisfy({ $0 < 60 })
    else { return nil }
    let second = numbers.count == 3 ? numbers[2] : 0
    return seconds(year, month, date).map { $0 + numbers[0] * 3600 + numbers[1] * 60 + second }
  }

  private static func number(_ text: some StringProtocol, digits: ClosedRange<Int>) -> Int64? {
    guard digits.contains(text.utf8.count),
      text.utf8.allSatisfy({ (UInt8(ascii: "0")...UInt8(ascii: "9")).contains($0) })
    else { return nil }
    return Int64(text)
  }

  /// The start of a day in UTC, in seconds since 1970; nil for an invalid date.
  private static func seconds(_ year: Int64, _ month: Int64, _ day: Int64) -> Int64? {
    guard year >= 1970 else { return nil }
    var time = tm()
    time.tm_year = Int32(year - 1900)
    time.tm_mon = Int32(month - 1)
    time.tm_mday = Int32(day)
    let result = timegm(&time)
    // `timegm` normalises an invalid date, such as 31 April, to another day.
    guard time.tm_mon == Int32(month - 1), time.tm_mday == Int32(day) else { return nil }
    return Int64(result)
  }
}

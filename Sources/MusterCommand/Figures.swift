/// The formatting of numbers.
package enum Figures {
  /// A number, or a dash if there is none.
  package static func text(_ value: Double?, _ decimals: Int) -> String {
    value.map { text($0, decimals) } ?? "-"
  }

  package static func text(_ value: Double, _ decimals: Int) -> String {
    guard value.isFinite else { return "-" }
    let scale = (0..<decimals).reduce(1.0) { scale, _ in scale * 10 }
    let whole = Int((abs(value) * scale).rounded())
    let digits = String(whole)
    let padded = String(repeating: "0", count: max(0, decimals + 1 - digits.count)) + digits
    let sign = value < 0 ? "-" : ""
    guard decimals > 0 else { return sign + padded }
    return "\(sign)\(padded.dropLast(decimals)).\(padded.suffix(decimals))"
  }
}

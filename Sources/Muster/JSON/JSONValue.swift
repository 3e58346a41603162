/// A JSON value whose objects keep the order of their fields, which Foundation's encoder does not
/// guarantee.
public enum JSONValue: Sendable {
  case null
  case bool(Bool)
  case integer(Int64)
  /// A number, written with three decimals; `null` for infinity, NaN and magnitudes of 10^15 or
  /// more.
  case number(Double)
  case string(String)
  case array([JSONValue])
  case object([(String, JSONValue)])

  /// The value as JSON on one line, with all control characters escaped.
  public var text: String {
    var result = ""
    write(to: &result)
    return result
  }

  private func write(to result: inout String) {
    switch self {
    case .null: result += "null"
    case .bool(let value): result += value ? "true" : "false"
    case .integer(let value): result += String(value)
    case .number(let value): result += Self.decimal(value)
    case .string(let value): Self.quote(value, into: &result)
    case .array(let values):
      result += "["
      for (index, value) in values.enumerated() {
        if index > 0 { result += "," }
        value.write(to: &result)
      }
      result += "]"
    case .object(let fields):
      result += "{"
      for (index, field) in fields.enumerated() {
        if index > 0 { result += "," }
        Self.quote(field.0, into: &result)
        result += ":"
        field.1.write(to: &result)
      }
      result += "}"
    }
  }

  private static func decimal(_ value: Double) -> String {
    guard value.isFinite, abs(value) < 1e15 else { return "null" }
    let thousandths = Int64((value * 1000).rounded())
    let sign = thousandths < 0 ? "-" : ""
    let magnitude = thousandths.magnitude
    let fraction = String(1000 + magnitude % 1000).dropFirst()
    return "\(sign)\(magnitude / 1000).\(fraction)"
  }

  private static func quote(_ text: String, into result: inout String) {
    result += "\""
    for scalar in text.unicodeScalars {
      switch scalar {
      case "\"": result += "\\\""
      case "\\": result += "\\\\"
      case "\n": result += "\\n"
      case _
      where scalar.value < 0x20 || (0x7F..<0xA0).contains(scalar.value)
        || scalar.value == 0x2028 || scalar.value == 0x2029:
        let hex = String(scalar.value, radix: 16)
        result += "\\u" + String(repeating: "0", count: 4 - hex.count) + hex
      default: result.unicodeScalars.append(scalar)
      }
    }
    result += "\""
  }
}

import Muster

/// One thing that was checked.
struct Finding: Sendable {
  enum Verdict: String, Sendable {
    case good, note, bad

    var mark: String {
      switch self {
      case .good: "ok  "
      case .note: "note"
      case .bad: "BAD "
      }
    }
  }

  var subject: String
  var verdict: Verdict
  var fact: String
  var advice = ""
}

extension Finding {
  var json: JSONValue {
    .object([
      ("subject", .string(subject)), ("verdict", .string(verdict.rawValue)),
      ("fact", .string(fact)), ("advice", .string(advice)),
    ])
  }

  /// The form for people.
  var lines: [String] {
    let first = "\(verdict.mark)  \(Style.padded(subject, to: 22))\(fact)"
    return advice.isEmpty ? [first] : [first, "      \(Style.padded("", to: 20))-> \(advice)"]
  }
}

import Muster

/// The result of one check.
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

  /// The finding as one line of text, followed by a line with the advice if there is any.
  var lines: [String] {
    let first = "\(verdict.mark)  \(Style.padded(subject, to: 22))\(fact)"
    return advice.isEmpty ? [first] : [first, "      \(Style.padded("", to: 20))-> \(advice)"]
  }
}

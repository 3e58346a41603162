import Muster
import MusterBase
import MusterSystem

extension SettingsLayer {
  /// Variables of the command that are no settings of a node.
  private static let otherVariables = ["MUSTER_CONFIG", "MUSTER_IDENTITY_PASSPHRASE"]

  /// The settings in variables. A variable that is nearly the name of a setting is an error; any
  /// other one that begins with `MUSTER_` may belong to somebody else.
  package init(environment: [String: String]) throws(MusterError) {
    self.init(.environment)
    let keys = Dictionary(
      uniqueKeysWithValues: Setting.named.keys.map { (Setting.variable(of: $0), $0) })
    let known = keys.keys + Self.otherVariables
    for (variable, text) in environment.sorted(by: { $0.key < $1.key })
    where variable.hasPrefix("MUSTER_") && !Self.otherVariables.contains(variable) {
      guard let key = keys[variable], let setting = Setting.named[key] else {
        guard let meant = Suggestion.nearest(to: variable, among: known, after: "MUSTER_") else {
          continue
        }
        throw MusterError(
          "there is no variable \(Words.shown(variable))", hint: "did you mean \(meant)?",
          kind: .usage)
      }
      try store(
        setting.field.value(ofVariable: text), of: setting, under: key,
        phrase: "\(variable)=\(Words.shown(text))", environment)
    }
    try checkExclusion()
  }
}

extension Setting.Field {
  /// The value that a variable's text gives; nil if it is not one of the field's type.
  fileprivate func value(ofVariable text: String) -> SettingValue? {
    switch self {
    case .text: .text(text)
    case .list: .list(text.split(separator: ",").map(\.trimmed).filter { !$0.isEmpty })
    case .integer, .port: Int(text).map { .integer($0) }
    case .number: Double(text).map { .number($0) }
    case .choice, .flag:
      switch text.lowercased() {
      case "true", "yes", "1": .bool(true)
      case "false", "no", "0": .bool(false)
      default: nil
      }
    }
  }
}

extension Substring {
  /// The text without whitespace at its ends.
  fileprivate var trimmed: String {
    let start = drop(while: \.isWhitespace)
    let end = start.lastIndex { !$0.isWhitespace }
    return end.map { String(start[...$0]) } ?? ""
  }
}

/// The variables of this process.
enum ProcessEnvironment {
  static var variables: [String: String] {
    var result: [String: String] = [:]
    var entry = environ
    while let text = entry.pointee {
      let parts = String(cString: text).split(
        separator: "=", maxSplits: 1, omittingEmptySubsequences: false)
      if parts.count == 2 { result[String(parts[0])] = String(parts[1]) }
      entry += 1
    }
    return result
  }
}

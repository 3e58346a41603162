import Muster
import MusterBase
import TOMLKit

extension SettingsLayer {
  /// The settings in the text of a file, whose path is only for messages.
  package init(
    toml text: String, path: String, environment: [String: String]
  ) throws(MusterError) {
    self.init(.file(path))
    for (key, node) in try Self.table(text, source) {
      guard let setting = Setting.named[key] else { throw Self.unknown(key, source) }
      try store(
        setting.field.value(of: node), of: setting, under: key, phrase: "\(source.prefix)\(key)",
        environment)
    }
    try checkExclusion()
  }

  private static func table(
    _ text: String, _ source: Source
  ) throws(MusterError) -> [(key: String, node: any TOMLValueConvertible)] {
    // The parser ends a text at a zero byte, and drops what follows one that is written as an
    // escape.
    guard !["\0", "\\u0000", "\\U00000000"].contains(where: text.contains) else {
      throw MusterError(
        "\(source.prefix)there is a zero byte in it", hint: "delete it", kind: .usage)
    }
    let hint = "write one setting a line, such as name = \"Ada\""
    do {
      try SettingsText.check(text)
    } catch {
      throw MusterError(
        "\(source.prefix)line \(error.line): there is \(error.part)", hint: hint, kind: .usage)
    }
    do {
      return try TOMLTable(string: text).map { ($0, $1) }.sorted { $0.0 < $1.0 }
    } catch let error as TOMLParseError {
      // The parser's own words repeat what is written there, which may be a passphrase.
      throw MusterError(
        "\(source.prefix)line \(error.source.begin.line): that is no setting in TOML", hint: hint,
        kind: .usage)
    } catch {
      throw MusterError("\(source.prefix)it is no TOML", hint: hint, kind: .usage)
    }
  }

  private static func unknown(_ key: String, _ source: Source) -> MusterError {
    let meant = Suggestion.nearest(to: key, among: Setting.named.keys)
    return MusterError(
      "\(source.prefix)there is no setting \(Words.shown(key))",
      hint: meant.map { "did you mean \($0)?" } ?? "muster config lists the settings",
      kind: .usage)
  }
}

extension Setting.Field {
  /// The value that a node of the file gives; nil if it is not one of the field's type.
  fileprivate func value(of node: any TOMLValueConvertible) -> SettingValue? {
    switch self {
    case .text: node.string.map { .text($0) }
    case .list:
      if let text = node.string {
        .list([text])
      } else if let array = node.array {
        array.allSatisfy { $0.string != nil } ? .list(array.compactMap(\.string)) : nil
      } else {
        nil
      }
    case .integer, .port: node.int.map { .integer($0) }
    case .number: (node.double ?? node.int.map { Double($0) }).map { .number($0) }
    case .choice, .flag: node.bool.map { .bool($0) }
    }
  }
}

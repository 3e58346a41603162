import Muster
import MusterBase

extension SettingsLayer {
  /// The settings in the text of a file, whose path is only for messages.
  package init(
    toml text: String, path: String, environment: [String: String]
  ) throws(MusterError) {
    self.init(.file(path))
    for (key, value) in try Self.parse(text, source) {
      guard let setting = Setting.named[key] else { throw Self.unknown(key, source) }
      try store(
        setting.field.value(of: value), of: setting, under: key,
        phrase: "\(source.prefix)\(key)", environment)
    }
    try checkExclusion()
  }

  private static func parse(
    _ text: String, _ source: Source
  ) throws(MusterError) -> [(key: String, value: SettingsText.Value)] {
    do {
      return try SettingsText.settings(text)
    } catch {
      throw MusterError(
        "\(source.prefix)line \(error.line): there is \(error.part)",
        hint: error.hint, kind: .usage)
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
  /// The value that one of the file gives; nil if it is not one of the field's type.
  fileprivate func value(of value: SettingsText.Value) -> SettingValue? {
    switch (self, value) {
    case (.text, .text(let text)): .text(text)
    case (.list, .text(let text)): .list([text])
    case (.list, .list(let values)):
      values.allSatisfy { $0.text != nil } ? .list(values.compactMap(\.text)) : nil
    case (.integer, .integer(let number)), (.port, .integer(let number)): .integer(number)
    case (.number, .number(let number)): .number(number)
    case (.number, .integer(let number)): .number(Double(number))
    case (.choice, .bool(let isOn)), (.flag, .bool(let isOn)): .bool(isOn)
    default: nil
    }
  }
}

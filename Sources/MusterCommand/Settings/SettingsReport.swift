import Muster
import MusterBase

/// The settings in force, as text and as JSON.
package struct SettingsReport {
  private struct Row {
    let name: String
    /// The value; nil if it is the standard, or secret.
    let value: SettingValue?
    let shown: String
    let source: String
    /// The variable or the file that the value comes from.
    let origin: String?
  }

  private let rows: [Row]
  private let file: String?

  package init(_ settings: Settings) {
    file = settings.file
    rows = Setting.all.map { setting in
      guard let given = settings.given[setting.name] else {
        return Row(
          name: setting.name, value: nil, shown: setting.standard(), source: "default", origin: nil)
      }
      let (word, origin) = Self.words(given)
      return Row(
        name: setting.name, value: setting.isSecret ? nil : given.value,
        shown: setting.isSecret ? "(not shown)" : given.value.shown, source: word, origin: origin)
    }
  }

  private static func words(_ given: Settings.Given) -> (word: String, origin: String?) {
    switch given.source {
    case .commandLine: ("command line", nil)
    case .environment: ("variable", given.source.name(given.key))
    case .file(let path): ("file", path)
    }
  }

  /// A table: the name of a setting, its value, and its source.
  package var lines: [String] {
    let names = rows.map(\.name.count).max() ?? 0
    let values = min(48, rows.map { Style.columns($0.shown) }.max() ?? 0)
    let table = rows.map { row in
      let line =
        Style.padded(row.name, to: names + 2) + Style.padded(row.shown, to: values + 2)
        + Words.shown(row.origin ?? row.source)
      return row.source == "default" ? Style.dim(line) : line
    }
    return ["Settings file: \(file.map(Words.shown) ?? "none")", ""] + table
  }

  package var json: JSONValue {
    .object([
      ("file", file.map { .string($0) } ?? .null),
      (
        "settings",
        .array(
          rows.map { row in
            .object([
              ("name", .string(row.name)), ("value", row.value?.json ?? .null),
              ("text", .string(row.shown)),
              ("source", .string(row.source)), ("origin", row.origin.map { .string($0) } ?? .null),
            ])
          })
      ),
    ])
  }
}

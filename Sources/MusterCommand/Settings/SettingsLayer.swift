import Muster
import MusterBase

/// The settings from one source, by their names.
package struct SettingsLayer {
  /// The origin of a setting.
  package enum Source: Sendable, Equatable {
    case commandLine
    case environment
    /// The settings file with this path.
    case file(String)
  }

  package let source: Source
  package private(set) var values: [String: SettingValue] = [:]
  /// The keys that were written for the settings: their names or opposites.
  private(set) var keys: [String: String] = [:]

  init(_ source: Source) { self.source = source }

  /// The settings that options of a command give.
  package init(commandLine options: JoinOptions) throws(MusterError) {
    self.init(.commandLine)
    for setting in Setting.all { values[setting.name] = setting.value(in: options) }
    try checkExclusion()
  }

  /// The settings that give a channel's secret; an invite contains it.
  static let secrets = ["passphrase", "key-file"]
  /// The settings of which at most one is in force.
  static let exclusive = [
    ["call", "watch"], ["auto-answer", "watch"], ["view", "no-view"], secrets,
  ]

  /// Throws if the layer has two settings that exclude each other.
  func checkExclusion() throws(MusterError) {
    for group in Self.exclusive + [["invite"] + Self.secrets] {
      let given = group.filter { values[$0]?.isGiven ?? false }
      guard given.count > 1 else { continue }
      throw MusterError(
        "\(source.prefix)\(source.name(given[0])) and \(source.name(given[1])) exclude each other",
        hint: "use one", kind: .usage)
    }
  }

  /// Stores the value of a key, which is a setting's name or its opposite; nil is a value of
  /// another type than the setting's, which `phrase` begins the message about.
  mutating func store(
    _ value: SettingValue?, of setting: Setting, under key: String, phrase: String,
    _ environment: [String: String]
  ) throws(MusterError) {
    guard let value = setting.mayBePath ? value?.withHome(environment) : value else {
      throw MusterError(
        "\(phrase) is not \(setting.field.kind)",
        hint: "write \(source.assignment(of: key, setting.example))", kind: .usage)
    }
    guard values[setting.name] == nil else {
      throw MusterError(
        "\(source.prefix)\(source.name(setting.name)) and "
          + "\(source.name(setting.opposite ?? setting.name)) are one setting",
        hint: "use one", kind: .usage)
    }
    keys[setting.name] = key
    let isOpposite = key == setting.opposite
    values[setting.name] = isOpposite ? value.bool.map { .bool(!$0) } : value
  }
}

extension SettingsLayer.Source {
  /// The beginning of a message about the source: `PATH: ` for a file.
  var prefix: String {
    if case .file(let path) = self { "\(Words.shown(path)): " } else { "" }
  }

  /// A key as the source writes it.
  func name(_ key: String) -> String {
    switch self {
    case .commandLine: "--\(key)"
    case .environment: Setting.variable(of: key)
    case .file: key
    }
  }

  /// A key with a value as the source writes it.
  func assignment(of key: String, _ value: SettingValue) -> String {
    switch self {
    case .commandLine: "\(name(key)) \(value.plain.isEmpty ? "''" : Words.shown(value.plain))"
    case .environment: "\(name(key))=\(Words.shown(value.plain))"
    case .file: "\(key) = \(value.shown)"
    }
  }
}

extension SettingValue {
  /// Whether the value gives the setting, as every value but `false` and an empty list does.
  var isGiven: Bool { self != .bool(false) && self != .list([]) }
}

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

  /// The settings of which at most one may be given.
  static let exclusive = [
    ["call", "watch"], ["view", "no-view"], ["invite", "passphrase", "key-file"],
  ]

  /// Throws if the layer has two settings that exclude each other.
  func checkExclusion() throws(MusterError) {
    for group in Self.exclusive {
      let given = group.filter { values[$0]?.isGiven ?? false }
      guard given.count > 1 else { continue }
      throw MusterError(
        "\(source.prefix)\(source.name(given[0])) and \(source.name(given[1])) exclude each other",
        hint: "use one", kind: .usage)
    }
  }

  /// Stores the value of a key, which is a setting's name or its opposite.
  mutating func store(
    _ value: SettingValue, of setting: Setting, under key: String
  ) throws(MusterError) {
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

  /// A setting with its value as the source writes it, for the beginning of a message.
  func phrase(_ key: String, _ value: SettingValue) -> String {
    switch self {
    case .commandLine: "--\(key) \(value.plain.isEmpty ? "''" : Words.shown(value.plain))"
    case .environment: "\(Setting.variable(of: key))=\(Words.shown(value.plain))"
    case .file: "\(prefix)\(key) = \(value.shown)"
    }
  }
}

extension SettingValue {
  /// Whether the value gives the setting, as every value but `false` and an empty list does.
  var isGiven: Bool { self != .bool(false) && self != .list([]) }
}

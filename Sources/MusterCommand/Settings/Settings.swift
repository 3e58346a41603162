import Muster
import MusterBase

/// The settings in force, and where each comes from: options of the command win over variables,
/// and variables over the settings file.
package struct Settings {
  /// A value, where it comes from, and the key that was written there.
  package struct Given: Equatable {
    package let value: SettingValue
    package let source: SettingsLayer.Source
    let key: String
  }

  /// The options with the values in force; nil or empty where a setting is not given.
  package var options: JoinOptions
  /// The values that are given and in force, by the names of the settings.
  package private(set) var given: [String: Given] = [:]
  /// The settings file that was read; nil if there is none.
  package let file: String?
  /// Remarks on the settings file.
  package let notices: [MusterError]

  /// The settings in force for a command.
  ///
  /// - Parameters:
  ///   - options: The options on the command line.
  ///   - file: The option that names the settings file.
  /// - Throws: A usage error for a file that cannot be read or has a setting that does not exist,
  ///   and for a value that is not of its setting's type.
  package init(
    _ options: JoinOptions, _ file: SettingsFileOptions,
    environment: [String: String] = ProcessEnvironment.variables
  ) throws(MusterError) {
    var layers = [
      try SettingsLayer(commandLine: options), try SettingsLayer(environment: environment),
    ]
    let content = try SettingsFile.read(option: file.config, environment: environment)
    if let content {
      layers.append(
        try SettingsLayer(toml: content.text, path: content.path, environment: environment))
    }
    self.options = options
    self.file = content?.path
    notices = layers.last.flatMap { content?.warning(about: $0) }.map { [$0] } ?? []
    merge(layers)
    for setting in Setting.all { setting.set(given[setting.name]?.value, in: &self.options) }
  }

  /// The settings in force for a command whose only setting is the data directory.
  init(data: String?, _ file: SettingsFileOptions) throws(MusterError) {
    var options = JoinOptions.none
    options.data = data
    try self.init(options, file)
  }

  /// A setting with its value as its source writes it, for the beginning of a message.
  func phrase(_ name: String) -> String {
    guard let given = given[name] else { return "--\(name)" }
    return given.source.prefix + given.source.assignment(of: name, given.value)
  }

  /// Whether the secret of the channels was not given for this start of the command: it comes from
  /// a variable or the settings file.
  var hasStandingSecret: Bool {
    SettingsLayer.secrets.contains { given[$0].map { $0.source != .commandLine } ?? false }
  }

  // MARK: Merging

  /// Takes each setting from the first layer that has it, unless stronger ones exclude it.
  private mutating func merge(_ layers: [SettingsLayer]) {
    for layer in layers {
      let excluded = self.excluded(by: layer)
      for (name, value) in layer.values where given[name] == nil && !excluded.contains(name) {
        given[name] = Given(value: value, source: layer.source, key: layer.keys[name] ?? name)
      }
    }
    // An invite needs no passphrase. One in a variable may have been exported for other channels.
    if isGiven("invite") { for name in SettingsLayer.secrets { given[name] = nil } }
  }

  /// The settings of a layer that stronger ones exclude.
  private func excluded(by layer: SettingsLayer) -> Set<String> {
    var excluded: Set<String> = []
    for group in SettingsLayer.exclusive where group.contains(where: isGiven) {
      excluded.formUnion(group)
    }
    let (names, secrets) = (["channels", "invite"], SettingsLayer.secrets)
    if names.contains(where: isGiven) {
      excluded.formUnion(names)
      // A passphrase beside channels is theirs, not that of the channels that replace them.
      if names.contains(where: { layer.values[$0] != nil }) { excluded.formUnion(secrets) }
    } else if secrets.contains(where: { given[$0]?.source == .commandLine }) {
      excluded.insert("invite")
    }
    return excluded
  }

  private func isGiven(_ name: String) -> Bool { given[name]?.value.isGiven ?? false }
}

import Muster
import MusterStore

/// One setting of a node: an option of `muster join`, a key of the settings file, and a variable.
package struct Setting: Sendable {
  /// The key in the settings file, and the option without the dashes in front.
  package let name: String
  /// The key and option that switch a choice off, such as `no-lan`; nil for other settings.
  package let opposite: String?
  /// The place and type of the value.
  package let field: Field
  /// A value for hints.
  let example: SettingValue
  /// Whether the value must not be shown.
  let isSecret: Bool
  /// Whether the value may be a path, in which `~/` stands for the home directory.
  let mayBePath: Bool
  /// The words for what applies if the setting is not given.
  let standard: @Sendable () -> String

  /// A property of the options, by the type of its value.
  package enum Field: Sendable {
    package typealias Property<Value> = any WritableKeyPath<JoinOptions, Value> & Sendable

    case text(Property<String?>)
    case list(Property<[String]>)
    case integer(Property<Int?>)
    case number(Property<Double?>)
    case port(Property<PagePort?>)
    /// A choice with two options, one for each value.
    case choice(Property<Bool?>)
    /// A flag that can only be given or not.
    case flag(Property<Bool>)
  }

  private init(
    _ name: String, _ field: Field, opposite: String? = nil, example: SettingValue? = nil,
    isSecret: Bool = false, mayBePath: Bool = false,
    or standard: @autoclosure @escaping @Sendable () -> String
  ) {
    self.name = name
    self.opposite = opposite
    self.field = field
    self.example = example ?? field.example
    self.isSecret = isSecret
    self.mayBePath = mayBePath
    self.standard = standard
  }

  private static func choice(
    _ name: String, _ property: Field.Property<Bool?>, or standard: String
  ) -> Setting {
    Setting(name, .choice(property), opposite: "no-\(name)", or: standard)
  }

  /// All settings, in the order of the help.
  package static let all: [Setting] = [
    Setting("channels", .list(\.channels), or: "none"),
    Setting("name", .text(\.name), or: Configuration.defaultName),
    Setting("passphrase", .text(\.passphrase), isSecret: true, or: "none"),
    Setting("key-file", .text(\.keyFile), mayBePath: true, or: "none"),
    Setting("invite", .list(\.invite), isSecret: true, mayBePath: true, or: "none"),
    Setting("call", .flag(\.call), or: "false"),
    Setting("auto-answer", .flag(\.autoAnswer), or: "false"),
    Setting("watch", .flag(\.watch), or: "true unless call or auto-answer"),
    Setting("video", .text(\.video), mayBePath: true, or: "a camera if there is one"),
    Setting("share", .text(\.share), mayBePath: true, or: "none"),
    Setting("muted", .text(\.muted), example: .text("both"), or: "nothing"),
    Setting("audio", .text(\.audio), mayBePath: true, or: "a microphone if there is one"),
    Setting("speaker", .text(\.speaker), mayBePath: true, or: "a loudspeaker if there is one"),
    Setting("video-bitrate", .integer(\.videoBitrate), or: "by the size of the video"),
    Setting("uplink", .integer(\.uplink), example: .integer(3000), or: "what the paths show"),
    Setting("peer", .list(\.peer), or: "those of the invite"),
    Setting("rendezvous", .list(\.rendezvous), or: "those remembered for the channel"),
    choice("offer-rendezvous", \.offerRendezvous, or: "false"),
    choice("port-mapping", \.portMapping, or: "true"),
    choice("relay", \.relay, or: "true"),
    choice("dscp", \.dscp, or: "true"),
    Setting("dht", .list(\.dht), or: "none"),
    choice("lan", \.lan, or: "true"),
    choice("dns-sd", \.dnsServiceDiscovery, or: "false"),
    Setting("listen", .text(\.listen), or: "every address, any free port"),
    Setting("interface", .list(\.interface), or: "all"),
    Setting("max-video", .text(\.maxVideo), example: .text("640x360"), or: "no limit"),
    Setting("max-streams", .integer(\.maxStreams), example: .integer(6), or: "no limit"),
    choice("latency", \.latency, or: "true"),
    Setting("record", .text(\.record), mayBePath: true, or: "none"),
    Setting("view", .port(\.view), or: "a free port"),
    Setting("no-view", .flag(\.noView), or: "false"),
    choice("open", \.open, or: "false"),
    Setting(
      "data", .text(\.data), mayBePath: true, or: DataDirectory.defaultPath ?? "none, only memory"),
    choice("json", \.json, or: "true without a terminal"),
    Setting("for", .number(\.seconds), or: "until it is stopped"),
    Setting("log-level", .text(\.logLevel), or: "warning"),
  ]

  /// The settings by their names and opposites.
  static let named: [String: Setting] = all.reduce(into: [:]) { settings, setting in
    settings[setting.name] = setting
    if let opposite = setting.opposite { settings[opposite] = setting }
  }

  /// The variable of a key: `MUSTER_NO_LAN` for `no-lan`.
  package static func variable(of key: String) -> String {
    "MUSTER_" + key.uppercased().split(separator: "-").joined(separator: "_")
  }
}

extension Setting.Field {
  /// The type of the value, in words.
  var kind: String {
    switch self {
    case .text: "text"
    case .list: "a list of texts"
    case .integer: "a whole number"
    case .number: "a number"
    case .port: "a port"
    case .choice, .flag: "true or false"
    }
  }

  /// A value of the type, for hints.
  fileprivate var example: SettingValue {
    switch self {
    case .text: .text("…")
    case .list: .list(["…", "…"])
    case .integer: .integer(500)
    case .number: .number(60)
    case .port: .integer(8080)
    case .choice, .flag: .bool(true)
    }
  }
}

// MARK: Values

/// The value of a setting.
package enum SettingValue: Sendable, Equatable {
  case text(String)
  case list([String])
  case integer(Int)
  case number(Double)
  case bool(Bool)

  var text: String? { if case .text(let text) = self { text } else { nil } }
  var list: [String]? { if case .list(let texts) = self { texts } else { nil } }
  var integer: Int? { if case .integer(let number) = self { number } else { nil } }
  var number: Double? { if case .number(let number) = self { number } else { nil } }
  var bool: Bool? { if case .bool(let value) = self { value } else { nil } }

  /// The value as JSON.
  var json: JSONValue {
    switch self {
    case .text(let text): .string(text)
    case .list(let texts): .array(texts.map { .string($0) })
    case .integer(let number): .integer(Int64(number))
    case .number(let number): .number(number)
    case .bool(let value): .bool(value)
    }
  }

  /// The value as the settings file writes it, sanitised for the terminal.
  package var shown: String {
    switch self {
    case .text(let text): Self.quoted(text)
    case .list(let texts): "[\(texts.map(Self.quoted).joined(separator: ", "))]"
    case .integer(let number): String(number)
    case .number(let number): "\(number)"
    case .bool(let value): String(value)
    }
  }

  /// The value as options and variables have it.
  package var plain: String {
    switch self {
    case .text(let text): text
    case .list(let texts): texts.joined(separator: ",")
    case .integer, .number, .bool: shown
    }
  }

  private static func quoted(_ text: String) -> String { "\"\(Words.shown(text))\"" }

  /// The value with the home directory in place of a leading `~`.
  func withHome(_ environment: [String: String]) -> SettingValue {
    func path(_ text: String) -> String {
      guard text.hasPrefix("~/"), let home = environment["HOME"] else { return text }
      return home + text.dropFirst()
    }
    return switch self {
    case .text(let text): .text(path(text))
    case .list(let texts): .list(texts.map(path))
    case .integer, .number, .bool: self
    }
  }
}

extension Setting {
  /// The value that the options give; nil if they do not give the setting.
  func value(in options: JoinOptions) -> SettingValue? {
    switch field {
    case .text(let property): options[keyPath: property].map { .text($0) }
    case .list(let property):
      options[keyPath: property].isEmpty ? nil : .list(options[keyPath: property])
    case .integer(let property): options[keyPath: property].map { .integer($0) }
    case .number(let property): options[keyPath: property].map { .number($0) }
    case .port(let property):
      options[keyPath: property].map { port in
        Int(port.text).map { .integer($0) } ?? .text(port.text)
      }
    case .choice(let property): options[keyPath: property].map { .bool($0) }
    case .flag(let property): options[keyPath: property] ? .bool(true) : nil
    }
  }

  /// Sets the setting in the options to a value of the field's type, or to none.
  func set(_ value: SettingValue?, in options: inout JoinOptions) {
    switch field {
    case .text(let property): options[keyPath: property] = value?.text
    case .list(let property): options[keyPath: property] = value?.list ?? []
    case .integer(let property): options[keyPath: property] = value?.integer
    case .number(let property): options[keyPath: property] = value?.number
    case .port(let property):
      options[keyPath: property] =
        value?.integer.map { PagePort($0) } ?? value?.text.map(PagePort.init(text:))
    case .choice(let property): options[keyPath: property] = value?.bool
    case .flag(let property): options[keyPath: property] = value?.bool ?? false
    }
  }
}

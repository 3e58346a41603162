import ArgumentParser
import Muster
import MusterBase
import MusterCommand
import Testing

/// Where each setting comes from: the command line, a variable or the settings file.
struct SettingsTests {
  /// The settings from these sources; there is no file if `toml` is nil.
  static func settings(
    _ arguments: [String] = [], _ variables: [String: String] = [:], toml: String? = nil
  ) throws -> Settings {
    let file = try toml.map { try TemporaryFile($0) }
    let options = try JoinCommand.parse(CommandLineTool.normalized(arguments)).options
    var paths = try SettingsFileOptions.parse([])
    paths.config = file?.path
    return try Settings(options, paths, environment: variables)
  }

  static func problem(
    _ arguments: [String] = [], _ variables: [String: String] = [:], toml: String? = nil
  ) throws -> MusterError? {
    do {
      _ = try settings(arguments, variables, toml: toml).configuration()
      return nil
    } catch let error as MusterError {
      return error
    }
  }

  // MARK: Precedence

  /// A setting with values that the command line, a variable and the file give.
  struct Case: Sendable, CustomStringConvertible {
    let name: String
    let option: [String]
    let variable: (name: String, text: String)
    let line: String
    /// The values of the three, in this order.
    let values: [SettingValue]

    var description: String { name }
  }

  /// One for every setting. Values differ between neighbours, so that the source can be told.
  static let cases = Setting.all.flatMap { setting in
    let values = Self.values(of: setting)
    return values.map { values in
      let option =
        switch values[0] {
        case .bool(true): ["--\(setting.name)"]
        case .bool(false): ["--\(setting.opposite ?? "")"]
        case .list(let texts) where setting.name == "channels": texts
        case .list(let texts): texts.map { "--\(setting.name)=\($0)" }
        default: ["--\(setting.name)", values[0].plain]
        }
      return Case(
        name: setting.name, option: option,
        variable: (Setting.variable(of: setting.name), values[1].plain),
        line: "\(setting.name) = \(values[2].shown)", values: values)
    }
  }

  private static func values(of setting: Setting) -> [[SettingValue]] {
    switch setting.field {
    case .text: [[.text("a"), .text("b"), .text("c")]]
    case .list: [[.list(["a"]), .list(["b", "bb"]), .list(["c", "cc", "ccc"])]]
    case .integer, .port: [[.integer(1), .integer(2), .integer(3)]]
    case .number: [[.number(1), .number(2.5), .number(3)]]
    case .flag: [[.bool(true), .bool(false), .bool(true)]]
    case .choice:
      [[.bool(true), .bool(false), .bool(true)], [.bool(false), .bool(true), .bool(false)]]
    }
  }

  @Test(arguments: cases) func theStrongestSourceWins(one: Case) throws {
    for sources in 0..<8 {
      let settings = try Self.settings(
        sources & 1 != 0 ? one.option : [],
        sources & 2 != 0 ? [one.variable.name: one.variable.text] : [:],
        toml: sources & 4 != 0 ? one.line : "")
      let strongest = [0, 1, 2].first { sources & 1 << $0 != 0 }
      #expect(settings.given[one.name]?.value == strongest.map { one.values[$0] })
      switch (strongest, settings.given[one.name]?.source) {
      case (nil, nil), (0, .commandLine), (1, .environment), (2, .file): break
      case (_, let other): Issue.record("\(one.name) from \(sources) comes from \(other as Any)")
      }
      #expect(settings.given.count == (strongest == nil ? 0 : 1))
    }
  }

  @Test func everyOptionIsASetting() throws {
    #expect(Mirror(reflecting: try JoinOptions.parse([])).children.count == Setting.all.count)
    #expect(Set(Setting.all.map(\.name)).count == Setting.all.count)
  }

  /// What the sources give together: arguments, variables, a file, and the settings in force as
  /// they would stand in a file.
  @Test(
    arguments: [
      // What excludes a setting of a weaker source takes its place.
      (["--watch"], [:], "call = true", ["watch = true"]),
      ([], ["MUSTER_WATCH": "1"], "call = true", ["watch = true"]),
      (
        ["--watch"], ["MUSTER_CALL": "1"], "auto-answer = true\nfor = 3",
        ["for = 3.0", "watch = true"]
      ),
      (["--call"], [:], "auto-answer = true", ["auto-answer = true", "call = true"]),
      (["--auto-answer"], [:], "watch = true", ["auto-answer = true"]),
      ([], ["MUSTER_CALL": "no"], "call = true", ["call = false"]),
      (["--view", "80"], ["MUSTER_NO_VIEW": "1"], "", ["view = 80"]),
      (["--no-view"], [:], "view = 8080", ["no-view = true"]),
      (["--key-file", "k"], ["MUSTER_PASSPHRASE": "p"], "", ["key-file = \"k\""]),
      // Both names of a choice are one setting.
      ([], ["MUSTER_NO_LAN": "false"], "no-lan = true", ["lan = true"]),
      (["--lan"], ["MUSTER_NO_LAN": "true"], "", ["lan = true"]),
      ([], [:], "no-relay = true\njson = false", ["json = false", "relay = false"]),
      // A passphrase beside channels is theirs; alone, it is that of whatever is joined.
      (["b"], [:], "channels = [\"a\"]\npassphrase = \"p\"", ["channels = [\"b\"]"]),
      (["b"], [:], "passphrase = \"p\"", ["channels = [\"b\"]", "passphrase = \"p\""]),
      (
        [], ["MUSTER_PASSPHRASE": "q"], "channels = \"a\"\npassphrase = \"p\"",
        ["channels = [\"a\"]", "passphrase = \"q\""]
      ),
      // An invite needs none, and channels that others name replace it.
      (["--invite", "i"], ["MUSTER_PASSPHRASE": "p"], "", ["invite = [\"i\"]"]),
      ([], ["MUSTER_PASSPHRASE": "p"], "invite = \"i\"", ["invite = [\"i\"]"]),
      (["a"], [:], "invite = \"i\"", ["channels = [\"a\"]"]),
      (["--passphrase", "p"], [:], "invite = \"i\"", ["passphrase = \"p\""]),
      // An empty list takes the place of another one.
      ([], ["MUSTER_PEER": ""], "peer = [\"h:1\"]", ["peer = []"]),
      ([], ["MUSTER_PEER": " h:1 , h:2"], "", ["peer = [\"h:1\", \"h:2\"]"]),
      // A home directory is put in where a path may stand.
      (
        [], ["HOME": "/h", "MUSTER_NAME": "~/n"], "record = \"~/r\"",
        ["name = \"~/n\"", "record = \"/h/r\""]
      ),
      // Other variables may be somebody else's.
      ([], ["MUSTER_PORT": "tcp://x", "MUSTER": "1"], "", []),
    ] as [([String], [String: String], String, [String])])
  func sourcesTogether(
    arguments: [String], variables: [String: String], toml: String, inForce: [String]
  ) throws {
    let settings = try Self.settings(arguments, variables, toml: toml)
    let found = settings.given.map { "\($0) = \($1.value.shown)" }.sorted()
    #expect(found == inForce)
  }

  // MARK: Wrong settings

  @Test(arguments: [
    ("vidoe = \"test\"", "there is no setting vidoe", "video"),
    ("no_lan = true", "there is no setting no_lan", "no-lan"),
    ("colour = 1", "there is no setting colour", "muster config"),
    ("name = \"a\"\n [join]", "line 2: there is a table", "one setting a line"),
    ("peer = [\"a:1\", }", "line 1: there is } outside quotes", "one setting a line"),
    ("name = { a = 1 }", "line 1: there is { outside quotes", "one setting a line"),
    ("for = 1979-05-27", "line 1: there is a date", "one setting a line"),
    ("for = 07:32:00", "line 1: there is : outside quotes", "one setting a line"),
    ("name = \"\"\"a\"\"\"", "line 1: there is a text of several lines", "one setting a line"),
    ("for = 4'5 2-3'", "line 1: there is a quote inside a word", "one setting a line"),
    ("# ü\n\nnäme = 1", "line 3: there is a special character", "one setting a line"),
    ("name = 5", "name is not text", "name = \"…\""),
    ("video-bitrate = \"700\"", "video-bitrate is not a whole number", "500"),
    ("for = \"1\"", "for is not a number", "60"),
    ("call = 1", "call is not true or false", "true"),
    ("view = true", "view is not a port", "8080"),
    ("peer = [1]", "peer is not a list of texts", "["),
    ("lan = true\nno-lan = false", "lan and no-lan are one setting", "one"),
    ("call = true\nwatch = true", "call and watch exclude each other", "one"),
    ("auto-answer = true\nwatch = true", "auto-answer and watch exclude each other", "one"),
    ("invite = \"i\"\nkey-file = \"k\"", "invite and key-file exclude each other", "one"),
    ("name = \"a\"\n\nname = 1", "line 3: there is a setting for the second time", "or line 1"),
    ("max-streams = \"six\"", "max-streams is not a whole number", "max-streams = 6"),
    ("max-streams = -1", "max-streams = -1 is out of range", "0 for no video"),
    ("max-video = 360", "max-video is not text", "max-video = \"640x360\""),
    ("muted = true", "muted is not text", "muted = \"both\""),
    ("name = Ada", "line 1", "one setting a line"),
    ("name = \"a\\u0000b\"", "line 1: there is a zero byte", "one setting a line"),
    ("name = \"a\"\n#\0\nvidoe = 1", "line 2: there is a zero byte", "one setting a line"),
    ("name = \"a\\qb\"", "line 1: there is a backslash", "one setting a line"),
    ("name = \"a", "line 1: there is a text without a closing quote", "one setting a line"),
    ("peer = [\"a:1\"\nname = \"b\"", "line 2: there is more than one", "one setting a line"),
    ("peer = [\"a:1\",\n", "line 2: there is a list without an end", "one setting a line"),
    ("name\n= 1", "line 1: there is a key without a value", "one setting a line"),
    ("for = 1 2", "line 1: there is more than one", "one setting a line"),
    ("for = 01", "line 1: there is a value", "one setting a line"),
    ("for = 1__0", "line 1: there is a value", "one setting a line"),
    ("for = 0x10", "line 1: there is a value", "one setting a line"),
    ("join.name = \"a\"", "there is no setting join.name", "muster config"),
    ("max-streams = 99999999999999999999", "line 1", "one setting a line"),
    ("video-bitrate = 5", "video-bitrate = 5 is out of range", "30"),
    ("uplink = 63", "uplink = 63 is out of range", "64"),
    ("view = 65536", "view = 65536 is not a port", "65535"),
    ("for = inf", "for = inf is out of range", "1e9"),
    ("muted = \"x\"", "muted = \"x\" is nothing to mute", "both"),
    ("name = \"\"", "name = \"\" is empty", "name"),
    ("record = \"\"", "record = \"\" is empty", "leave it away"),
    ("peer = [\"a:1\", \"a\"]", "\"a\" is not an address", "peer takes HOST:PORT"),
    ("rendezvous = [\"a:\"]", "\"a:\" is not an address", "rendezvous takes HOST:PORT"),
    ("listen = \"a:1\"", "\"a:1\" is not an address of this machine", "listen takes an IP"),
    ("passphrase = trustno1", "line 1: there is a value", "one setting a line"),
  ])
  func aWrongFileIsOneClearError(toml: String, message: String, hint: String) throws {
    let error = try #require(try Self.problem(["lab"], toml: toml))
    #expect(error.message.contains(message) && error.message.hasPrefix(TemporaryFile.folder))
    #expect(error.hint.contains(hint) && error.kind == .usage)
  }

  @Test(arguments: [
    (["MUSTER_PASPHRASE": "p"], "no variable MUSTER_PASPHRASE", "MUSTER_PASSPHRASE"),
    (["MUSTER_LAN": "maybe"], "MUSTER_LAN=maybe is not true or false", "MUSTER_LAN=true"),
    (["MUSTER_VIEW": ""], "MUSTER_VIEW= is not a port", "8080"),
    (["MUSTER_FOR": "1 s"], "MUSTER_FOR=1 s is not a number", "60"),
    (["MUSTER_VIDEO_BITRATE": "5"], "MUSTER_VIDEO_BITRATE=5 is out of range", "30"),
    (["MUSTER_CALL": "1", "MUSTER_WATCH": "1"], "MUSTER_CALL and MUSTER_WATCH exclude", "one"),
    (["MUSTER_LAN": "1", "MUSTER_NO_LAN": "0"], "MUSTER_LAN and MUSTER_NO_LAN are one", "one"),
    (["MUSTER_CONFIG": "/nowhere"], "cannot read the settings file /nowhere", "--config"),
  ])
  func aWrongVariableIsOneClearError(
    variables: [String: String], message: String, hint: String
  ) throws {
    let error = try #require(try Self.problem(["lab"], variables))
    #expect(error.message.contains(message) && error.hint.contains(hint) && error.kind == .usage)
  }

  @Test func whatTOMLHasForSettingsIsRead() throws {
    let text =
      "\u{FEFF}# a comment\r\n\"name\" = \"a\\t\\\"\\u00e9\\U0001F600\" # another\n"
      + "record = 'C:\\x'\nfor = -1_0.5e+1\nmax-streams = +1_000\ncall=true\n"
      + "peer = [ # one\n  \"a:1\",\n\n  'b:2' , ]\ninterface = []\ninvite = \"i\""
    let values = try SettingsLayer(toml: text, path: "x", environment: [:]).values
    let expected: [String: SettingValue] = [
      "name": .text("a\t\"é😀"), "record": .text("C:\\x"), "for": .number(-105),
      "max-streams": .integer(1000), "call": .bool(true), "peer": .list(["a:1", "b:2"]),
      "interface": .list([]), "invite": .list(["i"]),
    ]
    #expect(values == expected)
  }

  /// A good file with one to three random changes: each is read or refused, and each happens.
  @Test func hostileFilesAreReadOrRefused() throws {
    let excluded = ["watch", "no-view", "key-file", "invite"]
    let lines = Self.cases.filter { !excluded.contains($0.name) && $0.values[0] != .bool(false) }
    let good = Array(lines.map(\.line).joined(separator: "\n").utf8)
    let alphabet = Array("[]{}=\"'#\\\n.,-_ \tux0189truefalsinf\u{1}é".utf8) + [0xFF]
    var (read, refused) = (0, 0)
    for seed in 0..<1000 {
      var random = PRNG(seed: UInt64(seed))
      var bytes = good
      for _ in 0...random.below(3) {
        let start = random.below(bytes.count)
        let end = min(bytes.count, start + random.below(8))
        let put = (0..<random.below(8)).map { _ in alphabet[random.below(alphabet.count)] }
        bytes.replaceSubrange(start..<end, with: put)
      }
      let text = String(decoding: bytes, as: UTF8.self)
      do {
        _ = try SettingsLayer(toml: text, path: "x", environment: [:])
        read += 1
      } catch {
        #expect(error.kind == .usage && error.message.hasPrefix("x: "), "seed \(seed)")
        refused += 1
      }
    }
    #expect(read > 0 && refused > 0, "read \(read), refused \(refused)")
  }

  /// Its suggestion is not searched for with a table of millions of rows.
  @Test func aKeyOfAMillionLettersIsRefused() throws {
    let key = String(repeating: "a", count: 1_000_000)
    let error = try #require(try Self.problem(["lab"], toml: "\(key) = 1"))
    #expect(error.message.contains("there is no setting aaa") && error.hint.contains("config"))
  }

  /// A secret that stands somewhere is for channels that have no key of their own.
  @Test(arguments: [false, true]) func aStandingSecretLeavesCreatedChannelsTheirKey(isFile: Bool)
    throws
  {
    let key = try TemporaryFile(String(repeating: "5a", count: 32))
    let secret = isFile ? "key-file = \"\(key.path)\"" : "passphrase = \"pebble anvil lantern\""
    let options = isFile ? ["--key-file", key.path] : ["--passphrase", "pebble anvil lantern"]
    for (arguments, toml, isStanding) in [([], secret, true), (options, secret, false)] {
      var notices: [MusterError] = []
      let settings = try Self.settings(["lab"] + arguments, toml: toml)
      let source = try ChannelKeys.resolve(settings, &notices).first?.source
      switch source {
      case .openUnlessCreated: #expect(isStanding)
      case .open: #expect(!isStanding)
      default: Issue.record("\(String(describing: source))")
      }
    }
  }

  // MARK: The report

  @Test func theReportHidesSecretsAndNamesSources() throws {
    let settings = try Self.settings(
      ["--passphrase", "pebble"], ["MUSTER_NO_LAN": "1"], toml: "name = \"Ada\"")
    let report = SettingsReport(settings)
    let text = report.lines.joined(separator: "\n") + report.json.text
    #expect(!text.contains("pebble") && text.contains("(not shown)"))
    let lines = report.lines
    #expect(
      lines.contains { $0.contains("name") && $0.contains("\"Ada\"") && $0.hasSuffix(".toml") })
    #expect(lines.contains { $0.hasPrefix("lan ") && $0.hasSuffix("MUSTER_NO_LAN") })
    #expect(lines.contains { $0.hasPrefix("relay ") && $0.hasSuffix("default") })
  }

  @Test func aSecretThatOthersCanReadGivesAWarning() throws {
    let warned = try Self.settings(toml: "passphrase = \"p\"").notices
    #expect(warned.first?.hint.contains("600") == true)
    #expect(try Self.settings(toml: "invite = \"muster://x\"").notices.count == 1)
    #expect(try Self.settings(toml: "invite = \"file\"\nname = \"x\"").notices.isEmpty)
  }
}

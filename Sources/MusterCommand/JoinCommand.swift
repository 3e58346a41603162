import ArgumentParser
import Logging
import Muster
import MusterBase
import MusterSystem
import MusterView

/// The command `muster join`, which runs a node until the user stops it.
package struct JoinCommand: AsyncParsableCommand {
  package static let configuration = CommandConfiguration(
    commandName: "join",
    abstract: "Join channels; start or join their calls.",
    discussion: """
      With a terminal, shows who is there and takes keys. Without one, or with --json, standard \
      output has one JSON object a line and standard input takes commands, such as \
      {"do":"mute","media":"audio"}; EVENTS.md in the documentation lists all.

      A channel that was created here or joined by an invite is remembered, and needs no secret \
      the next time. Others can read a passphrase or an invite on the command line in the process \
      list; MUSTER_PASSPHRASE, a file and standard input they cannot.

      Every option is also a key of the settings file and a variable, --max-video for example \
      max-video and MUSTER_MAX_VIDEO. Options win over variables, and variables over the file; \
      muster config shows what is in force.
      """)

  @OptionGroup package var options: JoinOptions
  @OptionGroup package var file: SettingsFileOptions

  // No setting: it must not be answered by one.
  @Flag(
    help: "Show where the invite leads and what would be live, and ask, as for muster: links.")
  var ask = false

  package init() {}

  package mutating func run() async throws {
    var settings = try Settings(options, file)
    let level = try settings.logLevel()
    LoggingSystem.bootstrap { StandardErrorLog(label: $0, level: level) }
    var configuration = try settings.configuration()
    var isInDoubt = ask
    let usesTerminal =
      settings.options.json != true && isatty(STDIN_FILENO) == 1 && isatty(STDOUT_FILENO) == 1
    if usesTerminal, settings.options.channels.isEmpty, settings.options.invite.isEmpty {
      try await Self.askForChannel(&settings)
      isInDoubt = !settings.options.invite.isEmpty
    }
    guard !isInDoubt || !settings.options.invite.isEmpty else {
      throw MusterError("--ask is about an invite", hint: "add --invite", kind: .usage)
    }
    var notices = settings.notices
    configuration.channels = try ChannelKeys.resolve(settings, &notices)
    await Self.chooseDevices(settings.options, &configuration, &notices)
    if isInDoubt, case .invite(let invite)? = configuration.channels.first?.source,
      try await !InviteQuestion.isAnsweredYes(invite, configuration, usesTerminal: usesTerminal)
    {
      standardError("nothing was joined")
      return
    }
    configuration.logger = Logger(label: "muster.node")
    try await Self.run(configuration, settings, notices, usesTerminal: usesTerminal)
  }

  private static func run(
    _ configuration: Configuration, _ settings: Settings, _ notices: [MusterError],
    usesTerminal: Bool
  ) async throws {
    let (port, seconds) = try (settings.pagePort(), settings.runningTime())
    let node = try await MusterNode.start(configuration)
    let events = node.events()
    var browser: Browser?
    defer { browser?.close() }
    do {
      let page = settings.options.noView ? nil : try await CallPage.start(node, port: port)
      if settings.options.open == true, let page { browser = Browser.open(page.url) }
      let session = Session(
        node: node, events: events, page: page, seconds: seconds, notices: notices,
        usesTerminal: usesTerminal)
      try await session.run()
    } catch {
      await node.stop()
      throw error
    }
  }

  private static func askForChannel(_ settings: inout Settings) async throws(MusterError) {
    let options = settings.options
    let hasSecret = options.passphrase != nil || options.keyFile != nil
    switch try await ChannelPrompt.ask(data: options.data, hasSecret: hasSecret) {
    case .invite(let url): settings.options.invite = [url]
    case .channel(let name, let typed):
      settings.options.channels = [name]
      settings.options.passphrase = options.passphrase ?? typed
    }
  }

  /// Sets the sources and the sink to open: the devices given as options, otherwise the devices
  /// found.
  private static func chooseDevices(
    _ options: JoinOptions, _ configuration: inout Configuration, _ notices: inout [MusterError]
  ) async {
    func choose(_ given: String?, _ found: Bool, _ device: String, _ notice: MusterError) -> String?
    {
      if let given { return given == "none" ? nil : given }
      if found { return device }
      notices.append(notice)
      return nil
    }
    let hasMicrophone = options.audio == nil ? await DefaultDevices.hasMicrophone() : false
    let hasSpeaker = options.speaker == nil ? await DefaultDevices.hasSpeaker() : false
    let hasCamera = options.video == nil ? await DefaultDevices.hasCamera() : false
    configuration.video = choose(
      options.video, hasCamera, "camera",
      MusterError("no camera found: others will not see you", hint: "use --video test or a file"))
    configuration.audio = choose(
      options.audio, hasMicrophone, "mic",
      MusterError(
        "no microphone found: others will not hear you", hint: "use --audio tone or a file"))
    configuration.speaker = choose(
      options.speaker, hasSpeaker, "default",
      MusterError("no loudspeaker found: you will hear nobody", hint: "use --speaker FILE.wav"))
    configuration.share = options.share == "none" ? nil : options.share
  }
}

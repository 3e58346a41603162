import ArgumentParser
import Glibc
import Logging
import Muster
import MusterBase
import MusterCrypto
import MusterDevices
import MusterNetwork
import MusterView
import ServiceLifecycle

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
      """)

  @Argument(
    help: "The channels to join; none with --invite, which names its own. A terminal asks for one.")
  package var channels: [String] = []

  @Option(help: "The name that others see (default: the user's name).")
  var name: String?

  @Option(
    help: ArgumentHelp("The channel's passphrase; also from MUSTER_PASSPHRASE.", valueName: "text"))
  var passphrase: String?

  @Option(
    name: .customLong("key-file"),
    help: ArgumentHelp(
      "A file with the channel's key: 32 bytes or 64 hex digits.", valueName: "file"),
    completion: .file())
  var keyFile: String?

  @Option(
    help: ArgumentHelp(
      "An invite: muster://…, a file with one, or - for the first line of standard input.",
      valueName: "url|file|-"), completion: .file())
  var invite: [String] = []

  @Flag(help: "Start the call, or join it, at once.")
  var call = false

  @Flag(help: "Stay out of the call.")
  var watch = false

  @Option(
    help: ArgumentHelp(
      "camera[:PATH], test[:WxH@FPS], a .y4m or .ivf file, or none (default: a camera, if any).",
      valueName: "source"), completion: .file(extensions: ["y4m", "ivf"]))
  var video: String?

  @Option(
    help: ArgumentHelp(
      "A second video stream: test[:WxH@FPS], or a .y4m or .ivf file.", valueName: "source"),
    completion: .file(extensions: ["y4m", "ivf"]))
  var share: String?

  @Option(
    help: ArgumentHelp(
      "Enter with the microphone, the camera or both switched off: audio, video or both.",
      valueName: "media"), completion: .list(["audio", "video", "both"]))
  var muted: String?

  @Option(
    help: ArgumentHelp(
      "mic[:PCM], tone, a .wav file, or none (default: a microphone if there is one).",
      valueName: "source"), completion: .file(extensions: ["wav"]))
  var audio: String?

  @Option(
    help: ArgumentHelp(
      "default, an ALSA PCM, a .wav file, or none (default: a loudspeaker if there is one).",
      valueName: "sink"), completion: .file(extensions: ["wav"]))
  var speaker: String?

  @Option(
    name: .customLong("video-bitrate"),
    help: ArgumentHelp("The most that the largest layer may take, in kbit/s.", valueName: "kbps"))
  var videoBitrate: Int?

  @Option(
    help: ArgumentHelp(
      "The address of a node to look for; may be repeated.", valueName: "host:port"))
  var peer: [String] = []

  @Option(
    help: ArgumentHelp(
      "The address of a rendezvous where members meet; may be repeated.", valueName: "host:port"))
  var rendezvous: [String] = []

  @Flag(name: .customLong("offer-rendezvous"), help: "Be a rendezvous for others, too.")
  var offerRendezvous = false

  @Flag(
    name: .customLong("no-port-mapping"),
    help: "Do not have the router let others in, even where --rendezvous looks beyond it.")
  var noPortMapping = false

  @Flag(
    name: .customLong("no-relay"),
    help: "Do not pass on packets of members who cannot reach each other.")
  var noRelay = false

  @Option(
    help: ArgumentHelp(
      "The address of a node of an OpenDHT network (builds with DHT only); may be repeated.",
      valueName: "host:port"))
  var dht: [String] = []

  @Flag(name: .customLong("no-lan"), help: "Do not announce on the local network.")
  var noLan = false

  @Flag(
    name: .customLong("dns-sd"),
    help: "Find others by DNS-SD, too: tells everyone on the network that a node is here.")
  var dnsServiceDiscovery = false

  @Option(
    help: ArgumentHelp(
      "The address to listen on (default: every address, any free port).", valueName: "host:port"))
  var listen: String?

  @Option(
    help: ArgumentHelp(
      "An interface to announce on; may be repeated (default: all).", valueName: "name"))
  var interface: [String] = []

  @Option(
    name: .customLong("max-video"),
    help: ArgumentHelp(
      "The most to request of the video of others, shown or not, as WxH or WxH@FPS.",
      valueName: "size"))
  var maxVideo: String?

  @Option(
    name: .customLong("max-streams"),
    help: ArgumentHelp(
      "The most videos to receive at once; those that rank lowest rest (default: no limit).",
      valueName: "n"))
  var maxStreams: Int?

  @Flag(
    name: .customLong("no-latency"),
    help: "Do not decode the test patterns of others to measure their latency.")
  var noLatency = false

  @Option(
    help: ArgumentHelp(
      "A directory to record into: an .ivf per video stream, a .wav per participant.",
      valueName: "dir"), completion: .directory)
  var record: String?

  @Option(
    defaultAsFlag: PagePort(0),
    help: ArgumentHelp(
      "The port of the call page on 127.0.0.1; 0 is a free one, as without the option.",
      valueName: "port"))
  var view: PagePort?

  @Flag(name: .customLong("no-view"), help: "No call page.")
  var noView = false

  @Flag(help: "Open the call page in the browser.")
  var open = false

  @Option(
    help: ArgumentHelp(
      "Where the identity is kept (default: the XDG data directory).", valueName: "dir"),
    completion: .directory)
  var data: String?

  @Flag(help: "Events out and commands in, as JSON lines, even with a terminal.")
  var json = false

  @Option(
    name: .customLong("for"),
    help: ArgumentHelp("Leave after so many seconds.", valueName: "seconds"))
  var seconds: Double?

  @Option(
    name: .customLong("log-level"),
    help: ArgumentHelp(
      "trace, debug, info, notice, warning, error or critical.", valueName: "level"),
    completion: .list(Logger.Level.allCases.map(\.rawValue)))
  var logLevel: String = "warning"

  package init() {}

  package mutating func run() async throws {
    let level = try parsedLogLevel()
    LoggingSystem.bootstrap { label in
      var handler = StreamLogHandler.standardError(label: label)
      handler.logLevel = level
      return handler
    }
    let usesTerminal = !json && isatty(STDIN_FILENO) == 1 && isatty(STDOUT_FILENO) == 1
    if usesTerminal, channels.isEmpty, invite.isEmpty { try await askForChannel() }
    var (configuration, notices) = try nodeConfiguration()
    let port = try checkedPort()
    try checkTime()
    configuration.logger = Logger(label: "muster.node")
    let node = try await MusterNode.start(configuration)
    let events = node.events()
    do {
      let page = noView ? nil : try await CallPage.start(node, port: port)
      if open, let page { Browser.open(page.url) }
      let session = Session(
        node: node, events: events, page: page, seconds: seconds, notices: notices,
        usesTerminal: usesTerminal)
      try await session.run()
    } catch {
      await node.stop()
      throw error
    }
  }

  package func parsedLogLevel() throws(MusterError) -> Logger.Level {
    guard let level = Logger.Level(rawValue: logLevel) else {
      let levels = Logger.Level.allCases.map(\.rawValue).joined(separator: ", ")
      throw MusterError("there is no log level \(logLevel)", hint: "one of \(levels)", kind: .usage)
    }
    return level
  }

  private mutating func askForChannel() async throws(MusterError) {
    let hasSecret = passphrase != nil || keyFile != nil || getenv("MUSTER_PASSPHRASE") != nil
    switch try await ChannelPrompt.ask(data: data, hasSecret: hasSecret) {
    case .invite(let url): invite = [url]
    case .channel(let name, let typed):
      channels = [name]
      passphrase = passphrase ?? typed
    }
  }

  // MARK: Configuration from options

  package func checkedPort() throws(MusterError) -> Int {
    guard let view else { return 0 }
    guard !noView else {
      throw MusterError(
        "--view and --no-view exclude each other", hint: "give one of the two", kind: .usage)
    }
    guard let number = Int(view.text), (0...65535).contains(number) else {
      throw MusterError(
        "--view \(Words.shown(view.text)) is not a port", hint: "give a port from 0 to 65535",
        kind: .usage)
    }
    return number
  }

  package func checkTime() throws(MusterError) {
    guard let seconds, !(seconds > 0 && seconds <= Self.longestTime) else { return }
    throw MusterError(
      "--for \(seconds) is out of range", hint: "give seconds above 0, and at most 1e9",
      kind: .usage)
  }

  /// The maximum running time in seconds (31 years), which in nanoseconds fits into 63 bits.
  private static let longestTime = 1e9

  package func nodeConfiguration() throws(MusterError) -> (Configuration, [MusterError]) {
    guard !(call && watch) else {
      throw MusterError("--call and --watch exclude each other", hint: "use one", kind: .usage)
    }
    var notices: [MusterError] = []
    var result = Configuration()
    result.name = try displayName()
    result.channels = try ChannelKeys.resolve(
      channels, passphrase: passphrase, keyFile: keyFile, invites: invite, &notices)
    result.call = call
    result.peers = peer
    result.rendezvous = rendezvous
    result.offersRendezvous = offerRendezvous
    result.mapsPorts = !noPortMapping
    result.relays = !noRelay
    result.dht = dht
    result.lan = !noLan
    result.dnsServiceDiscovery = dnsServiceDiscovery
    result.listen = listen
    result.interfaces = interface
    result.measuresLatency = !noLatency
    result.recordDirectory = record
    result.dataDirectory = data
    result.videoBitrate = try checkedBitrate()
    (result.maxVideo, result.maxFramesPerSecond) = try checkedVideo()
    result.maxStreams = try checkedStreams()
    (result.audioMuted, result.videoMuted) = try checkedMuting()
    let sources = [("video", video), ("share", share), ("audio", audio), ("speaker", speaker)]
    for (option, value) in sources where value?.isEmpty == true {
      throw MusterError(
        "--\(option) is empty", hint: "leave it away, or see muster join --help", kind: .usage)
    }
    (result.video, result.audio, result.speaker) = devices(&notices)
    result.share = share == "none" ? nil : share
    return (result, notices)
  }

  private func displayName() throws(MusterError) -> String {
    let safe = DisplayText.sanitized(name ?? Configuration.defaultName, limit: Limits.nameBytes)
    guard !safe.isEmpty else {
      throw MusterError("the name is empty", hint: "give one with --name", kind: .usage)
    }
    return safe
  }

  private func checkedMuting() throws(MusterError) -> (audio: Bool, video: Bool) {
    switch muted {
    case nil: return (false, false)
    case "audio": return (true, false)
    case "video": return (false, true)
    case "both": return (true, true)
    case let other?:
      throw MusterError(
        "--muted \(other) is nothing to mute", hint: "write audio, video or both", kind: .usage)
    }
  }

  private func checkedBitrate() throws(MusterError) -> Int? {
    guard let videoBitrate else { return nil }
    guard (30...20_000).contains(videoBitrate) else {
      throw MusterError(
        "--video-bitrate \(videoBitrate) is out of range", hint: "give 30 to 20000 kbit/s",
        kind: .usage)
    }
    return videoBitrate
  }

  private func checkedVideo() throws(MusterError) -> (VideoSize?, Int?) {
    guard let maxVideo else { return (nil, nil) }
    let limit = try VideoLimit(checking: maxVideo, of: "--max-video")
    return (limit.size, limit.framesPerSecond)
  }

  private func checkedStreams() throws(MusterError) -> Int? {
    guard let maxStreams, maxStreams < 0 else { return maxStreams }
    throw MusterError(
      "--max-streams \(maxStreams) is out of range", hint: "give 0 for no video, or more",
      kind: .usage)
  }

  /// The sources and the sink to open: the devices given as options, otherwise the devices found.
  private func devices(
    _ notices: inout [MusterError]
  ) -> (video: String?, audio: String?, speaker: String?) {
    func choose(_ given: String?, _ found: Bool, _ device: String, _ notice: MusterError) -> String?
    {
      if let given { return given == "none" ? nil : given }
      if found { return device }
      notices.append(notice)
      return nil
    }
    // ALSA also lists devices that cannot be opened, so the default devices are opened as a test.
    let hasMicrophone = audio == nil && (try? AudioSources.open("mic"))?.cancel() != nil
    let hasSpeaker = speaker == nil && (try? AudioSinks.open("default"))?.close() != nil
    let hasCamera = video == nil && DeviceList.cameras().contains { !$0.modes.isEmpty }
    return (
      choose(
        video, hasCamera, "camera",
        MusterError(
          "no camera found: others will not see you", hint: "use --video test or a file")),
      choose(
        audio, hasMicrophone, "mic",
        MusterError(
          "no microphone found: others will not hear you", hint: "use --audio tone or a file")
      ),
      choose(
        speaker, hasSpeaker, "default",
        MusterError("no loudspeaker found: you will hear nobody", hint: "use --speaker FILE.wav"))
    )
  }
}

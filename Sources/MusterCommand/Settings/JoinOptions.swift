import ArgumentParser
import Logging

/// The options of `muster join`, all of them settings; nil or empty where none is given.
///
/// A name here is also a key of the settings file and, in capitals after `MUSTER_`, a variable:
/// `Setting.all` lists them.
package struct JoinOptions: ParsableArguments {
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

  @Flag(
    name: .customLong("auto-answer"),
    help: "Join every call that others start, as long as the node runs.")
  var autoAnswer = false

  @Flag(help: "Stay out of the call.")
  var watch = false

  // MARK: Media

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
      "The most that this node sends in all, in kbit/s, which all paths share by plan.",
      valueName: "kbps"))
  var uplink: Int?

  // MARK: Finding others

  @Option(
    help: ArgumentHelp(
      "The address of a node to look for; may be repeated.", valueName: "host:port"))
  var peer: [String] = []

  @Option(
    help: ArgumentHelp(
      "The address of a rendezvous where members meet; may be repeated.", valueName: "host:port"))
  var rendezvous: [String] = []

  @Flag(
    name: .customLong("offer-rendezvous"), inversion: .prefixedNo,
    help: "Be a rendezvous for others, too, or not (default: no).")
  var offerRendezvous: Bool?

  @Flag(
    name: .customLong("port-mapping"), inversion: .prefixedNo,
    help: "Have the router let others in where --rendezvous looks beyond it, or not (default: yes)."
  )
  var portMapping: Bool?

  @Flag(
    inversion: .prefixedNo,
    help: "Pass on packets of members who cannot reach each other, or not (default: yes).")
  var relay: Bool?

  @Flag(
    inversion: .prefixedNo,
    help: "Mark audio and video for Wi-Fi and routers to let them go first, or not (default: yes).")
  var dscp: Bool?

  @Option(
    help: ArgumentHelp(
      "The address of a node of an OpenDHT network (builds with DHT only); may be repeated.",
      valueName: "host:port"))
  var dht: [String] = []

  @Flag(
    inversion: .prefixedNo, help: "Announce on the local network, or not (default: yes).")
  var lan: Bool?

  @Flag(
    name: .customLong("dns-sd"), inversion: .prefixedNo,
    help: """
      Find others by DNS-SD, too, which tells everyone on the network that a node is here, or not \
      (default: no).
      """)
  var dnsServiceDiscovery: Bool?

  @Option(
    help: ArgumentHelp(
      "The address to listen on (default: every address, any free port).", valueName: "host:port"))
  var listen: String?

  @Option(
    help: ArgumentHelp(
      "An interface to announce on; may be repeated (default: all).", valueName: "name"))
  var interface: [String] = []

  // MARK: Receiving

  @Option(
    name: .customLong("max-video"),
    help: ArgumentHelp(
      "The most to request of the video of others, shown or not, as WxH or WxH@FPS.",
      valueName: "size"))
  var maxVideo: String?

  @Option(
    name: .customLong("max-streams"),
    help: ArgumentHelp(
      "The most videos to receive at once, 0 for none; the others rest (default: no limit).",
      valueName: "n"))
  var maxStreams: Int?

  @Flag(
    inversion: .prefixedNo,
    help: "Decode the test patterns of others to measure their latency, or not (default: yes).")
  var latency: Bool?

  @Option(
    help: ArgumentHelp(
      "A directory to record into: an .ivf per video stream, a .wav per participant.",
      valueName: "dir"), completion: .directory)
  var record: String?

  // MARK: The node on this machine

  @Option(
    defaultAsFlag: PagePort(0),
    help: ArgumentHelp(
      "The port of the call page on 127.0.0.1; 0 is a free one, as without the option.",
      valueName: "port"))
  var view: PagePort?

  @Flag(name: .customLong("no-view"), help: "No call page.")
  var noView = false

  @Flag(
    inversion: .prefixedNo, help: "Open the call page in the browser, or not (default: no).")
  var open: Bool?

  @Option(
    help: ArgumentHelp(
      "Where the identity is kept (default: the XDG data directory).", valueName: "dir"),
    completion: .directory)
  var data: String?

  @Flag(
    inversion: .prefixedNo,
    help: "Events out and commands in, as JSON lines, or not (default: without a terminal).")
  var json: Bool?

  @Option(
    name: .customLong("for"),
    help: ArgumentHelp("Leave after so many seconds.", valueName: "seconds"))
  var seconds: Double?

  @Option(
    name: .customLong("log-level"),
    help: ArgumentHelp(
      "trace, debug, info, notice, warning, error or critical (default: warning).",
      valueName: "level"),
    completion: .list(Logger.Level.allCases.map(\.rawValue)))
  var logLevel: String?

  package init() {}

  /// Options of which none is given.
  static var none: JoinOptions { parseOrExit([]) }
}

/// The option that names the settings file.
package struct SettingsFileOptions: ParsableArguments {
  @Option(
    help: ArgumentHelp(
      "The file with settings (default: muster/config.toml in the XDG configuration directory).",
      valueName: "file"), completion: .file(extensions: ["toml"]))
  package var config: String?

  package init() {}
}

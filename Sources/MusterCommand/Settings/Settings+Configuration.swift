import Logging
import Muster
import MusterBase
import MusterNetwork
import MusterWire

extension Settings {
  /// The maximum running time in seconds (31 years), which in nanoseconds fits into 63 bits.
  private static let longestTime = 1e9

  /// The configuration of a node with these settings, without its channels and devices. Checks the
  /// settings that are not part of it as well.
  ///
  /// - Throws: A usage error for the first setting that is out of range.
  package func configuration() throws(MusterError) -> Configuration {
    _ = try (pagePort(), runningTime(), logLevel())
    var result = Configuration()
    result.name = try displayName()
    result.call = options.call
    result.answersCalls = options.autoAnswer
    result.peers = options.peer
    result.rendezvous = options.rendezvous
    result.offersRendezvous = options.offerRendezvous ?? false
    result.mapsPorts = options.portMapping ?? true
    result.marksClasses = options.dscp ?? true
    result.relays = options.relay ?? true
    result.dht = options.dht
    result.lan = options.lan ?? true
    result.dnsServiceDiscovery = options.dnsServiceDiscovery ?? false
    result.listen = options.listen
    result.interfaces = options.interface
    result.measuresLatency = options.latency ?? true
    result.recordDirectory = options.record
    result.dataDirectory = try dataDirectory()
    result.videoBitrate = try bitrate()
    result.uplink = try uplink()
    if let text = options.maxVideo {
      let limit = try VideoLimit(checking: text, as: phrase("max-video"))
      (result.maxVideo, result.maxFramesPerSecond) = (limit.size, limit.framesPerSecond)
    }
    result.maxStreams = try maxStreams()
    (result.audioMuted, result.videoMuted) = try muting()
    for setting in Setting.all { try checkText(setting.name) }
    try checkAddresses()
    try ChannelKeys.check(options.channels, invites: options.invite)
    return result
  }

  /// The data directory; nil for the default one.
  func dataDirectory() throws(MusterError) -> String? {
    try checkText("data")
    return options.data
  }

  /// The port of the call page; 0 for a free one.
  package func pagePort() throws(MusterError) -> Int {
    guard let view = options.view else { return 0 }
    guard let number = Int(view.text), (0...65535).contains(number) else {
      throw problem("view", "is not a port", hint: "give a port from 0 to 65535")
    }
    return number
  }

  /// The running time in seconds; nil for no limit.
  package func runningTime() throws(MusterError) -> Double? {
    guard let seconds = options.seconds else { return nil }
    guard seconds > 0, seconds <= Self.longestTime else {
      throw problem("for", "is out of range", hint: "give seconds above 0, and at most 1e9")
    }
    return seconds
  }

  package func logLevel() throws(MusterError) -> Logger.Level {
    guard let text = options.logLevel else { return .warning }
    guard let level = Logger.Level(rawValue: text) else {
      let levels = Logger.Level.allCases.map(\.rawValue).joined(separator: ", ")
      throw problem("log-level", "is no log level", hint: "one of \(levels)")
    }
    return level
  }

  private func displayName() throws(MusterError) -> String {
    let given = options.name ?? Configuration.defaultName
    let safe = DisplayText.sanitized(given, limit: Limits.nameBytes)
    guard !safe.isEmpty else {
      throw problem("name", "is empty", hint: "give a name")
    }
    return safe
  }

  private func muting() throws(MusterError) -> (audio: Bool, video: Bool) {
    switch options.muted {
    case nil: return (false, false)
    case "audio": return (true, false)
    case "video": return (false, true)
    case "both": return (true, true)
    default:
      throw problem("muted", "is nothing to mute", hint: "write audio, video or both")
    }
  }

  private func bitrate() throws(MusterError) -> Int? {
    guard let rate = options.videoBitrate, !(30...20_000).contains(rate) else {
      return options.videoBitrate
    }
    throw problem("video-bitrate", "is out of range", hint: "give 30 to 20000 kbit/s")
  }

  private func uplink() throws(MusterError) -> Int? {
    guard let rate = options.uplink, !(64...1_000_000).contains(rate) else { return options.uplink }
    throw problem("uplink", "is out of range", hint: "give 64 to 1000000 kbit/s")
  }

  private func maxStreams() throws(MusterError) -> Int? {
    guard let most = options.maxStreams, most < 0 else { return options.maxStreams }
    throw problem("max-streams", "is out of range", hint: "give 0 for no video, or more")
  }

  /// Throws if the setting is an empty text: none of them means anything by it.
  private func checkText(_ name: String) throws(MusterError) {
    guard given[name]?.value != .text("") else {
      throw problem(name, "is empty", hint: "leave it away, or see muster join --help")
    }
  }

  /// Throws if an address has another form than the node takes. Nothing is resolved.
  private func checkAddresses() throws(MusterError) {
    let lists = [
      ("peer", options.peer), ("rendezvous", options.rendezvous), ("dht", options.dht),
    ]
    for (name, addresses) in lists {
      try check(name) { option throws(MusterError) in
        for address in addresses { _ = try PeerResolver.Endpoint(address, option: option) }
      }
    }
    guard let listen = options.listen else { return }
    try check("listen") { option throws(MusterError) in
      _ = try Sockets.listenAddress(listen, option: option)
    }
  }

  /// Checks a setting by what parses it, which gets the setting's name as its source has it; the
  /// error names the source.
  private func check(
    _ name: String, _ parse: (_ option: String) throws(MusterError) -> Void
  ) throws(MusterError) {
    guard let given = given[name] else { return }
    do { try parse(given.source.name(given.key)) } catch {
      throw MusterError("\(given.source.prefix)\(error.message)", hint: error.hint, kind: .usage)
    }
  }

  private func problem(_ name: String, _ what: String, hint: String) -> MusterError {
    MusterError("\(phrase(name)) \(what)", hint: hint, kind: .usage)
  }
}

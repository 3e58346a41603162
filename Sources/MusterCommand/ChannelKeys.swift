import Muster
import MusterBase
import MusterCrypto
import MusterSystem
import MusterWire

/// Converts channel names and secrets from the settings into channels to join.
package enum ChannelKeys {
  package static func resolve(
    _ settings: Settings, _ notices: inout [MusterError]
  ) throws(MusterError) -> [Configuration.Channel] {
    let names = settings.options.channels
    if let invite = settings.options.invite.first {
      return [try channel(of: invite, named: names)]
    }
    guard !names.isEmpty else {
      throw MusterError(
        "no channel is given", hint: "name one, or use --invite; see muster join --help",
        kind: .usage)
    }
    var channels: [Configuration.Channel] = []
    for name in names {
      let source = try source(of: name, settings, &notices)
      channels.append(Configuration.Channel(name: name, source: source))
    }
    return channels
  }

  /// Throws if a node could not be in channels of these names, or with so many invites. Reads and
  /// derives nothing.
  static func check(_ names: [String], invites: [String]) throws(MusterError) {
    guard invites.count <= 1 else {
      throw MusterError(
        "--invite is given \(invites.count) times", hint: "join the others with join-channel",
        kind: .usage)
    }
    guard names.count <= Limits.channels else {
      throw MusterError(
        "\(names.count) channels are too many", hint: "\(Limits.channels) are the most",
        kind: .usage)
    }
    for (index, name) in names.enumerated() {
      try ChannelName.checkReference(name)
      guard !names[..<index].contains(name) else {
        throw MusterError("channel \(name) is given twice", hint: "name it once", kind: .usage)
      }
    }
  }

  private static func source(
    of name: String, _ settings: Settings, _ notices: inout [MusterError]
  ) throws(MusterError) -> Configuration.Channel.Source {
    let hasSecret = settings.options.keyFile != nil || settings.options.passphrase != nil
    if Hex.isID(name) {
      // A secret that was exported or stands in a file is for channels that need one.
      guard !hasSecret || settings.hasStandingSecret else {
        throw MusterError(
          "\(name) is the id of a remembered channel, which needs no secret",
          hint: "leave the secret away, or give the channel's name with it", kind: .usage)
      }
      return .storedOrPublic
    }
    let key: ChannelKey
    if let keyFile = settings.options.keyFile {
      key = try read(keyFile, &notices)
    } else if let passphrase = settings.options.passphrase {
      if let weakness = MusterError(weakPassphrase: passphrase, channel: name) {
        notices.append(weakness)
      }
      key = try self.key(of: name, passphrase)
    } else {
      return .storedOrPublic
    }
    return settings.hasStandingSecret ? .openUnlessCreated(key) : .open(key)
  }

  private static func key(
    of name: String, _ passphrase: String
  ) throws(MusterError) -> ChannelKey {
    guard !passphrase.isEmpty, let key = ChannelKey.fromPassphrase(passphrase, name: name) else {
      throw MusterError("the passphrase cannot be used", hint: "give a longer one", kind: .usage)
    }
    return key
  }

  private static func read(
    _ path: String, _ notices: inout [MusterError]
  ) throws(MusterError) -> ChannelKey {
    let descriptor = open(path, O_RDONLY | O_CLOEXEC)
    guard descriptor >= 0 else {
      throw MusterError(
        "cannot read the key file \(path) (\(SystemError.last))",
        hint: "check the path and its permissions")
    }
    defer { close(descriptor) }
    var status = stat()
    if fstat(descriptor, &status) == 0,
      let warning = MusterError(keyFile: path, mode: status.st_mode)
    {
      notices.append(warning)
    }
    var bytes = [UInt8](repeating: 0, count: 128)
    let count = MusterSystem.read(descriptor, &bytes, bytes.count)
    let content = Array(bytes.prefix(max(0, count)))
    let text = String(decoding: content, as: UTF8.self).split(whereSeparator: \.isWhitespace)
    let secret = content.count == 32 ? content : text.first.flatMap { Hex.decode($0) } ?? []
    guard let key = ChannelKey(secret: secret) else {
      throw MusterError(
        "\(path) holds no channel key", hint: "it must be 32 bytes, or 64 hex digits")
    }
    return key
  }

  // MARK: Invites

  private static func channel(
    of argument: String, named names: [String]
  ) throws(MusterError) -> Configuration.Channel {
    let url = try text(of: argument)
    let invite: Invite
    do { invite = try Invite(url: url) } catch { throw MusterError(error) }
    guard names.count <= 1 else {
      throw MusterError(
        "an invite is to one channel", hint: "join the others with join-channel", kind: .usage)
    }
    if let name = names.first, name != invite.name {
      throw MusterError(
        "the invite is to \(invite.name), not to \(DisplayText.sanitized(name, limit: 64))",
        hint: "leave the channel's name away", kind: .usage)
    }
    return Configuration.Channel(name: invite.name, source: .invite(invite))
  }

  /// The URL of an invite: the argument itself, or the first line of a file or of standard input.
  private static func text(of argument: String) throws(MusterError) -> String {
    if argument.contains("://") { return argument }
    if argument == "-" { return firstLine(of: STDIN_FILENO) }
    let descriptor = open(argument, O_RDONLY | O_CLOEXEC)
    guard descriptor >= 0 else {
      let reason = SystemError.last
      let shown = DisplayText.sanitized(argument, limit: 80)
      throw MusterError(
        "--invite \(shown) is no invite, and no file with one (\(reason))",
        hint: "an invite begins with muster://, as muster invite prints it", kind: .usage)
    }
    defer { close(descriptor) }
    return firstLine(of: descriptor)
  }

  /// The first word of the first line, read byte by byte so that the rest of standard input remains
  /// for commands.
  private static func firstLine(of descriptor: Int32) -> String {
    var line: [UInt8] = []
    var byte: UInt8 = 0
    while line.count <= Invite.urlLimit {
      let count = MusterSystem.read(descriptor, &byte, 1)
      if count < 0 && errno == EINTR { continue }
      guard count == 1, byte != 0x0A else { break }
      line.append(byte)
    }
    let words = String(decoding: line, as: UTF8.self).split(whereSeparator: \.isWhitespace)
    return words.first.map { String($0) } ?? ""
  }
}

import Glibc
import Muster
import MusterBase
import MusterCrypto

/// Turns channel names and secrets from the command line into keys.
enum ChannelKeys {
  static func resolve(
    _ names: [String], passphrase: String?, keyFile: String?, notices: inout [MusterError]
  ) throws(MusterError) -> [Configuration.Channel] {
    guard passphrase == nil || keyFile == nil else {
      throw MusterError(
        "--passphrase and --key-file exclude each other", hint: "use one", kind: .usage)
    }
    guard names.count <= Limits.channels else {
      throw MusterError(
        "\(names.count) channels are too many", hint: "\(Limits.channels) are the most",
        kind: .usage)
    }
    let fromEnvironment = getenv("MUSTER_PASSPHRASE").map { String(cString: $0) }
    let secret = keyFile == nil ? passphrase ?? fromEnvironment : nil
    var channels: [Configuration.Channel] = []
    for name in names {
      try check(name)
      guard !channels.contains(where: { $0.name == name }) else {
        throw MusterError("channel \(name) is given twice", hint: "name it once", kind: .usage)
      }
      let key = try key(of: name, passphrase: secret, keyFile: keyFile, notices: &notices)
      channels.append(Configuration.Channel(name: name, key: key))
    }
    return channels
  }

  private static func check(_ name: String) throws(MusterError) {
    let safe = DisplayText.sanitized(name, limit: Limits.channelNameBytes)
    guard !name.isEmpty, safe == name else {
      throw MusterError(
        "that is no channel name",
        hint: "use 1 to \(Limits.channelNameBytes) bytes of ordinary text", kind: .usage)
    }
  }

  private static func key(
    of name: String, passphrase: String?, keyFile: String?, notices: inout [MusterError]
  ) throws(MusterError) -> ChannelKey {
    if let keyFile { return try read(keyFile) }
    guard let passphrase else {
      notices.append(
        MusterError(
          "channel \(name) has no passphrase: anyone who knows its name can join and listen",
          hint: "use --passphrase, or MUSTER_PASSPHRASE in the environment"))
      return ChannelKey.fromName(name)
    }
    guard !passphrase.isEmpty, let key = ChannelKey.fromPassphrase(passphrase, name: name) else {
      throw MusterError("the passphrase cannot be used", hint: "give a longer one", kind: .usage)
    }
    return key
  }

  private static func read(_ path: String) throws(MusterError) -> ChannelKey {
    let descriptor = open(path, O_RDONLY | O_CLOEXEC)
    guard descriptor >= 0 else {
      throw MusterError(
        "cannot read the key file \(path) (\(String(cString: strerror(errno))))",
        hint: "check the path and its permissions")
    }
    defer { close(descriptor) }
    var bytes = [UInt8](repeating: 0, count: 128)
    let count = Glibc.read(descriptor, &bytes, bytes.count)
    let content = Array(bytes.prefix(max(0, count)))
    let text = String(decoding: content, as: UTF8.self).split(whereSeparator: \.isWhitespace)
    let secret = content.count == 32 ? content : text.first.flatMap { Hex.decode($0) } ?? []
    guard let key = ChannelKey(secret: secret) else {
      throw MusterError(
        "\(path) holds no channel key", hint: "it must be 32 bytes, or 64 hex digits")
    }
    return key
  }
}

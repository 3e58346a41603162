import MusterBase

/// The rules for the local names of channels.
package enum ChannelName {
  /// Throws a usage error if no channel can have this name: it is empty, too long, has control
  /// characters, or would be taken for an id.
  package static func check(_ name: String) throws(MusterError) {
    try checkReference(name)
    guard !Hex.isID(name) else {
      throw MusterError(
        "\(name) is no channel name: 16 or 64 hex digits are an id", hint: "choose another name",
        kind: .usage)
    }
  }

  /// Throws a usage error if this is neither a possible name of a channel nor an id.
  package static func checkReference(_ text: String) throws(MusterError) {
    guard !text.isEmpty, DisplayText.sanitized(text, limit: Limits.channelNameBytes) == text else {
      throw MusterError(
        "that is no channel name",
        hint: "use 1 to \(Limits.channelNameBytes) bytes of ordinary text", kind: .usage)
    }
  }
}

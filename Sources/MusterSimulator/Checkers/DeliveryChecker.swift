import MusterBase

/// Checks that every frame of audio of one run of its sender reaches each receiver at most once,
/// unaltered, and over the sender's own link.
public struct DeliveryChecker: Sendable {
  private struct Key: Comparable, Sendable {
    let receiver: UInt8
    let sender: UInt8
    let run: UInt8

    var order: UInt32 { UInt32(receiver) << 16 | UInt32(sender) << 8 | UInt32(run) }

    static func < (a: Key, b: Key) -> Bool { a.order < b.order }
  }

  private var seen = PeerTable<Key, NumberSet>()

  /// A checker before the first audio packet.
  public init() {}

  /// The fault in an audio packet that `receiver` received over its link to `sender`; nil for none.
  public mutating func played(_ packet: [UInt8], from sender: Int, at receiver: Int) -> String? {
    for frame in AudioToken.frames(of: packet) {
      if let fault = played(frame: frame, from: sender, at: receiver) { return fault }
    }
    return nil
  }

  private mutating func played(
    frame: [UInt8], from sender: Int, at receiver: Int
  ) -> String? {
    guard let token = AudioToken(frame) else {
      return "audio that nobody made, \(frame.count) bytes"
    }
    guard Int(token.sender) == sender else { return "audio of \(token.sender) from \(sender)" }
    let key = Key(receiver: UInt8(receiver), sender: token.sender, run: token.run)
    if seen.index(of: key) == nil { seen[key] = NumberSet() }
    let isNew = seen.update(key) { $0.insert(UInt64(token.serial)) } ?? false
    return isNew ? nil : "audio \(token.serial) of \(sender) twice at \(receiver)"
  }
}

import MusterBase

/// A text message to the channel or to one member.
///
/// Layout in bytes: send time 8, count of predecessors 1 and the first 8 bytes of their entry ids,
/// receiver flag 1 (1: receiver 32), content length 2 and content.
public struct Message: Equatable, Sendable {
  /// The time of sending in milliseconds since 1970, by the author's wall clock; for display only.
  public var sentAt: UInt64
  /// The latest messages that the author had seen (the heads of its causal history), by the first 8
  /// bytes of their entry ids. This message is shown after all of these messages.
  public var after: [UInt64]
  /// The recipient; nil for all members.
  public var to: NodeID?
  /// The UTF-8 text; for a single recipient, sealed by `DirectSeal`.
  public var content: [UInt8]

  /// The maximum number of predecessors in one message.
  public static let predecessorLimit = 4
  /// The number of bytes that sealing adds: an XChaCha20 nonce and a Poly1305 tag.
  public static let sealBytes = 24 + 16

  /// `after` has at most `predecessorLimit` ids; `content` must be sealed if `to` is set.
  public init(sentAt: UInt64, after: [UInt64], to: NodeID?, content: [UInt8]) {
    self.sentAt = sentAt
    self.after = after
    self.to = to
    self.content = content
  }

  func write(to writer: inout Writer) {
    precondition(after.count <= Self.predecessorLimit)
    precondition(content.count <= Limits.textBytes + Self.sealBytes)
    writer.u64(sentAt)
    writer.u8(UInt8(after.count))
    for id in after { writer.u64(id) }
    writer.u8(to == nil ? 0 : 1)
    if let to { writer.append(to.key) }
    writer.u16(UInt16(content.count))
    writer.append(content)
  }

  init(reading reader: inout Reader) throws(WireError) {
    sentAt = try reader.u64()
    let count = Int(try reader.u8())
    guard count <= Self.predecessorLimit else { throw .tooLong }
    after = []
    for _ in 0..<count { after.append(try reader.u64()) }
    switch try reader.u8() {
    case 0: to = nil
    case 1: to = NodeID(try reader.bytes32())
    default: throw .invalidValue
    }
    let length = Int(try reader.u16())
    guard length <= Limits.textBytes + (to == nil ? 0 : Self.sealBytes) else { throw .tooLong }
    content = try reader.array(length)
  }
}

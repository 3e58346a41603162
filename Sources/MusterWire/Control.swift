import MusterBase

/// A message between the two nodes of a link, beside the media: type 1, length 2, value.
///
/// The high bit of the type marks a critical message: who does not know it refuses the link's
/// version. Unknown messages without it are skipped.
public enum Control: Equatable, Sendable {
  /// A signed hello, as `SignedHello` encodes it.
  case hello([UInt8])
  /// The hello of this boot and sequence arrived.
  case helloReceived(bootID: UInt64, sequence: UInt64)
  /// What the sender wants to see of the receiver.
  case wish(VideoWish)
  /// Answer with `pong`; the token is the sender's own.
  case ping(UInt64)
  case pong(UInt64)

  private enum Kind: UInt8 {
    case hello = 1
    case helloReceived = 2
    case wish = 3
    case ping = 4
    case pong = 5
  }

  static let criticalBit: UInt8 = 0x80

  /// One payload that carries all of `messages`.
  public static func encode(_ messages: [Control]) -> [UInt8] {
    var writer = Writer(capacity: 256)
    writer.u8(PayloadKind.controlByte)
    for message in messages {
      let (kind, value) = message.body
      writer.u8(kind.rawValue)
      writer.u16(UInt16(value.count))
      writer.append(value)
    }
    return writer.bytes
  }

  private var body: (Kind, [UInt8]) {
    var writer = Writer(capacity: 32)
    switch self {
    case .hello(let bytes): return (.hello, bytes)
    case .helloReceived(let bootID, let sequence):
      writer.u64(bootID)
      writer.u64(sequence)
      return (.helloReceived, writer.bytes)
    case .wish(let wish):
      wish.write(to: &writer)
      return (.wish, writer.bytes)
    case .ping(let token):
      writer.u64(token)
      return (.ping, writer.bytes)
    case .pong(let token):
      writer.u64(token)
      return (.pong, writer.bytes)
    }
  }

  /// The messages of a payload; unknown optional ones are skipped, an unknown critical one throws.
  public static func decode(_ payload: [UInt8]) throws(WireError) -> [Control] {
    var reader = Reader(payload)
    guard try reader.u8() == PayloadKind.controlByte else { throw .invalidValue }
    var messages: [Control] = []
    while !reader.isAtEnd {
      let type = try reader.u8()
      let value = try reader.slice(Int(try reader.u16()))
      guard let kind = Kind(rawValue: type) else {
        if type & criticalBit != 0 { throw .unsupported }
        continue
      }
      var body = Reader(value)
      switch kind {
      case .hello: messages.append(.hello(Array(body.rest())))
      case .helloReceived:
        messages.append(.helloReceived(bootID: try body.u64(), sequence: try body.u64()))
      case .wish: messages.append(.wish(try VideoWish(reading: &body)))
      case .ping: messages.append(.ping(try body.u64()))
      case .pong: messages.append(.pong(try body.u64()))
      }
      try body.expectEnd()
    }
    return messages
  }
}

/// The largest picture of a sender that a receiver has use for; zero by zero means none at all.
public struct VideoWish: Equatable, Sendable {
  public var width: UInt16
  public var height: UInt16

  public init(width: UInt16, height: UInt16) {
    self.width = width
    self.height = height
  }

  public static let best = VideoWish(width: .max, height: .max)
  public static let none = VideoWish(width: 0, height: 0)

  public var wantsVideo: Bool { width > 0 && height > 0 }

  func write(to writer: inout Writer) {
    writer.u16(width)
    writer.u16(height)
  }

  init(reading reader: inout Reader) throws(WireError) {
    width = try reader.u16()
    height = try reader.u16()
  }
}

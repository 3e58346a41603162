import MusterBase

/// A member's state as it tells it to the channel. Signed by the member; the newest sequence wins.
///
/// Layout: author 32, boot id 8, sequence 8, flags 2, name length 1 and UTF-8; if in a call: call
/// id 16, initiator 32, start 8; then, if an ended call is named: call id 16; last the count of
/// video layers and width 2, height 2, frames per second 1 of each, smallest first.
public struct Hello: Equatable, Sendable {
  public var author: NodeID
  public var bootID: UInt64
  public var sequence: UInt64
  public var name: String
  public var flags: HelloFlags
  public var call: CallInfo?
  /// A call that its initiator, the author, has ended for all.
  public var endedCall: CallID?
  public var layers: [VideoLayer]

  public init(
    author: NodeID, bootID: UInt64, sequence: UInt64, name: String, flags: HelloFlags,
    call: CallInfo?, endedCall: CallID?, layers: [VideoLayer]
  ) {
    self.author = author
    self.bootID = bootID
    self.sequence = sequence
    self.name = name
    self.flags = flags
    self.call = call
    self.endedCall = endedCall
    self.layers = layers
  }

  private static let knownFlags: HelloFlags = [
    .inCall, .audioMuted, .videoMuted, .speaking, .sharing, .left, .pattern, .audio,
  ]
  private static let hasCall: UInt16 = 1 << 14
  private static let hasEndedCall: UInt16 = 1 << 15

  public func encoded() -> [UInt8] {
    precondition(layers.count <= Limits.spatialLayers && name.utf8.count <= Limits.nameBytes)
    var writer = Writer(capacity: 192)
    writer.append(author.key)
    writer.u64(bootID)
    writer.u64(sequence)
    writer.u16(
      flags.rawValue | (call == nil ? 0 : Self.hasCall) | (endedCall == nil ? 0 : Self.hasEndedCall)
    )
    writer.text(name)
    if let call {
      writer.u64(call.id.high)
      writer.u64(call.id.low)
      writer.append(call.initiator.key)
      writer.u64(call.startedAt)
    }
    if let endedCall {
      writer.u64(endedCall.high)
      writer.u64(endedCall.low)
    }
    writer.u8(UInt8(layers.count))
    for layer in layers {
      writer.u16(UInt16(clamping: layer.size.width))
      writer.u16(UInt16(clamping: layer.size.height))
      writer.u8(UInt8(clamping: layer.framesPerSecond))
    }
    return writer.bytes
  }

  public init(decoding bytes: some Collection<UInt8>) throws(WireError) {
    var reader = Reader(Array(bytes))
    author = NodeID(try reader.bytes32())
    bootID = try reader.u64()
    sequence = try reader.u64()
    let bits = try reader.u16()
    flags = HelloFlags(rawValue: bits).intersection(Self.knownFlags)
    name = try reader.text(limit: Limits.nameBytes)
    call = nil
    if bits & Self.hasCall != 0 {
      call = CallInfo(
        id: CallID(high: try reader.u64(), low: try reader.u64()),
        initiator: NodeID(try reader.bytes32()), startedAt: try reader.u64())
    }
    endedCall = nil
    if bits & Self.hasEndedCall != 0 {
      endedCall = CallID(high: try reader.u64(), low: try reader.u64())
    }
    let count = Int(try reader.u8())
    guard count <= Limits.spatialLayers else { throw .tooLong }
    layers = []
    for _ in 0..<count {
      layers.append(
        VideoLayer(
          size: VideoSize(width: Int(try reader.u16()), height: Int(try reader.u16())),
          framesPerSecond: Int(try reader.u8())))
    }
    // Later versions may append fields; the signature covers them, this version does not need them.
  }
}

/// The yes-or-no parts of a member's state.
public struct HelloFlags: OptionSet, Sendable, Hashable {
  public let rawValue: UInt16

  public init(rawValue: UInt16) { self.rawValue = rawValue }

  public static let inCall = HelloFlags(rawValue: 1 << 0)
  public static let audioMuted = HelloFlags(rawValue: 1 << 1)
  public static let videoMuted = HelloFlags(rawValue: 1 << 2)
  public static let speaking = HelloFlags(rawValue: 1 << 3)
  public static let sharing = HelloFlags(rawValue: 1 << 4)
  /// The member leaves the channel: its last word.
  public static let left = HelloFlags(rawValue: 1 << 5)
  /// The video carries the test pattern's frame number and capture time.
  public static let pattern = HelloFlags(rawValue: 1 << 6)
  /// The member has a source of sound.
  public static let audio = HelloFlags(rawValue: 1 << 7)
}

/// The call that a member is in.
public struct CallInfo: Equatable, Hashable, Sendable {
  public var id: CallID
  public var initiator: NodeID
  /// Milliseconds since 1970 by the initiator's wall clock; for display and for ties.
  public var startedAt: UInt64

  public init(id: CallID, initiator: NodeID, startedAt: UInt64) {
    self.id = id
    self.initiator = initiator
    self.startedAt = startedAt
  }
}

/// One simulcast layer on offer.
public struct VideoLayer: Equatable, Hashable, Sendable, CustomStringConvertible {
  public var size: VideoSize
  public var framesPerSecond: Int

  public init(size: VideoSize, framesPerSecond: Int) {
    self.size = size
    self.framesPerSecond = framesPerSecond
  }

  /// `640x360@30`.
  public var description: String { "\(size)@\(framesPerSecond)" }
}

import MusterBase
import MusterWire

/// A complete picture out of `FrameAssembler`.
public struct AssembledFrame: Equatable, Sendable {
  public var data: [UInt8]
  public var isKeyframe: Bool
  public var temporalLayer: Int
  public var timestamp: UInt32
  /// Of a keyframe; nil for others.
  public var keyframeSize: VideoSize?
  /// Pictures passed over right before this one, as far as their numbers tell.
  public var skippedFrames: Int
}

/// Puts the packets of one layer together and lets pictures out in order, none whose references
/// are missing.
///
/// Sequences have no gaps on a link, so a picture that follows the last one let out, packet on
/// packet, has all it refers to. Across a hole there are three ways on: a keyframe; the very next
/// base picture by TL0PICIDX (RFC 7741 4.2), since base pictures refer to base pictures only; and
/// an enhancement picture that says it refers to nothing but the base picture let out last (Y).
public struct FrameAssembler: Sendable {
  /// Pictures missing by their numbers beyond this are a counter that started afresh.
  static let plausibleSkip = 1000
  /// TL0PICIDX has 8 bits: across more packets than this it might have come round.
  static let plausibleJump: Int64 = 512

  /// Packets below this are of no more use.
  public private(set) var floor: Int64 = 0

  private var expected: Int64?
  private var lastEnd: Int64?
  private var lastBase: UInt8?
  private var lastPictureID: UInt16?
  /// By sequence; at most `Limits.packetsInAssembly`, of at most `Limits.framesInAssembly`
  /// pictures.
  private var packets: [VideoPacket] = []
  private var ends = 0

  public init() {}

  /// Whether nothing can leave before a keyframe.
  public var isWaitingForKeyframe: Bool { expected == nil }

  /// Whether a keyframe has begun to arrive.
  public var holdsKeyframeStart: Bool { packets.contains(where: \.startsKeyframe) }

  public var packetCount: Int { packets.count }

  /// Starts afresh with a keyframe at or above `sequence`.
  public mutating func restart(at sequence: Int64) {
    self = FrameAssembler()
    floor = sequence
  }

  /// Gives up what the next pictures refer to: only a keyframe helps.
  public mutating func loseChain() { expected = nil }

  /// Keeps a packet; false when it is a duplicate or of no more use.
  public mutating func insert(_ packet: VideoPacket) -> Bool {
    guard packet.sequence >= floor else { return false }
    var position = packets.count
    while position > 0, packets[position - 1].sequence >= packet.sequence { position -= 1 }
    if position < packets.count, packets[position].sequence == packet.sequence { return false }
    packets.insert(packet, at: position)
    if packet.isFrameEnd { ends += 1 }
    while packets.count > Limits.packetsInAssembly || ends > Limits.framesInAssembly {
      discardOldestFrame()
    }
    return true
  }

  /// The next picture that may leave; with `mayJump`, also one beyond a hole.
  public mutating func next(mayJump: Bool) -> AssembledFrame? {
    if let expected, let first = packets.first, first.sequence == expected {
      switch scan(from: 0) {
      case .complete(let end): return take(0...end)
      case .broken: loseChain()
      case .incomplete: break
      }
    }
    guard isWaitingForKeyframe || mayJump else { return nil }
    for index in packets.indices where isEntry(packets[index]) {
      if case .complete(let end) = scan(from: index) { return take(index...end) }
    }
    return nil
  }

  private enum Scan {
    case complete(end: Int)
    case incomplete
    /// Packets without a gap that are not one picture: only a faulty sender makes these.
    case broken
  }

  private func scan(from start: Int) -> Scan {
    let first = packets[start]
    guard first.isFrameStart else { return .broken }
    if first.startsKeyframe && VP8FrameHeader.keyframeSize(first.data) == nil { return .broken }
    var bytes = 0
    for index in start..<packets.count {
      let packet = packets[index]
      guard packet.sequence == first.sequence + Int64(index - start) else { return .incomplete }
      guard packet.timestamp == first.timestamp, index == start || !packet.isFrameStart else {
        return .broken
      }
      bytes += packet.data.count
      guard bytes <= Limits.frameBytes else { return .broken }
      if packet.isFrameEnd { return .complete(end: index) }
    }
    return .incomplete
  }

  /// Whether decoding can go on from the picture that this packet starts, whatever came before it.
  private func isEntry(_ packet: VideoPacket) -> Bool {
    if packet.startsKeyframe { return true }
    guard let expected, let lastBase, let base = packet.tl0PicIdx else { return false }
    guard packet.isFrameStart, packet.sequence - expected < Self.plausibleJump else { return false }
    return packet.temporalLayer == 0
      ? base == lastBase &+ 1 : packet.isLayerSync && base == lastBase
  }

  private mutating func take(_ range: ClosedRange<Int>) -> AssembledFrame {
    let first = packets[range.lowerBound]
    var data: [UInt8] = []
    data.reserveCapacity(packets[range].reduce(0) { $0 + $1.data.count })
    for packet in packets[range] { data.append(contentsOf: packet.data) }
    let size = first.startsKeyframe ? VP8FrameHeader.keyframeSize(first.data) : nil
    let frame = AssembledFrame(
      data: data, isKeyframe: first.startsKeyframe, temporalLayer: Int(first.temporalLayer),
      timestamp: first.timestamp,
      keyframeSize: size.map { VideoSize(width: $0.width, height: $0.height) },
      skippedFrames: skipped(before: first))
    lastPictureID = first.pictureID
    if first.temporalLayer == 0 { lastBase = first.tl0PicIdx }
    discard(through: range.upperBound)
    expected = floor
    lastEnd = floor
    return frame
  }

  private func skipped(before first: VideoPacket) -> Int {
    guard let lastEnd, lastEnd != first.sequence else { return 0 }
    guard let lastPictureID, let pictureID = first.pictureID else { return 1 }
    let between = Int((pictureID &- lastPictureID &- 1) & 0x7FFF)
    return between <= Self.plausibleSkip ? max(between, 1) : 1
  }

  private mutating func discardOldestFrame() {
    discard(through: packets.firstIndex(where: \.isFrameEnd) ?? packets.count / 2)
    if let expected, expected < floor { loseChain() }
  }

  private mutating func discard(through index: Int) {
    floor = packets[index].sequence + 1
    ends -= packets[...index].count(where: \.isFrameEnd)
    packets.removeSubrange(...index)
  }
}

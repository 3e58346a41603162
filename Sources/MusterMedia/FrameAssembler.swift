import MusterBase
import MusterWire

/// A complete frame as `FrameAssembler` delivers it.
public struct AssembledFrame: Equatable, Sendable {
  /// The VP8 frame (RFC 6386).
  public var data: [UInt8]
  /// Whether the frame decodes without any earlier frame.
  public var isKeyframe: Bool
  /// The temporal layer; 0 is the base.
  public var temporalLayer: Int
  /// The RTP timestamp, at 90 kHz.
  public var timestamp: UInt32
  /// The size of a keyframe; nil for other frames.
  public var keyframeSize: VideoSize?
  /// The number of frames between the one delivered before and this one, from the gap in the
  /// PictureID.
  public var skippedFrames: Int
  /// Whether packets before this frame were lost; if not, the sender left the skipped frames out.
  public var isAfterLoss: Bool
}

/// Assembles the packets of one layer into frames, and delivers in order the frames whose reference
/// frames were delivered.
///
/// Temporal dropping leaves no gaps in the sequence numbers of a link, so a frame whose packets
/// directly follow those of the previous frame has all its references. After a gap, decoding can
/// resume at a keyframe; at the next base-layer frame by TL0PICIDX (RFC 7741 section 4.2), because
/// base-layer frames refer to base-layer frames only; and at an enhancement frame that depends on
/// the delivered base-layer frame only (the Y bit).
public struct FrameAssembler: Sendable {
  /// The largest plausible gap in PictureID, in frames; a larger gap means that the sender's
  /// counter restarted.
  static let plausibleSkip = 1000
  /// The maximum gap in packets over which TL0PICIDX values are compared; with 8 bits, TL0PICIDX
  /// may wrap in a longer gap.
  static let plausibleJump: Int64 = 512

  /// The sequence number below which packets are ignored.
  public private(set) var floor: Int64 = 0

  private var expected: Int64?
  private var lastEnd: Int64?
  private var lastBase: UInt8?
  private var lastPictureID: UInt16?
  /// The packets in order of sequence number; at most `Limits.packetsInAssembly`, of at most
  /// `Limits.framesInAssembly` frames.
  private var packets: [VideoPacket] = []
  private var ends = 0

  /// Creates an assembler that waits for a keyframe.
  public init() {}

  /// Whether only a keyframe can be delivered next.
  public var isWaitingForKeyframe: Bool { expected == nil }

  /// Whether the first packet of a keyframe has been received.
  public var holdsKeyframeStart: Bool { packets.contains(where: \.startsKeyframe) }

  /// The number of packets held.
  public var packetCount: Int { packets.count }

  /// Discards all packets and resumes with a keyframe at or above `sequence`.
  public mutating func restart(at sequence: Int64) {
    self = FrameAssembler()
    floor = sequence
  }

  /// Abandons the current reference frames; the next frame delivered is then a keyframe.
  public mutating func loseChain() { expected = nil }

  /// Inserts a packet; false if it is a duplicate or below `floor`.
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

  /// Returns the next deliverable frame; nil if there is none. A frame after a gap is deliverable
  /// only with `mayJump` or while a keyframe is awaited.
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
    /// Contiguous packets that do not form a frame; only a faulty sender produces them.
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

  /// Whether decoding can resume at the frame that starts with this packet, regardless of earlier
  /// losses.
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
    let isAfterLoss = lastEnd.map { $0 != first.sequence } ?? false
    let size = first.startsKeyframe ? VP8FrameHeader.keyframeSize(first.data) : nil
    let frame = AssembledFrame(
      data: data, isKeyframe: first.startsKeyframe, temporalLayer: Int(first.temporalLayer),
      timestamp: first.timestamp,
      keyframeSize: size.map { VideoSize(width: $0.width, height: $0.height) },
      skippedFrames: skipped(before: first, isAfterLoss: isAfterLoss), isAfterLoss: isAfterLoss)
    lastPictureID = first.pictureID
    if first.temporalLayer == 0 { lastBase = first.tl0PicIdx }
    discard(through: range.upperBound)
    expected = floor
    lastEnd = floor
    return frame
  }

  private func skipped(before first: VideoPacket, isAfterLoss: Bool) -> Int {
    let least = isAfterLoss ? 1 : 0
    guard let lastPictureID, let pictureID = first.pictureID else { return least }
    let between = Int((pictureID &- lastPictureID &- 1) & 0x7FFF)
    return between <= Self.plausibleSkip ? max(between, least) : least
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

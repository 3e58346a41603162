import MusterBase
import MusterMedia
import MusterWire

extension Instant {
  static func milliseconds(_ count: Int) -> Instant {
    Instant(nanoseconds: Int64(count) * 1_000_000)
  }
}

/// A model encoder that writes the references of each frame into the frame, with the three temporal
/// layers of the VP8 encoder: 0, 2, 1, 2.
struct ModelEncoder {
  private(set) var lastID: UInt32 = 0
  private var last: UInt32 = 0
  private var golden: UInt32 = 0
  private var isGoldenFresh = false
  private var sinceKeyframe = 0
  var layer = 0
  var size = VideoSize(width: 640, height: 360)

  mutating func encode(keyframe: Bool, bytes: Int, at now: Instant) -> EncodedFrame {
    lastID += 1
    let isKeyframe = keyframe || lastID == 1
    if isKeyframe { sinceKeyframe = 0 }
    let temporalLayer = [0, 2, 1, 2][sinceKeyframe % 4]
    sinceKeyframe += 1
    let references: (UInt32, UInt32) =
      isKeyframe ? (0, 0) : (last, temporalLayer == 2 && isGoldenFresh ? golden : 0)
    let updatesLast = temporalLayer == 0
    let updatesGolden = isKeyframe || temporalLayer == 1
    if updatesLast { (last, isGoldenFresh) = (lastID, false) }
    if updatesGolden { golden = lastID }
    if temporalLayer == 1 { isGoldenFresh = true }
    var writer = Writer()
    writer.append([isKeyframe ? 0x10 : 0x11, 0, 0, 0x9D, 0x01, 0x2A] as [UInt8])
    writer.append([UInt8(size.width & 255), UInt8(size.width >> 8)])
    writer.append([UInt8(size.height & 255), UInt8(size.height >> 8)])
    writer.u32(lastID)
    writer.u32(references.0)
    writer.u32(references.1)
    writer.u8((updatesLast ? 1 : 0) | (updatesGolden ? 2 : 0) | (isKeyframe ? 4 : 0))
    writer.append([UInt8](repeating: UInt8(lastID & 255), count: max(0, bytes - 23)))
    return EncodedFrame(
      data: writer.bytes, isKeyframe: isKeyframe, layer: layer, temporalLayer: temporalLayer,
      isReference: temporalLayer < 2, capturedAt: now)
  }
}

/// A model decoder that checks whether it has decoded the references of each frame.
struct ModelDecoder {
  private var last: UInt32 = 0
  private var golden: UInt32 = 0

  /// The frame's number; nil when the frame is incomplete or lacks a reference.
  mutating func decode(_ data: [UInt8]) -> UInt32? {
    var reader = Reader(data)
    do {
      _ = try reader.slice(10)
      let id = try reader.u32()
      let references = (try reader.u32(), try reader.u32())
      let flags = try reader.u8()
      let filler = reader.rest()
      // Every 61st byte and the last: enough to detect a part of another frame, and quick.
      let positions = Array(stride(from: filler.startIndex, to: filler.endIndex, by: 61))
      guard positions.allSatisfy({ filler[$0] == UInt8(id & 255) }),
        filler.last.map({ $0 == UInt8(id & 255) }) ?? true
      else { return nil }
      if flags & 4 == 0 {
        guard references.0 == last, references.1 == 0 || references.1 == golden else {
          return nil
        }
      }
      if flags & 1 != 0 { last = id }
      if flags & 2 != 0 { golden = id }
      return id
    } catch {
      return nil
    }
  }
}

/// The sender of one layer, composed as in a node, without encoder queues and pacing.
struct ModelSender {
  var encoder = ModelEncoder()
  var packetizer: VideoPacketizer
  var stream: RTPSender
  var retransmissionBudget = RetransmissionBudget()
  var limiter = KeyframeLimiter()
  var wantsKeyframe = false

  init(layer: Int = 0, seed: UInt64 = 1, firstSequence: UInt16 = 65_500) {
    encoder.layer = layer
    packetizer = VideoPacketizer(layer: layer, seed: seed)
    stream = RTPSender(
      payloadType: PayloadType.video(.camera, layer: layer), ssrc: 1000 + UInt32(layer),
      firstSequence: firstSequence, historyCapacity: Limits.retransmissionPackets)
  }

  /// Encodes one frame; returns its RTP packets.
  mutating func frame(bytes: Int, keyframe: Bool = false, at now: Instant) -> [RTPPacket] {
    if limiter.tick(at: now) { wantsKeyframe = true }
    let isKeyframe = keyframe || wantsKeyframe
    wantsKeyframe = false
    let encoded = encoder.encode(keyframe: isKeyframe, bytes: bytes, at: now)
    if encoded.isKeyframe { limiter.keyframeMade(at: now) }
    return packetizer.packetize(encoded).map { packets(of: $0, at: now) } ?? []
  }

  mutating func packets(of frame: PacketizedFrame, at now: Instant) -> [RTPPacket] {
    frame.payloads.indices.map { index in
      retransmissionBudget.sent(frame.payloads[index].count, at: now)
      let header = stream.send(
        frame.payloads[index], marker: index == frame.payloads.count - 1,
        timestamp: frame.timestamp, audioLevel: nil,
        isBase: frame.temporalLayer == 0, at: now)
      return RTPPacket(header: header, payload: frame.payloads[index][...])
    }
  }

  mutating func keyframeRequested(at now: Instant) {
    if limiter.request(isShared: false, at: now) { wantsKeyframe = true }
  }
}

extension [VideoReceiver.Output] {
  var frames: [ReceivedFrame] {
    compactMap { if case .frame(let frame) = $0 { frame } else { nil } }
  }

  var keyframeRequests: [UInt32] {
    compactMap { if case .requestKeyframe(let ssrc) = $0 { ssrc } else { nil } }
  }

  var nacks: [UInt16] {
    flatMap { if case .nack(_, let sequences) = $0 { sequences } else { [UInt16]() } }
  }
}

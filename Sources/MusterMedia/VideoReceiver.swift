import MusterBase
import MusterWire

/// A complete frame, ready for the decoder.
public struct ReceivedFrame: Equatable, Sendable {
  /// The spatial layer; 0 is the smallest.
  public var layer: Int
  /// The temporal layer; 0 is the base.
  public var temporalLayer: Int
  /// The VP8 frame (RFC 6386).
  public var data: [UInt8]
  /// Whether the frame decodes without any earlier frame.
  public var isKeyframe: Bool
  /// The RTP timestamp, at 90 kHz.
  public var timestamp: UInt32
  /// The size of the frame, from the latest keyframe.
  public var size: VideoSize
  /// The capture time on the sender's media clock; nil before its first sender report.
  public var capturedAt: Instant?
  /// The time at which the frame's last packet arrived or a gap before the frame was skipped.
  public var completedAt: Instant
  /// The time after `completedAt` at which the frame is to be shown, in sync with the sender's
  /// audio, or once packets that were lost would be repaired.
  public var delay: Duration
  /// Whether that is for repairs, on a path that loses packets.
  public var waitsForRepair: Bool
  /// Whether to show the frame. One that is older than the last frame is only decoded: the sender
  /// sent it again because later frames refer to it.
  public var isShown: Bool

  /// Creates a complete frame; `timestamp` is at 90 kHz, and `capturedAt` on the sender's media
  /// clock.
  public init(
    layer: Int, temporalLayer: Int, data: [UInt8], isKeyframe: Bool, timestamp: UInt32,
    size: VideoSize, capturedAt: Instant?, completedAt: Instant, delay: Duration,
    waitsForRepair: Bool = false, isShown: Bool
  ) {
    self.layer = layer
    self.temporalLayer = temporalLayer
    self.data = data
    self.isKeyframe = isKeyframe
    self.timestamp = timestamp
    self.size = size
    self.capturedAt = capturedAt
    self.completedAt = completedAt
    self.delay = delay
    self.waitsForRepair = waitsForRepair
    self.isShown = isShown
  }
}

/// Receives one video stream of one member: delivers complete frames in order, and requests missing
/// packets and keyframes.
///
/// Each layer has its own SSRC and sequence. Frames of only one layer at a time are delivered, and
/// the layer changes only at a keyframe of another layer.
public struct VideoReceiver: Sendable {
  /// An action for the host.
  public enum Output: Equatable, Sendable {
    /// Decode and show the frame.
    case frame(ReceivedFrame)
    case nack(ssrc: UInt32, [UInt16])
    case requestKeyframe(ssrc: UInt32)
  }

  /// The assumed round trip before the first measurement (libwebrtc `nack_requester.cc`).
  static let defaultRoundTrip = Duration.milliseconds(100)
  static let maximumRoundTrip = Duration.seconds(2)
  /// The expected interval between frames until the sender has announced its frame rate.
  static let defaultInterval = Duration.seconds(1) / 30
  /// The silence of the active layer after which a keyframe of another layer is requested. Until
  /// then, packets of the other layer may just be stragglers from before the last layer switch.
  static let takeover = Duration.milliseconds(100)
  /// The age up to which a frame counts as sent again, rather than as one of a sender whose
  /// timestamps began anew: that of the oldest cached frame, and as much again on a full path.
  static let oldestRepeat = FrameCache.lifetime * 2
  /// The silence after which another SSRC can replace an SSRC of the same layer.
  static let replacement = Duration.milliseconds(500)
  /// The number of sender reports kept for SSRCs without packets so far.
  static let pendingReports = 4

  /// The stream that is received.
  public let stream: StreamID
  var layers: [LayerReceiver] = []
  var wakeAt: [Instant?] = []
  var active: UInt32?
  var roundTrip = defaultRoundTrip
  private var reports = RingBuffer<SenderReport>(capacity: pendingReports)
  /// The layer and timestamp of the newest frame so far.
  var newest: (ssrc: UInt32, timestamp: UInt32)?
  var lipSync = LipSync()
  var repairDelay = RepairDelay()
  /// The latency of the sender's audio at playout; nil without audio.
  package var audioDelay: Duration?
  var freezes = FreezeMeter(interval: defaultInterval)
  /// The announced frame rate; 0 for a still now and then, whose intervals are no freezes.
  private var framesPerSecond: Int?
  var counted = VideoStatistics()

  /// Creates a receiver, which ignores packets of streams other than `stream`.
  public init(stream: StreamID = .camera) { self.stream = stream }

  /// Handles a packet of any layer; packets of other streams are counted as ignored.
  public mutating func receive(_ packet: RTPPacket, at now: Instant) -> [Output] {
    guard let (stream, layer) = PayloadType.video(of: packet.header.payloadType),
      stream == self.stream, let index = layerIndex(for: packet, layer: layer, at: now)
    else {
      counted.packetsIgnored &+= 1
      return []
    }
    let arrival = layers[index].insert(packet, at: now)
    switch arrival {
    case .new: break
    case .recovered: counted.packetsRetransmitted &+= 1
    case .late: counted.packetsLate &+= 1
    case .unusable: counted.packetsIgnored &+= 1
    }
    counted.packets &+= 1
    counted.bytes &+= UInt64(packet.payload.count)
    var outputs: [Output] = []
    serve(index, at: now, into: &outputs)
    if arrival == .recovered, case .frame(let frame) = outputs.first,
      let capturedAt = frame.capturedAt
    {
      repairDelay.repaired(transit: now - capturedAt, roundTrip: roundTrip, at: now)
    }
    return outputs
  }

  /// Whether packets with this SSRC have arrived.
  public func knows(_ ssrc: UInt32) -> Bool { layers.contains { $0.ssrc == ssrc } }

  /// Handles a sender report on a layer, of which no packet may have arrived yet.
  public mutating func receive(_ report: SenderReport, at now: Instant) {
    if let index = layers.firstIndex(where: { $0.ssrc == report.ssrc }) {
      layers[index].receive(report, at: now)
    } else {
      reports.append(report)
    }
  }

  /// Sets the path's round trip, which paces NACKs and PLIs; clamped to 0...2 s.
  public mutating func setRoundTrip(_ roundTrip: Duration) {
    self.roundTrip = min(max(roundTrip, .zero), Self.maximumRoundTrip)
  }

  /// Requests a keyframe for a sink that was opened late or lost its decoder's state. Returns
  /// nothing before the first frame and while the pacing of requests forbids one; the sink repeats
  /// its request until a keyframe arrives.
  public mutating func requestKeyframe(at now: Instant) -> [Output] {
    guard let index = layers.firstIndex(where: { $0.ssrc == active }),
      layers[index].nextKeyframeRequest(roundTrip: roundTrip, at: now) <= now
    else { return [] }
    var outputs: [Output] = []
    askForKeyframe(index, at: now, into: &outputs)
    return outputs
  }

  /// The delay that the member's audio needs in order not to be far ahead of this video.
  package func neededAudioDelay(at now: Instant) -> Duration {
    repairDelay.neededAudioDelay(at: now)
  }

  /// Returns the NACKs, PLIs and frames that are due; harmless before `deadline`.
  public mutating func tick(at now: Instant) -> [Output] {
    var outputs: [Output] = []
    for index in layers.indices {
      guard let wake = wakeAt[index], wake <= now else { continue }
      serve(index, at: now, into: &outputs)
    }
    return outputs
  }

  /// Takes the frame rate that the sender has announced; 0 for a still now and then.
  package mutating func expect(framesPerSecond: Int) {
    guard framesPerSecond != self.framesPerSecond else { return }
    if self.framesPerSecond == 0 { pause() }
    self.framesPerSecond = framesPerSecond
    if framesPerSecond > 0 { freezes.expect(interval: .seconds(1) / framesPerSecond) }
  }

  /// Excludes the interval between the last frame and the next frame from freezes, because no
  /// frames are expected.
  public mutating func pause() { freezes.pause() }

  /// Whether the sender sends only stills.
  var expectsStills: Bool { framesPerSecond == 0 }

  /// The time at which `tick` next has work.
  public var deadline: Instant? { wakeAt.reduce(nil) { soonest($0, $1) } }

  /// The counters of packets and frames so far. An interval that is still open counts as a freeze,
  /// unless its end shows that the source had paused.
  public func statistics(at now: Instant) -> VideoStatistics {
    var result = counted
    var freezes = freezes
    if !expectsStills { freezes.end(at: now) }
    (result.freezes, result.totalFreezesDuration) = (freezes.freezes, freezes.frozen)
    result.packetsLost = layers.reduce(0) { $0 + $1.statistics.cumulativeLost }
    return result
  }

  /// Creates a report block for the current SSRC of each layer received so far.
  public mutating func reportBlocks(at now: Instant) -> [ReportBlock] {
    layers.indices.compactMap { index in
      layers[index].statistics.hasReceived ? layers[index].reportBlock(at: now) : nil
    }
  }

  /// The number of packets that wait for missing packets.
  public var packetsHeld: Int { layers.reduce(0) { $0 + $1.packetsHeld } }

  /// Finds or creates the receiver for a packet. Another SSRC replaces a layer's SSRC only by
  /// starting a keyframe, or after a silence of `replacement`; until then the result is nil.
  private mutating func layerIndex(
    for packet: RTPPacket, layer: Int, at now: Instant
  ) -> Int? {
    let ssrc = packet.header.ssrc
    guard let index = layers.firstIndex(where: { $0.layer == layer }) else {
      guard !layers.contains(where: { $0.ssrc == ssrc }) else { return nil }
      layers.append(makeLayer(ssrc, layer: layer, at: now))
      wakeAt.append(nil)
      return layers.count - 1
    }
    if layers[index].ssrc == ssrc { return index }
    let isKeyframe = VideoPacket(packet, sequence: 0)?.startsKeyframe ?? false
    guard isKeyframe || now - layers[index].lastNewAt >= Self.replacement,
      !layers.contains(where: { $0.ssrc == ssrc })
    else { return nil }
    if active == layers[index].ssrc { active = nil }
    var successor = makeLayer(ssrc, layer: layer, at: now)
    successor.succeed(layers[index])
    layers[index] = successor
    return index
  }

  private func makeLayer(_ ssrc: UInt32, layer: Int, at now: Instant) -> LayerReceiver {
    var receiver = LayerReceiver(ssrc: ssrc, layer: layer, at: now)
    for index in 0..<reports.count where reports[index].ssrc == ssrc {
      receiver.receive(reports[index], at: now)
    }
    return receiver
  }
}

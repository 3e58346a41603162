import MusterBase
import MusterWire

/// A picture ready to be decoded.
public struct ReceivedFrame: Equatable, Sendable {
  public var layer: Int
  public var temporalLayer: Int
  public var data: [UInt8]
  public var isKeyframe: Bool
  public var timestamp: UInt32
  public var size: VideoSize
  /// By the sender's clock; nil before its first report.
  public var capturedAt: Instant?
  public var completedAt: Instant

  public init(
    layer: Int, temporalLayer: Int, data: [UInt8], isKeyframe: Bool, timestamp: UInt32,
    size: VideoSize, capturedAt: Instant?, completedAt: Instant
  ) {
    self.layer = layer
    self.temporalLayer = temporalLayer
    self.data = data
    self.isKeyframe = isKeyframe
    self.timestamp = timestamp
    self.size = size
    self.capturedAt = capturedAt
    self.completedAt = completedAt
  }
}

/// One video stream of one member as it arrives: complete frames in order, and requests for what is
/// missing.
///
/// Each layer has its own SSRC and sequence. Frames of one layer are delivered at a time, and the
/// layer changes only at a keyframe of another.
public struct VideoReceiver: Sendable {
  public enum Output: Equatable, Sendable {
    case frame(ReceivedFrame)
    case nack(ssrc: UInt32, [UInt16])
    case requestKeyframe(ssrc: UInt32)
  }

  /// libwebrtc `nack_requester.cc`, until the link knows better.
  static let defaultRoundTrip = Duration.milliseconds(100)
  static let maximumRoundTrip = Duration.seconds(2)
  /// A gap between pictures from which on people speak of a freeze.
  static let freeze = Duration.milliseconds(200)
  /// A layer that does not show is asked for only once the one that does is silent for this long:
  /// a straggler of the layer just left is no reason.
  static let takeover = Duration.milliseconds(100)
  /// A source silent for this long may be replaced by another of the same layer.
  static let replacement = Duration.milliseconds(500)
  /// Reports of sources not heard of yet.
  static let pendingReports = 4

  public let stream: StreamID
  var layers: [LayerReceiver] = []
  var wakeAt: [Instant?] = []
  var active: UInt32?
  var roundTrip = defaultRoundTrip
  private var reports = RingBuffer<SenderReport>(capacity: pendingReports)
  var lastFrame: (at: Instant, timestamp: UInt32)?
  var counted = VideoStatistics()

  /// Packets of other streams than `stream` are ignored.
  public init(stream: StreamID = .camera) { self.stream = stream }

  /// Takes in a packet of any layer.
  public mutating func receive(_ packet: RTPPacket, at now: Instant) -> [Output] {
    guard let (stream, layer) = PayloadType.video(of: packet.header.payloadType),
      stream == self.stream, let index = layerIndex(for: packet, layer: layer, at: now)
    else {
      counted.packetsIgnored &+= 1
      return []
    }
    switch layers[index].insert(packet, at: now) {
    case .new: break
    case .recovered: counted.packetsRecovered &+= 1
    case .late: counted.packetsLate &+= 1
    case .unusable: counted.packetsIgnored &+= 1
    }
    counted.packets &+= 1
    counted.bytes &+= UInt64(packet.payload.count)
    var outputs: [Output] = []
    serve(index, at: now, into: &outputs)
    return outputs
  }

  /// Whether packets with this SSRC have arrived.
  public func knows(_ ssrc: UInt32) -> Bool { layers.contains { $0.ssrc == ssrc } }

  /// Takes in the time base of a layer, which may be one that has not begun.
  public mutating func receive(_ report: SenderReport, at now: Instant) {
    if let index = layers.firstIndex(where: { $0.ssrc == report.ssrc }) {
      layers[index].receive(report, at: now)
    } else {
      reports.append(report)
    }
  }

  public mutating func setRoundTrip(_ roundTrip: Duration) {
    self.roundTrip = min(max(roundTrip, .zero), Self.maximumRoundTrip)
  }

  /// One of the sinks needs a keyframe, having opened late or lost its decoder's state. The others
  /// go on with the pictures as they come; a sink asks again while none has come.
  public mutating func requestKeyframe(at now: Instant) -> [Output] {
    guard let index = layers.firstIndex(where: { $0.ssrc == active }),
      layers[index].nextKeyframeRequest(roundTrip: roundTrip, at: now) <= now
    else { return [] }
    var outputs: [Output] = []
    askForKeyframe(index, at: now, into: &outputs)
    return outputs
  }

  public mutating func tick(at now: Instant) -> [Output] {
    var outputs: [Output] = []
    for index in layers.indices {
      guard let wake = wakeAt[index], wake <= now else { continue }
      serve(index, at: now, into: &outputs)
    }
    return outputs
  }

  /// Frames are not expected for a while: the gap until the next is no freeze.
  public mutating func pause() { lastFrame = nil }

  public var deadline: Instant? { wakeAt.reduce(nil) { soonest($0, $1) } }

  public var statistics: VideoStatistics {
    var result = counted
    result.packetsLost = layers.reduce(0) { $0 + $1.statistics.cumulativeLost }
    return result
  }

  /// One block per source heard since the member's video began.
  public mutating func reportBlocks(at now: Instant) -> [ReportBlock] {
    layers.indices.compactMap { index in
      layers[index].statistics.hasReceived ? layers[index].reportBlock(at: now) : nil
    }
  }

  /// Packets waiting for missing ones.
  public var packetsHeld: Int { layers.reduce(0) { $0 + $1.packetsHeld } }

  /// One source per layer; a new one takes the layer over with a keyframe, or after silence.
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

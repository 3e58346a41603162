import MusterBase

/// How much of a video stream a receiver gets: a spatial layer and some of its temporal layers.
///
/// Steps are ordered: temporal layers are dropped before a smaller spatial layer is sent, but the
/// base layer alone, a quarter of the frame rate, is sent of the smallest spatial layer only.
public struct LayerStep: Comparable, Sendable {
  /// The spatial layer; 0 is the smallest.
  public var layer: Int
  /// The number of temporal layers, from the base layer on; 0 for a still every few seconds.
  public var temporalLayers: Int

  /// The least number of temporal layers of a spatial layer above the smallest one.
  private static let leastAboveSmallest = 2
  /// The bitrate of stills in kbit/s: a keyframe of a small picture has 2 to 4 kB.
  private static let stillsBitrate = 8
  /// The bytes of headers in an IP packet of video: IPv4 and UDP 28, data header and tag 29, RTP
  /// 12, payload descriptor 6.
  private static let packetOverhead = 75

  public init(layer: Int, temporalLayers: Int = TemporalLayers.count) {
    self.layer = layer
    self.temporalLayers = temporalLayers
  }

  public static func < (a: LayerStep, b: LayerStep) -> Bool {
    (a.layer, a.temporalLayers) < (b.layer, b.temporalLayers)
  }

  /// The steps up to `highest`, which limits the temporal layers of all; highest first.
  static func steps(upTo highest: LayerStep) -> [LayerStep] {
    (0...highest.layer).reversed().flatMap { layer in
      let least = layer == 0 ? 0 : min(leastAboveSmallest, highest.temporalLayers)
      return (least...highest.temporalLayers).reversed().map {
        LayerStep(layer: layer, temporalLayers: $0)
      }
    }
  }

  /// The frame rate of the step, rounded; 0 for stills.
  func framesPerSecond(of full: Int) -> Int {
    temporalLayers == 0 ? 0 : max(Int((Double(full) / decimator).rounded()), 1)
  }

  /// The bandwidth in kbit/s of IP packets that the step needs while the whole layer is encoded at
  /// a bitrate in kbit/s.
  public func bandwidth(ofLayerAt bitrate: Int, framesPerSecond: Int) -> Int {
    guard temporalLayers > 0 else { return Self.stillsBitrate }
    let payload = Double(bitrate) * share
    let frames = Double(framesPerSecond) / decimator
    return Int((payload + Self.overhead(payload: payload, framesPerSecond: frames)).rounded(.up))
  }

  /// The bitrate in kbit/s at which the whole layer is encoded so that the step fills a bandwidth
  /// in kbit/s of IP packets.
  func bitrate(filling bandwidth: Int, framesPerSecond: Int) -> Int {
    guard temporalLayers > 0 else { return 0 }
    let frames = Double(framesPerSecond) / decimator
    let packet = Double(Limits.rtpPayloadBytes)
    // The overhead is linear in the payload; it cannot be less than a packet for each frame.
    let fixed = Self.overhead(payload: 0, framesPerSecond: frames) / 2
    let many = (Double(bandwidth) - fixed) / (1 + Double(Self.packetOverhead) / packet)
    let few = Double(bandwidth) - 2 * fixed
    return max(Int(min(many, few) / share), 0)
  }

  /// The kbit/s of headers: on average, the last packet of a frame is half full.
  private static func overhead(payload: Double, framesPerSecond: Double) -> Double {
    let packets = payload * 1000 / 8 / Double(Limits.rtpPayloadBytes) + framesPerSecond / 2
    return max(packets, framesPerSecond) * Double(packetOverhead) * 8 / 1000
  }

  private var share: Double { Double(TemporalLayers.cumulativePercent[temporalLayers - 1]) / 100 }
  private var decimator: Double { Double(TemporalLayers.decimators[temporalLayers - 1]) }
}

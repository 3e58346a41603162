import MusterBase
import MusterWire

/// The video streams that this node offers: each is captured once, encoded once per layer and
/// packetised once, for all links.
public struct EncodedStreams: Sendable {
  /// One stream; its counters go on when it is withdrawn and offered again.
  private struct Stream: Sendable {
    var offer: StreamOffer?
    var packetizers: [VideoPacketizer] = []
    var limiters = Array(repeating: KeyframeLimiter(), count: Limits.spatialLayers)
    /// The layers that the host was last told to encode.
    var encoded: [Int] = []
  }

  /// `Limits.videoStreams` at most, by the type of the key.
  private var streams = PeerTable<StreamID, Stream>()
  private var prng: PRNG

  /// `seed` gives the counters of the packetizers their first values.
  public init(seed: UInt64) { prng = PRNG(seed: seed) }

  /// What is on offer, in rising order.
  public var offers: [StreamOffer] { streams.compactMap(\.value.offer) }

  /// Replaces what is on offer; streams without layers count as withdrawn.
  public mutating func set(_ offers: [StreamOffer]) {
    for id in StreamID.all {
      var offer = offers.first { $0.id == id && !$0.layers.isEmpty }
      if let layers = offer?.layers { offer?.layers = Array(layers.prefix(Limits.spatialLayers)) }
      if offer != nil, streams[id] == nil { streams[id] = makeStream() }
      _ = streams.update(id) { $0.offer = offer }
    }
  }

  private mutating func makeStream() -> Stream {
    var stream = Stream()
    for layer in 0..<Limits.spatialLayers {
      stream.packetizers.append(VideoPacketizer(layer: layer, seed: prng.next()))
    }
    return stream
  }

  /// Every stream that was ever offered, in rising order.
  public var ids: [StreamID] { streams.keys }

  /// The layers on offer, smallest first; none for a stream that is not offered.
  public func layers(of stream: StreamID) -> [VideoLayer] { streams[stream]?.offer?.layers ?? [] }

  /// The payloads of a frame; nil for a stream that is not offered, and as `VideoPacketizer` says.
  public mutating func packetize(
    _ frame: EncodedFrame, of stream: StreamID
  ) -> PacketizedFrame? {
    streams.update(stream) { stream in
      guard stream.offer != nil, stream.packetizers.indices.contains(frame.layer) else {
        return nil
      }
      return stream.packetizers[frame.layer].packetize(frame)
    } ?? nil
  }

  /// Sets which layers have to be encoded, smallest first; false when that is nothing new.
  public mutating func setEncoded(_ layers: [Int], of stream: StreamID) -> Bool {
    streams.update(stream) { stream in
      defer { stream.encoded = layers }
      return stream.encoded != layers
    } ?? false
  }

  // MARK: Keyframes, coalesced over all receivers of a layer

  /// True when the encoder is to be asked right now; else `dueKeyframes` will say when.
  public mutating func requestKeyframe(
    of stream: StreamID, layer: Int, at now: Instant
  ) -> Bool {
    streams.update(stream) { stream in
      stream.limiters.indices.contains(layer) && stream.limiters[layer].request(at: now)
    } ?? false
  }

  /// Notes that the encoder made a keyframe.
  public mutating func keyframeSent(of stream: StreamID, layer: Int, at now: Instant) {
    _ = streams.update(stream) { stream in
      if stream.limiters.indices.contains(layer) { stream.limiters[layer].keyframeMade(at: now) }
    }
  }

  /// The layers whose encoders are to be asked for a keyframe now.
  public mutating func dueKeyframes(at now: Instant) -> [(stream: StreamID, layer: Int)] {
    guard let deadline, deadline <= now else { return [] }
    var due: [(stream: StreamID, layer: Int)] = []
    for index in 0..<streams.count {
      for layer in 0..<Limits.spatialLayers where streams[at: index].limiters[layer].tick(at: now) {
        due.append((streams.keys[index], layer))
      }
    }
    return due
  }

  /// When a keyframe that was held back is due.
  public var deadline: Instant? {
    var next: Instant?
    for index in 0..<streams.count {
      for layer in 0..<Limits.spatialLayers {
        next = soonest(next, streams[at: index].limiters[layer].deadline)
      }
    }
    return next
  }
}

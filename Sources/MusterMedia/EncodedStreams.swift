import MusterBase
import MusterWire

/// The video streams that this node offers: each is captured once, encoded once per layer and
/// packetised once, for all links.
public struct EncodedStreams: Sendable {
  /// One stream, whose counters continue if it is withdrawn and offered again.
  private struct Stream: Sendable {
    var offer: StreamOffer?
    /// The bitrates of the offered layers.
    var bitrates: [LayerLadder.Bitrate] = []
    var packetizers: [VideoPacketizer] = []
    var limiters = Array(repeating: KeyframeLimiter(), count: Limits.spatialLayers)
    var caches = Array(repeating: FrameCache(), count: Limits.spatialLayers)
    /// What the host currently encodes.
    var encoded: [EncoderTarget] = []
  }

  /// The streams by id, at most `Limits.videoStreams`, which the key's type ensures.
  private var streams = PeerTable<StreamID, Stream>()
  private var prng: PRNG
  /// The steps that this node has taken while it is short of CPU.
  public var adaptation = CPUAdaptation()

  /// Creates an empty set; `seed` determines the initial PictureID, TL0PICIDX and KEYIDX values.
  public init(seed: UInt64) { prng = PRNG(seed: seed) }

  /// The streams on offer, in ascending order.
  public var offers: [StreamOffer] { streams.compactMap(\.value.offer) }

  /// Replaces the streams on offer; a stream without layers is withdrawn. `cameraBitrate` is the
  /// most that the camera's largest layer may take in kbit/s; nil selects the ladder's maximum.
  public mutating func set(_ offers: [StreamOffer], cameraBitrate: Int? = nil) {
    for id in StreamID.all {
      var offer = offers.first { $0.id == id && !$0.layers.isEmpty }
      if let layers = offer?.layers { offer?.layers = Array(layers.prefix(Limits.spatialLayers)) }
      if offer != nil, streams[id] == nil { streams[id] = makeStream() }
      let layers = offer?.layers ?? []
      let bitrates = LayerLadder.bitrates(
        of: layers.map(\.size), framesPerSecond: layers.last?.framesPerSecond ?? 0,
        cap: id == .camera ? cameraBitrate : nil)
      _ = streams.update(id) { stream in
        // The sizes of the layers may differ.
        if offer != stream.offer { stream.caches = Stream().caches }
        (stream.offer, stream.bitrates) = (offer, bitrates)
      }
    }
  }

  private mutating func makeStream() -> Stream {
    var stream = Stream()
    for layer in 0..<Limits.spatialLayers {
      stream.packetizers.append(VideoPacketizer(layer: layer, seed: prng.next()))
    }
    return stream
  }

  /// All streams offered so far, including withdrawn ones, in ascending order.
  public var ids: [StreamID] { streams.keys }

  /// The layers of a stream, smallest first; empty if it is not offered.
  public func layers(of stream: StreamID) -> [VideoLayer] { streams[stream]?.offer?.layers ?? [] }

  /// The bitrates of a stream's layers, smallest first; empty if it is not offered.
  public func bitrates(of stream: StreamID) -> [LayerLadder.Bitrate] {
    streams[stream]?.bitrates ?? []
  }

  /// The payloads of a frame; nil if the stream is not offered or the frame is not usable (see
  /// `VideoPacketizer`).
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

  /// What the host currently encodes of a stream, smallest layer first.
  public func encoded(of stream: StreamID) -> [EncoderTarget] { streams[stream]?.encoded ?? [] }

  /// Sets what to encode, smallest layer first; false if nothing changes or the stream was never
  /// offered.
  public mutating func setEncoded(_ targets: [EncoderTarget], of stream: StreamID) -> Bool {
    streams.update(stream) { stream in
      defer { stream.encoded = targets }
      return stream.encoded != targets
    } ?? false
  }

  // MARK: Cached frames

  /// Keeps a frame that has been sent for receivers that begin later.
  public mutating func cache(_ frame: PacketizedFrame, of stream: StreamID, at now: Instant) {
    _ = streams.update(stream) { $0.caches[frame.layer].add(frame, at: now) }
  }

  /// The frames with which a receiver of a layer can begin; nil if there are none or they are too
  /// old.
  public func cachedFrames(
    of stream: StreamID, layer: Int, at now: Instant
  ) -> FrameCache.Content? {
    streams.index(of: stream).flatMap { streams[at: $0].caches[layer].content(at: now) }
  }

  // MARK: Coalesced keyframe requests

  /// Requests a keyframe; true if the encoder should produce it now. Otherwise, `dueKeyframes`
  /// grants the request later. See `KeyframeLimiter`.
  public mutating func requestKeyframe(
    of stream: StreamID, layer: Int, isShared: Bool, at now: Instant
  ) -> Bool {
    streams.update(stream) { stream in
      stream.limiters.indices.contains(layer)
        && stream.limiters[layer].request(isShared: isShared, at: now)
    } ?? false
  }

  /// Records that the encoder produced a keyframe.
  public mutating func keyframeSent(of stream: StreamID, layer: Int, at now: Instant) {
    _ = streams.update(stream) { stream in
      if stream.limiters.indices.contains(layer) { stream.limiters[layer].keyframeMade(at: now) }
    }
  }

  /// Grants the deferred keyframe requests that are due, and returns their layers.
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

  /// The time at which the next deferred keyframe request is due; nil if none is deferred.
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

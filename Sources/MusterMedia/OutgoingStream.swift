import MusterBase
import MusterWire

/// One video stream on its way to one receiver: which layer it gets, and a sender for each layer.
public struct OutgoingStream: Sendable {
  public let id: StreamID
  /// The layer that is being sent; nil for none.
  public private(set) var layer: Int?
  /// The layer to change to at its next keyframe; nil for none.
  public private(set) var target: Int?
  /// Why the layer is what it is.
  public private(set) var why = LayerReason.started
  /// Frames sent, and their RTP payload bytes.
  public private(set) var frames: UInt64 = 0
  public private(set) var bytes: UInt64 = 0

  /// The layers on offer when one was last selected.
  private var offered: [VideoLayer] = []
  /// The layer that is being sent, as it was last reported.
  private var reported: VideoLayer?
  /// Why `target` differs from `layer`.
  private var targetWhy = LayerReason.started
  /// One per layer; sequences go on where they were when a layer comes back.
  private var senders: [RTPSender]
  /// Keyframes that the receiver asks for: six at once, then one a second, as many as a receiver
  /// that loses much needs.
  private var keyframeRequests = TokenBucket(capacity: 6, perSecond: 1)

  init(_ id: StreamID, ssrcs: SSRCPlan, prng: inout PRNG) {
    self.id = id
    senders = []
    for layer in 0..<Limits.spatialLayers {
      senders.append(
        RTPSender(
          payloadType: PayloadType.video(id, layer: layer), ssrc: ssrcs.video(id, layer: layer),
          firstSequence: UInt16(truncatingIfNeeded: prng.next()),
          historyCapacity: Limits.retransmissionPackets))
    }
  }

  /// What came of selecting a layer.
  public struct Selection: Equatable, Sendable {
    /// A keyframe of this layer is needed, at which the receiver changes to it.
    public var keyframe: Int?
    /// Nothing is sent any more.
    public var change: LayerChange?
  }

  /// Selects the layer for what the receiver requests, out of `layers`, smallest first; none when
  /// something prevents the stream from being sent.
  public mutating func select(
    _ requested: RequestedResolution, among layers: [VideoLayer], prevented: LayerReason?
  ) -> Selection {
    let isNewSource = layers != offered
    offered = layers
    if isNewSource, layer != nil { targetWhy = .source }
    let off = prevented ?? (layers.isEmpty ? .source : requested.wantsVideo ? nil : .requested)
    if let off {
      target = nil
      return stop(off)
    }
    let choice = LayerChoice.layer(for: requested, among: layers)
    guard choice != target else { return Selection() }
    if layer == nil {
      let isBest = choice == LayerChoice.layer(for: .best, among: layers)
      targetWhy = isBest ? why.onResuming : .requested
    } else if !isNewSource {
      targetWhy = .requested
    }
    target = choice
    return Selection(keyframe: choice)
  }

  private mutating func stop(_ reason: LayerReason) -> Selection {
    why = reason
    guard layer != nil else { return Selection() }
    layer = nil
    defer { reported = nil }
    return Selection(change: LayerChange(from: reported, to: nil, why: reason))
  }

  /// A keyframe of `layer` is about to be sent: if the receiver waits for that layer, it gets it from
  /// here on. Nil when nothing changes.
  public mutating func switchLayer(to layer: Int) -> LayerChange? {
    guard layer == target else { return nil }
    self.layer = layer
    let now = offered.indices.contains(layer) ? offered[layer] : nil
    guard now != reported else { return nil }
    why = targetWhy
    targetWhy = .requested
    defer { reported = now }
    return LayerChange(from: reported, to: now, why: why)
  }

  /// Ends the stream; the change is nil when nothing was sent.
  public mutating func end() -> LayerChange? {
    target = nil
    return stop(.ended).change
  }

  // MARK: Packets

  /// The header of the next packet of the frame's layer, which is remembered for repeats.
  public mutating func send(
    _ payload: [UInt8], of frame: PacketizedFrame, isLast: Bool, at now: Instant
  ) -> RTPHeader {
    bytes &+= UInt64(payload.count)
    if isLast { frames &+= 1 }
    return senders[frame.layer].send(
      payload, marker: isLast, timestamp: frame.timestamp, audioLevel: nil, at: now)
  }

  /// What to send again of what the receiver misses of a layer.
  public mutating func retransmissions(
    of sequences: [UInt16], layer: Int, roundTrip: Duration, at now: Instant
  ) -> [(header: RTPHeader, payload: [UInt8])] {
    guard senders.indices.contains(layer) else { return [] }
    return senders[layer].retransmissions(of: sequences, roundTrip: roundTrip, at: now)
  }

  /// What was sent of the current layer from `start` on and may be repeated.
  public mutating func repeats(
    since start: Instant, roundTrip: Duration, at now: Instant
  ) -> [(header: RTPHeader, payload: [UInt8])] {
    guard let layer else { return [] }
    return retransmissions(
      of: senders[layer].sequences(since: start), layer: layer, roundTrip: roundTrip, at: now)
  }

  /// Whether a keyframe that the receiver asks for is to be made: of the layer that it gets, and
  /// within its budget.
  public mutating func admitsKeyframeRequest(layer: Int, at now: Instant) -> Bool {
    layer == self.layer && keyframeRequests.take(at: now)
  }

  mutating func receive(_ block: ReportBlock, layer: Int, at now: Instant) {
    if senders.indices.contains(layer) { senders[layer].receive(block, at: now) }
  }

  /// The report on the layer that is or will be sent; nil when none is.
  func report(at now: Instant) -> SenderReport? {
    guard let layer = layer ?? target else { return nil }
    let timestamp = RTPTime.timestamp(of: now, clockRate: RTPTime.videoClockRate)
    return senders[layer].report(at: now, timestamp: timestamp)
  }

  /// Of the packets of the current layer, as the receiver reports it; nil while none is sent.
  public var lossPercent: Double? { layer.map { senders[$0].lossPercent } }
}

/// All video streams on their way to one receiver.
///
/// SSRCs and sequences are drawn anew whenever media begins: a receiver that missed the end of the
/// last time would take a new random sequence under an old SSRC for very late packets.
public struct OutgoingStreams: Sendable {
  public let ssrcs: SSRCPlan
  /// Made when the node first offers the stream in this call, as their histories are large;
  /// `Limits.videoStreams` at most.
  private var streams = PeerTable<StreamID, OutgoingStream>()
  private var prng: PRNG

  public init(seed: UInt64) {
    prng = PRNG(seed: seed)
    ssrcs = SSRCPlan(base: UInt32(truncatingIfNeeded: prng.next()))
  }

  /// The streams that were offered since media began, in rising order.
  public var ids: [StreamID] { streams.keys }

  public subscript(id: StreamID) -> OutgoingStream? { streams[id] }

  /// The layer that is being sent of a stream, and the one that it is to change to.
  public func layers(of id: StreamID) -> (current: Int?, target: Int?) {
    guard let index = streams.index(of: id) else { return (nil, nil) }
    return (streams[at: index].layer, streams[at: index].target)
  }

  /// Changes a stream, which is made first where there is none.
  public mutating func withStream<Result>(
    _ id: StreamID, _ body: (inout OutgoingStream) -> Result
  ) -> Result {
    if let index = streams.index(of: id) { return body(&streams[at: index]) }
    var stream = OutgoingStream(id, ssrcs: ssrcs, prng: &prng)
    defer { streams[id] = stream }
    return body(&stream)
  }

  /// Changes a stream in place; nil, and no call, when there is none.
  public mutating func update<Result>(
    _ id: StreamID, _ body: (inout OutgoingStream) -> Result
  ) -> Result? {
    streams.update(id, body)
  }

  /// A report block on one of the streams.
  public mutating func receive(_ block: ReportBlock, at now: Instant) {
    guard let (id, layer) = ssrcs.video(of: block.ssrc) else { return }
    _ = streams.update(id) { $0.receive(block, layer: layer, at: now) }
  }

  /// One report for each stream that is being sent.
  public func reports(at now: Instant) -> [SenderReport] {
    streams.compactMap { $0.value.report(at: now) }
  }
}

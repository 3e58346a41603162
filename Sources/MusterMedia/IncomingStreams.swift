import MusterBase
import MusterWire

/// One video stream of one sender: its receiver, and the layer that is being received.
public struct IncomingStream: Sendable {
  /// Assembles the stream's frames.
  public fileprivate(set) var receiver: VideoReceiver
  /// The layer of the newest frame; nil before the first frame and while no frames are expected.
  public private(set) var layer: VideoLayer?
  /// The reason for the current layer.
  public private(set) var why = LayerReason.started

  private var hasShown = false
  /// The sender's offer; nil before the first one.
  private var offer: StreamOffer?
  /// The reason why the stream is off and no frames are expected, such as a muted camera; nil while
  /// the stream is on.
  private var off: LayerReason?
  /// What the sender says that it sends; nil before it says so, and while no frames are expected.
  private var sent: SentLayer?

  init(_ id: StreamID) { receiver = VideoReceiver(stream: id) }

  /// Whether the sender has withdrawn its offer of the stream; `newest` is the newest offer, if
  /// any.
  func isWithdrawn(by newest: StreamOffer?) -> Bool { offer != nil && newest == nil }

  /// Sets the conditions for expecting frames: the sender's offer, this node's request,
  /// and whether the sender's role allows the stream. Returns a change only if the
  /// current layer ends.
  mutating func expect(
    _ newest: StreamOffer?, _ request: VideoRequest, isAllowed: Bool
  ) -> LayerChange? {
    offer = newest
    let wasOff = off != nil
    off =
      !isAllowed
      ? .role
      : !request.wantsVideo
        ? request.why
        : newest.map { $0.isMuted ? .muted : $0.layers.isEmpty ? .source : nil } ?? nil
    guard let off else { return nil }
    // Whatever is sent from here on has another reason.
    if !wasOff { sent = nil }
    receiver.pause()
    return end(off)
  }

  /// Takes what the sender says that it sends. Returns a change only if the current layer ends, or
  /// its frame rate changes; a layer of another size begins with its first frame.
  mutating func receive(_ sent: SentLayer) -> LayerChange? {
    self.sent = sent
    guard off == nil else { return nil }
    guard let newest = sent.layer else {
      receiver.pause()
      return end(sent.why)
    }
    receiver.expect(framesPerSecond: newest.framesPerSecond)
    guard newest.size == layer?.size else { return nil }
    return change(to: newest, why: sent.why)
  }

  /// Ends the current layer; returns nil if no layer is current.
  mutating func end(_ reason: LayerReason) -> LayerChange? {
    why = reason
    guard let layer else { return nil }
    self.layer = nil
    return LayerChange(from: layer, to: nil, why: reason)
  }

  /// The result of `show`: whether the frame is the first, and the change of layer that it brings.
  public struct Showing: Equatable, Sendable {
    /// Whether the frame is the stream's first.
    public var isFirst: Bool
    /// The change of layer; nil if the layer stays the same.
    public var change: LayerChange?
  }

  /// Prepares to show a frame.
  public mutating func show(_ frame: ReceivedFrame) -> Showing {
    defer { hasShown = true }
    return Showing(isFirst: !hasShown, change: layerChange(to: frame.size))
  }

  /// Returns the change if a frame is the first of the layer that the sender says it sends. Frames
  /// still in flight while no frames are expected cause no change.
  private mutating func layerChange(to size: VideoSize) -> LayerChange? {
    guard off == nil, size != layer?.size, let sent, let newest = sent.layer, newest.size == size
    else { return nil }
    return change(to: newest, why: sent.why)
  }

  /// Makes a layer the current one; returns nil if it is already.
  private mutating func change(to newest: VideoLayer, why: LayerReason) -> LayerChange? {
    self.why = why
    guard newest != layer else { return nil }
    defer { layer = newest }
    return LayerChange(from: layer, to: newest, why: why)
  }
}

/// All video streams of one sender.
public struct IncomingStreams: Sendable {
  /// An output of one stream's receiver: a NACK, a PLI or a delivered frame.
  public typealias Output = (stream: StreamID, output: VideoReceiver.Output)

  /// The streams, each created at its first packet, offer or sent layer; at most
  /// `Limits.videoStreams`.
  private var streams = PeerTable<StreamID, IncomingStream>()
  private var roundTrip: Duration?
  private var audioDelay: Duration?
  /// The newest sender reports on SSRCs without packets so far, for streams that begin later.
  private var reports = RingBuffer<SenderReport>(capacity: 2 * Limits.videoStreams)

  /// Creates an empty set of streams.
  public init() {}

  /// The streams that exist, in ascending order.
  public var ids: [StreamID] { streams.keys }

  /// The stream; nil if there was no packet, offer or sent layer.
  public subscript(id: StreamID) -> IncomingStream? { streams[id] }

  /// The packet and frame statistics of each stream, in the order of `ids`.
  public func statistics(at now: Instant) -> [VideoStatistics] {
    (0..<streams.count).map { streams[at: $0].receiver.statistics(at: now) }
  }

  /// Handles a packet of any stream and layer.
  public mutating func receive(
    _ packet: RTPPacket, of id: StreamID, at now: Instant
  ) -> [VideoReceiver.Output] {
    begin(id, at: now)
    return streams.update(id) { $0.receiver.receive(packet, at: now) } ?? []
  }

  private mutating func begin(_ id: StreamID, at now: Instant) {
    guard streams.index(of: id) == nil else { return }
    var stream = IncomingStream(id)
    if let roundTrip { stream.receiver.setRoundTrip(roundTrip) }
    stream.receiver.audioDelay = audioDelay
    for index in 0..<reports.count { stream.receiver.receive(reports[index], at: now) }
    streams[id] = stream
  }

  /// Handles a sender report on one of the layers.
  public mutating func receive(_ report: SenderReport, at now: Instant) {
    for index in 0..<streams.count where streams[at: index].receiver.knows(report.ssrc) {
      streams[at: index].receiver.receive(report, at: now)
      return
    }
    for index in 0..<streams.count { streams[at: index].receiver.receive(report, at: now) }
    reports.append(report)
  }

  /// Sets the path's round trip, which paces the NACKs and PLIs of all streams.
  public mutating func setRoundTrip(_ roundTrip: Duration) {
    self.roundTrip = roundTrip
    for index in 0..<streams.count { streams[at: index].receiver.setRoundTrip(roundTrip) }
  }

  /// Sets the time from the capture of the sender's audio, on its media clock, to its playout on
  /// this node's clock, for lip sync.
  public mutating func setAudioDelay(_ delay: Duration) {
    audioDelay = delay
    for index in 0..<streams.count { streams[at: index].receiver.audioDelay = delay }
  }

  /// The delay that the member's audio needs in order not to be far ahead of its video.
  public func neededAudioDelay(at now: Instant) -> Duration {
    var longest = Duration.zero
    for index in 0..<streams.count {
      longest = max(longest, streams[at: index].receiver.neededAudioDelay(at: now))
    }
    return longest
  }

  /// Updates a stream with the sender's current offer, this node's requested resolution, and
  /// whether the sender's role allows the stream. Removes a stream whose offer the sender has
  /// withdrawn (`hasEnded` is then true); later packets create it again.
  public mutating func expect(
    _ id: StreamID, _ offer: StreamOffer?, _ requested: VideoRequest, isAllowed: Bool,
    at now: Instant
  ) -> (change: LayerChange?, hasEnded: Bool) {
    if offer != nil { begin(id, at: now) }
    guard let index = streams.index(of: id) else { return (nil, false) }
    if streams[at: index].isWithdrawn(by: offer) {
      let change = streams[at: index].end(.source)
      streams[id] = nil
      return (change, true)
    }
    return (streams[at: index].expect(offer, requested, isAllowed: isAllowed), false)
  }

  /// Takes what the sender says that it sends of a stream. Returns a change if the stream's layer
  /// ends, or its frame rate changes.
  public mutating func receive(_ sent: SentLayer, at now: Instant) -> LayerChange? {
    if sent.layer != nil { begin(sent.stream, at: now) }
    return streams.update(sent.stream) { $0.receive(sent) } ?? nil
  }

  /// Prepares to show a frame of a stream; nil if the stream does not exist.
  public mutating func show(_ frame: ReceivedFrame, of id: StreamID) -> IncomingStream.Showing? {
    streams.update(id) { $0.show(frame) }
  }

  /// Ends a stream because one side has left the call.
  public mutating func end(_ id: StreamID) -> LayerChange? {
    streams.update(id) { $0.end(.ended) } ?? nil
  }

  /// Requests a keyframe of a stream because a sink cannot decode without one.
  public mutating func requestKeyframe(
    of id: StreamID, at now: Instant
  ) -> [VideoReceiver.Output] {
    streams.update(id) { $0.receiver.requestKeyframe(at: now) } ?? []
  }

  /// Returns the NACKs, PLIs and frames that are due.
  public mutating func tick(at now: Instant) -> [Output] {
    var outputs: [Output] = []
    for index in 0..<streams.count {
      guard let due = streams[at: index].receiver.deadline, due <= now else { continue }
      let id = streams.keys[index]
      outputs += streams[at: index].receiver.tick(at: now).map { (id, $0) }
    }
    return outputs
  }

  /// The time at which `tick` next has work.
  public var deadline: Instant? {
    var next: Instant?
    for index in 0..<streams.count { next = soonest(next, streams[at: index].receiver.deadline) }
    return next
  }

  /// Creates one report block for each layer that has been received since media began.
  public mutating func reportBlocks(at now: Instant) -> [ReportBlock] {
    var blocks: [ReportBlock] = []
    for index in 0..<streams.count {
      blocks += streams[at: index].receiver.reportBlocks(at: now)
    }
    return blocks
  }
}

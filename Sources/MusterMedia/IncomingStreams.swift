import MusterBase
import MusterWire

/// One video stream of one sender as this node follows it: its frames, and the layer that they are of.
public struct IncomingStream: Sendable {
  public fileprivate(set) var receiver: VideoReceiver
  /// The layer of the newest frame; nil before the first, and while none is expected.
  public private(set) var layer: VideoLayer?
  /// Why the layer is what it is.
  public private(set) var why = LayerReason.started

  private var lipSync = LipSync()
  private var hasShown = false
  /// What the sender announces.
  private var offer: StreamOffer?
  /// Why no frames are expected; nil while they are.
  private var off: LayerReason?
  private var requested = RequestedResolution.best
  /// Why the next layer will differ from the present one.
  private var nextWhy = LayerReason.started

  init(_ id: StreamID) { receiver = VideoReceiver(stream: id) }

  /// Whether the sender has announced the stream and does so no more.
  func isWithdrawn(by newest: StreamOffer?) -> Bool { offer != nil && newest == nil }

  /// What determines whether frames can be expected: the sender's announcement, what this node
  /// requests, and whether the sender's role allows the stream. The change is nil unless it ends
  /// the present layer.
  mutating func expect(
    _ newest: StreamOffer?, _ request: RequestedResolution, isAllowed: Bool
  ) -> LayerChange? {
    if newest?.layers != offer?.layers, layer != nil { nextWhy = .source }
    if request != requested, layer != nil { nextWhy = .requested }
    offer = newest
    requested = request
    let before = off
    off =
      !isAllowed
      ? .role
      : !request.wantsVideo
        ? .requested : newest.map { $0.isMuted ? .muted : $0.layers.isEmpty ? .source : nil } ?? nil
    guard let off else {
      if let before { nextWhy = before.onResuming }
      return nil
    }
    receiver.pause()
    return end(off)
  }

  /// The stream shows nothing any more; nil when it showed nothing.
  mutating func end(_ reason: LayerReason) -> LayerChange? {
    why = reason
    guard let layer else { return nil }
    self.layer = nil
    return LayerChange(from: layer, to: nil, why: reason)
  }

  /// What a frame that is about to be shown changes.
  public struct Showing: Equatable, Sendable {
    public var isFirst: Bool
    public var change: LayerChange?
    /// How long the frame waits for the audio that belongs to it.
    public var delay: Duration
  }

  /// `audioDelay` is the time from capture until the sender's audio leaves the loudspeaker; nil
  /// without audio.
  public mutating func show(
    _ frame: ReceivedFrame, audioDelay: Duration?, at now: Instant
  ) -> Showing {
    defer { hasShown = true }
    var delay = Duration.zero
    if let capturedAt = frame.capturedAt {
      delay = lipSync.videoDelay(
        audioDelay: audioDelay, videoDelay: now - capturedAt, at: now)
    }
    return Showing(isFirst: !hasShown, change: layerChange(to: frame.size), delay: delay)
  }

  /// A frame of a layer other than the present one; those still under way while none are expected
  /// change nothing.
  private mutating func layerChange(to size: VideoSize) -> LayerChange? {
    guard off == nil, size != layer?.size else { return nil }
    let rate = offer?.layers.first { $0.size == size }?.framesPerSecond ?? 0
    let newest = VideoLayer(size: size, framesPerSecond: rate)
    let best = offer?.layers.max { $0.size.pixels < $1.size.pixels }
    let isBest = best.map { size.pixels >= $0.size.pixels } ?? true
    why = layer == nil && !isBest && requested != .best ? .requested : nextWhy
    nextWhy = .requested
    defer { layer = newest }
    return LayerChange(from: layer, to: newest, why: why)
  }
}

/// All video streams of one sender.
public struct IncomingStreams: Sendable {
  /// What the receiver of one stream asks for.
  public typealias Output = (stream: StreamID, output: VideoReceiver.Output)

  /// Made at the first packet or announcement; `Limits.videoStreams` at most.
  private var streams = PeerTable<StreamID, IncomingStream>()
  private var roundTrip: Duration?
  /// Reports on streams that have not begun: the last two of each at most.
  private var reports = RingBuffer<SenderReport>(capacity: 2 * Limits.videoStreams)

  public init() {}

  /// The streams that have begun, in rising order.
  public var ids: [StreamID] { streams.keys }

  public subscript(id: StreamID) -> IncomingStream? { streams[id] }

  /// Takes in a packet of any stream and layer.
  public mutating func receive(
    _ packet: RTPPacket, of id: StreamID, at now: Instant
  ) -> [VideoReceiver.Output] {
    begin(id, at: now)
    return streams.update(id) { $0.receiver.receive(packet, at: now) } ?? []
  }

  private mutating func begin(_ id: StreamID, at now: Instant) {
    guard streams[id] == nil else { return }
    var stream = IncomingStream(id)
    if let roundTrip { stream.receiver.setRoundTrip(roundTrip) }
    for index in 0..<reports.count { stream.receiver.receive(reports[index], at: now) }
    streams[id] = stream
  }

  /// Takes in the time base of one of the sender's layers.
  public mutating func receive(_ report: SenderReport, at now: Instant) {
    for index in 0..<streams.count where streams[at: index].receiver.knows(report.ssrc) {
      streams[at: index].receiver.receive(report, at: now)
      return
    }
    for index in 0..<streams.count { streams[at: index].receiver.receive(report, at: now) }
    reports.append(report)
  }

  public mutating func setRoundTrip(_ roundTrip: Duration) {
    self.roundTrip = roundTrip
    for index in 0..<streams.count { streams[at: index].receiver.setRoundTrip(roundTrip) }
  }

  /// What the announcement, the requests and the sender's role say of a stream. A stream that was
  /// announced and is so no more ends: it begins anew when frames of it come again.
  public mutating func expect(
    _ id: StreamID, _ offer: StreamOffer?, _ requested: RequestedResolution, isAllowed: Bool,
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

  /// Takes note of a frame that is about to be shown.
  public mutating func show(
    _ frame: ReceivedFrame, of id: StreamID, audioDelay: Duration?, at now: Instant
  ) -> IncomingStream.Showing? {
    streams.update(id) { $0.show(frame, audioDelay: audioDelay, at: now) }
  }

  /// Ends a stream because media with the sender ends.
  public mutating func end(_ id: StreamID) -> LayerChange? {
    streams.update(id) { $0.end(.ended) } ?? nil
  }

  /// One of the sinks needs a keyframe of a stream.
  public mutating func requestKeyframe(
    of id: StreamID, at now: Instant
  ) -> [VideoReceiver.Output] {
    streams.update(id) { $0.receiver.requestKeyframe(at: now) } ?? []
  }

  public mutating func tick(at now: Instant) -> [Output] {
    var outputs: [Output] = []
    for index in 0..<streams.count {
      guard let due = streams[at: index].receiver.deadline, due <= now else { continue }
      let id = streams.keys[index]
      outputs += streams[at: index].receiver.tick(at: now).map { (id, $0) }
    }
    return outputs
  }

  public var deadline: Instant? {
    var next: Instant?
    for index in 0..<streams.count { next = soonest(next, streams[at: index].receiver.deadline) }
    return next
  }

  /// One block for each layer that has been received since media began.
  public mutating func reportBlocks(at now: Instant) -> [ReportBlock] {
    var blocks: [ReportBlock] = []
    for index in 0..<streams.count {
      blocks += streams[at: index].receiver.reportBlocks(at: now)
    }
    return blocks
  }
}

import MusterBase
import MusterWire

/// All video streams to one receiver.
///
/// New SSRCs and sequence numbers are drawn whenever media begins. If an SSRC were reused, a
/// receiver that missed the end of the previous call would take the new sequence for very late
/// packets.
public struct OutgoingStreams: Sendable {
  /// The SSRCs of the streams on this link.
  public let ssrcs: SSRCPlan
  /// The streams, each created when the node first offers it in this call, because the
  /// retransmission histories are large; at most `Limits.videoStreams`.
  private var streams = PeerTable<StreamID, OutgoingStream>()
  private var prng: PRNG

  /// Creates an empty set; SSRCs and first sequence numbers are drawn from the seed.
  public init(seed: UInt64) {
    prng = PRNG(seed: seed)
    ssrcs = SSRCPlan(base: UInt32(truncatingIfNeeded: prng.next()))
  }

  /// The streams offered since media began, in ascending order.
  public var ids: [StreamID] { streams.keys }

  /// A stream; nil if it has not been offered.
  public subscript(id: StreamID) -> OutgoingStream? { streams[id] }

  /// The layer of a stream that is being sent, and its target layer.
  public func layers(of id: StreamID) -> (current: Int?, target: Int?) {
    guard let index = streams.index(of: id) else { return (nil, nil) }
    return (streams[at: index].current?.layer, streams[at: index].target?.layer)
  }

  /// Whether the receiver of a stream gets nothing before a keyframe, since frames were left out.
  public func owesKeyframe(of id: StreamID) -> Bool {
    streams.index(of: id).map { streams[at: $0].owesKeyframe } ?? false
  }

  /// Modifies a stream, which is created if necessary.
  public mutating func withStream<Result>(
    _ id: StreamID, _ body: (inout OutgoingStream) -> Result
  ) -> Result {
    if let index = streams.index(of: id) { return body(&streams[at: index]) }
    var stream = OutgoingStream(id, ssrcs: ssrcs, prng: &prng)
    defer { streams[id] = stream }
    return body(&stream)
  }

  /// Modifies a stream in place; returns nil without calling `body` if the stream does not exist.
  public mutating func update<Result>(
    _ id: StreamID, _ body: (inout OutgoingStream) -> Result
  ) -> Result? {
    streams.update(id, body)
  }

  /// Lets all streams change to higher steps at once, since they take another path.
  public mutating func pathChanged() {
    for index in 0..<streams.count { streams[at: index].pathChanged() }
  }

  /// Handles a report block about one of the streams.
  @discardableResult
  public mutating func receive(
    _ block: ReportBlock, at now: Instant
  ) -> (expected: Int, lost: Int)? {
    guard let (id, layer) = ssrcs.video(of: block.ssrc) else { return nil }
    return streams.update(id) { $0.receive(block, layer: layer, at: now) } ?? nil
  }

  /// The number of RTP payload bytes of all streams since media began, excluding retransmissions.
  public var bytes: UInt64 { streams.reduce(0) { $0 &+ $1.value.bytes } }

  /// The number of retransmissions of all streams since media began.
  public var packetsRepeated: UInt64 { streams.reduce(0) { $0 &+ $1.value.packetsRepeated } }

  /// Creates a sender report for each stream that is being sent.
  public func reports(at now: Instant) -> [SenderReport] {
    streams.compactMap { $0.value.report(at: now) }
  }
}

import MusterBase
import MusterWire

/// The growth of the transit time of RTP since the last report. The transit time, from sampling to
/// arrival, is relative to a reference packet, so that the clocks of both ends need not agree.
struct TransitGrowth: Sendable {
  /// The growth that calls for an early report; packets of a frame and capture times vary by less.
  static let limit = Duration.milliseconds(25)
  /// The growth between two packets from which the sender has paused, as when it was muted.
  private static let pause = Duration.seconds(1)
  /// The SSRCs that are watched at once: audio, and the layers that a receiver has on the way.
  private static let streamLimit = 8

  private struct Stream {
    var timestamp: UInt32
    var arrivedAt: Instant
    var growth = Duration.zero
  }

  private var streams = PeerTable<UInt32, Stream>()

  /// Adds a packet. Returns whether the transit time has grown beyond `limit` since the last
  /// report; only the first packet with a timestamp counts, since the others of a frame follow it,
  /// and so may retransmissions.
  mutating func add(_ header: RTPHeader, at now: Instant) -> Bool {
    guard let index = streams.index(of: header.ssrc) else {
      if streams.count >= Self.streamLimit { streams = PeerTable() }
      streams[header.ssrc] = Stream(timestamp: header.timestamp, arrivedAt: now)
      return false
    }
    let ticks = Int64(Int32(bitPattern: header.timestamp &- streams[at: index].timestamp))
    guard ticks > 0 else { return false }
    let rate: Int64 = PayloadType.isAudio(header.payloadType) ? 48_000 : 90_000
    let change =
      now - streams[at: index].arrivedAt - .nanoseconds(ticks * 1_000_000_000 / rate)
    streams[at: index].timestamp = header.timestamp
    streams[at: index].arrivedAt = now
    guard change < Self.pause else {
      streams[at: index].growth = .zero
      return false
    }
    streams[at: index].growth = streams[at: index].growth + change
    return streams[at: index].growth > Self.limit
  }

  /// Takes the latest packets as the reference.
  mutating func reported() {
    for index in 0..<streams.count { streams[at: index].growth = .zero }
  }
}

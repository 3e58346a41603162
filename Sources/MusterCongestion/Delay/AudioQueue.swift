import MusterBase

/// Finds out whether a path has a queue of its own for audio, which then overtakes video, as Wi-Fi
/// has for marked packets (WMM).
///
/// The delay of audio says nothing there of the queue in which video waits; and as video that was
/// overtaken belongs to no group of packets any more, nothing else would.
package struct AudioQueue: Sendable {
  /// The time by which video arrives later than audio that was sent after it: more than in networks
  /// that reorder by chance.
  static let margin = Duration.milliseconds(5)
  /// The time without overtaken packets after which the path may have changed.
  static let memory = Duration.seconds(10)
  /// The time without video, longer than between its frames, after which its queue is taken to be
  /// empty, and audio shows as much as is to be seen.
  static let pause = Duration.milliseconds(150)

  /// The last audio that has arrived.
  private var audio: (sentAt: Instant, arrivedAt: Instant)?
  /// The times of the last reports on overtaken video, and on any.
  private var overtookAt: Instant?
  private var videoAt: Instant?

  package init() {}

  /// Takes what a report says has arrived, in the order of arrival.
  package mutating func update(_ arrivals: [PacketResult], at now: Instant) {
    for packet in arrivals {
      guard let arrivedAt = packet.arrivedAt else { continue }
      switch packet.serviceClass {
      case .standard: break
      case .audio: audio = (packet.sentAt, arrivedAt)
      case .video:
        videoAt = now
        guard let audio, audio.sentAt > packet.sentAt, arrivedAt - audio.arrivedAt > Self.margin
        else { continue }
        overtookAt = now
      }
    }
  }

  /// The packets whose delay shows the queue in which video waits.
  package func delayed(_ results: [PacketResult], at now: Instant) -> [PacketResult] {
    guard let overtookAt, let videoAt, now - overtookAt < Self.memory, now - videoAt < Self.pause
    else { return results }
    return results.filter { $0.serviceClass != .audio }
  }
}

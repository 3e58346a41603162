import MusterBase
import MusterLink
import MusterMedia
import MusterWire

/// The measurement of round trips: each path is pinged over one of the associations that use the
/// path.
extension Node {
  /// Pings the paths whose measurement is due.
  mutating func pingDuePaths(at now: Instant, _ out: inout [Output]) {
    for path in links.paths.duePings(at: now) {
      let users = associations.peers.keys.filter {
        $0.peer == path.peer && self.path(of: $0) == path
      }
      let inCall = users.filter { media.isActive($0) }
      guard let link = inCall.first ?? users.first else {
        links.paths.schedulePing(path, at: nil)
        continue
      }
      let interval =
        inCall.isEmpty ? configuration.idlePingInterval : configuration.pingInterval
      links.paths.schedulePing(path, at: now + interval)
      sendPing(over: link, at: now, &out)
    }
  }

  /// Sends a ping, together with subscriptions that are due. The token of the ping is its send time
  /// in nanoseconds, which the peer returns in its pong.
  mutating func sendPing(over link: LinkID, at now: Instant, _ out: inout [Output]) {
    let ping = Control.ping(UInt64(bitPattern: now.nanoseconds))
    send([ping] + media.dueRepetitions(over: link, at: now), over: link, at: now, &out)
  }

  /// Schedules a ping of a link's path for the next tick.
  mutating func pingSoon(_ link: LinkID, at now: Instant) {
    if let path = path(of: link) { links.paths.schedulePing(path, at: now) }
  }

  /// Schedules a ping of the path that a link begins to use, unless the path has been measured and
  /// has a scheduled ping.
  mutating func pingIfUnmeasured(_ link: LinkID, at now: Instant) {
    guard let path = path(of: link), let state = links.paths[path],
      state.roundTrip == nil || state.nextPingAt == nil
    else { return }
    links.paths.schedulePing(path, at: now)
  }

  /// Measures the round trip of a path; the token of a pong is the send time of its ping in
  /// nanoseconds.
  mutating func receivePong(_ token: UInt64, _ path: PathID, at now: Instant) {
    let sentAt = Instant(nanoseconds: Int64(bitPattern: token))
    links.paths.receivePong(path, sentAt: sentAt, at: now)
    roundTripChanged(of: path)
  }

  /// Handles congestion feedback of a peer. It measures the round trip, too: every 100 ms with
  /// video and every 250 ms with audio alone, while pings are sent once a second.
  mutating func receiveFeedback(
    _ payload: [UInt8], over session: SessionLinkID, arrivedAt: Instant, at now: Instant,
    _ out: inout [Output]
  ) {
    let reports = congestion.reported(payload, on: session, arrivedAt: arrivedAt, at: now)
    for (path, roundTrip) in reports {
      if let roundTrip {
        links.paths.measured(path, roundTrip)
        roundTripChanged(of: path)
      }
      updateBandwidth(of: path, at: now, &out)
    }
  }

  private mutating func roundTripChanged(of path: PathID) {
    guard let roundTrip = links.paths.answerTime(path) else { return }
    for link in peers.keys where link.peer == path.peer { media.setRoundTrip(roundTrip, of: link) }
  }
}

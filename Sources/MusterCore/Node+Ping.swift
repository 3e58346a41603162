import MusterBase
import MusterWire

/// The pings that the host requests, in addition to the pings that measure the paths.
extension Node {
  /// Sends a ping over the link to a member, if there is a link; the reply is reported as
  /// `NodeEvent.pong`. Each link has at most one pending ping, which a second call replaces.
  public mutating func ping(
    _ member: NodeID, in channel: ChannelID, at now: Instant
  ) -> [Output] {
    for link in pendingPings.keys where peers[link] == nil { pendingPings[link] = nil }
    let link = LinkID(channel: channel, peer: member)
    guard peers[link] != nil else { return [] }
    let token = UInt64(bitPattern: now.nanoseconds)
    pendingPings[link] = token
    var out: [Output] = []
    send([.ping(token)], over: link, at: now, &out)
    return out
  }

  /// Emits `NodeEvent.pong` for a reply that arrived over `route`, if it answers the pending ping
  /// of the link. The token is the send time of that ping in nanoseconds.
  mutating func reportPong(
    _ token: UInt64, over link: LinkID, _ route: Route, at now: Instant, _ out: inout [Output]
  ) {
    guard pendingPings[link] == token else { return }
    pendingPings[link] = nil
    let sentAt = Instant(nanoseconds: Int64(bitPattern: token))
    out.append(.event(.pong(link.peer, roundTrip: now - sentAt, over: route), in: link.channel))
  }
}

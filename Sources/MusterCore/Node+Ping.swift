import MusterBase
import MusterWire

/// Round trips that a person asked for, beside the pings that every link sends by itself.
extension Node {
  /// Sends a ping over the link to a member; its answer comes as `NodeEvent.pong`, or not at all.
  ///
  /// Nothing is sent without a link. One ping is under way on each link: a second one replaces it.
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

  /// Reports the answer to a ping of `ping(_:in:at:)`, and the path over which it came; the token
  /// is the time at which the ping was sent.
  mutating func reportPong(
    _ token: UInt64, over link: LinkID, _ route: Route, at now: Instant, _ out: inout [Output]
  ) {
    guard pendingPings[link] == token else { return }
    pendingPings[link] = nil
    let sentAt = Instant(nanoseconds: Int64(bitPattern: token))
    out.append(.event(.pong(link.peer, roundTrip: now - sentAt, over: route), in: link.channel))
  }
}

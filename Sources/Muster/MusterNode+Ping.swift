import MusterBase
import MusterChannel
import MusterCore

/// A member's answer to a ping over the link in `channel`.
struct Pong: Sendable {
  var channel: ChannelID
  var roundTrip: Duration
  /// The route over which the answer arrived.
  var route: Route
}

/// A `ping` request that is waiting for the answers of one member.
struct PongListener {
  var id: Int
  var member: NodeID
  var answers: AsyncStream<Pong>.Continuation
}

/// The implementation of `muster ping`: one round trip over every link to a member.
extension MusterNode {
  /// The timeout for answers: twice the longest round trip that the link engine measures (1 s).
  private static let pongPatience = Duration.seconds(2)
  /// The maximum number of concurrent pings, each of which holds a connection of the control
  /// socket.
  private static let pongListenerLimit = 16

  /// Measures the round-trip times to a member over its links in one channel or in all; waits up to
  /// 2 s. The member is identified by id, key or name, or by the beginning of an id or name.
  public func ping(_ text: String, in name: String? = nil) async throws(MusterError) -> PingReply {
    var channels = node.channelIDs
    if let name { channels = [try channel(named: name)] }
    let member = try member(beginning: text, in: channels)
    guard pongListeners.count < Self.pongListenerLimit else {
      throw MusterError("too many pings at once", hint: "try again in a moment")
    }
    var waiting = node.statistics(at: now).filter { link in
      link.link.peer == member.id && channels.contains(link.link.channel)
    }
    guard !waiting.isEmpty else {
      throw MusterError(
        "there is no link to \(member.name)", hint: "it is known through other members only")
    }
    let (answers, sink) = AsyncStream<Pong>.makeStream(
      bufferingPolicy: .bufferingOldest(waiting.count))
    let listener = (pongListeners.map(\.id).max() ?? 0) + 1
    pongListeners.append(PongListener(id: listener, member: member.id, answers: sink))
    for link in waiting { perform(node.ping(member.id, in: link.link.channel, at: now)) }
    let timeout = Task {
      try await Task.sleep(for: Self.pongPatience)
      sink.finish()
    }
    var paths: [PingReply.Path] = []
    for await pong in answers {
      guard let index = waiting.firstIndex(where: { $0.link.channel == pong.channel }) else {
        continue
      }
      waiting.remove(at: index)
      paths.append(
        path(
          pong.route.address, via: pong.route.relay, in: pong.channel,
          rttMs: pong.roundTrip.inMilliseconds))
      if waiting.isEmpty { break }
    }
    timeout.cancel()
    pongListeners.removeAll { $0.id == listener }
    for peer in waiting {
      let address = peer.via == nil ? peer.address : nil
      paths.append(path(address, via: peer.via, in: peer.link.channel, rttMs: nil))
    }
    return PingReply(member: member.id.short, name: member.name, paths: paths)
  }

  private func path(
    _ address: Address?, via relay: NodeID?, in channel: ChannelID, rttMs: Double?
  ) -> PingReply.Path {
    PingReply.Path(
      channel: node.name(of: channel) ?? "", address: address?.description, via: relay?.short,
      viaName: relay.flatMap { node.member($0, of: channel)?.name }, rttMs: rttMs)
  }

  func noticePong(of member: NodeID, _ pong: Pong) {
    for listener in pongListeners where listener.member == member {
      listener.answers.yield(pong)
    }
  }

  /// The member with this id, key or name, or else the only member whose id or name begins with
  /// `text`; throws unless exactly one member matches.
  private func member(
    beginning text: String, in channels: [ChannelID]
  ) throws(MusterError) -> Member {
    let shown = DisplayText.sanitized(text, limit: 64)
    guard !text.isEmpty else {
      throw MusterError("which member", hint: "name it by id or name", kind: .usage)
    }
    var known: [Member] = []
    for member in channels.flatMap({ node.members(of: $0) })
    where !known.contains(where: { $0.id == member.id }) {
      known.append(member)
    }
    let isID = Hex.isID(text)
    let exact = known.filter { isID ? $0.id.isNamed(by: text) : $0.name == text }
    let prefixed = known.filter { $0.id.key.hex.hasPrefix(text) || $0.name.hasPrefix(text) }
    let found = isID || !exact.isEmpty ? exact : prefixed
    guard let only = found.first else {
      throw MusterError("no member \(shown) is here", hint: "see muster channel show")
    }
    guard found.count == 1 else {
      throw MusterError(
        "\(shown) may be any of "
          + found.map { "\($0.name) (\($0.id.short))" }.joined(separator: ", "),
        hint: "name one by its id", kind: .usage)
    }
    return only
  }
}

import MusterBase
import MusterChannel
import MusterCore

/// Who waits for answers of one member to a ping.
struct PongListener {
  var id: Int
  var member: NodeID
  var answers: AsyncStream<(channel: ChannelID, roundTrip: Duration)>.Continuation
}

/// `muster ping`: one round trip over every link to a member.
extension MusterNode {
  /// An answer that is not here by then is lost: the round trip of a bad mobile network twice.
  private static let pongPatience = Duration.seconds(2)
  /// Questions at once: each holds a connection of the control socket.
  private static let pongListenerLimit = 16

  /// Measures the round trip to a member, named by id, key or name or the beginning of an id or
  /// name, in one channel or in all that it is in; waits up to 2 s.
  public func ping(_ text: String, in name: String? = nil) async throws(MusterError) -> PingReply {
    var channels = node.channelIDs
    if let name { channels = [try channel(named: name)] }
    let member = try member(beginning: text, in: channels)
    guard pongListeners.count < Self.pongListenerLimit else {
      throw MusterError("too many pings at once", hint: "try again in a moment")
    }
    var waiting = node.statistics().filter { link in
      link.link.peer == member.id && channels.contains(link.link.channel)
    }
    guard !waiting.isEmpty else {
      throw MusterError(
        "there is no link to \(member.name)", hint: "it is known through other members only")
    }
    let (answers, sink) = AsyncStream<(channel: ChannelID, roundTrip: Duration)>.makeStream(
      bufferingPolicy: .bufferingOldest(waiting.count))
    let listener = (pongListeners.map(\.id).max() ?? 0) + 1
    pongListeners.append(PongListener(id: listener, member: member.id, answers: sink))
    for link in waiting { perform(node.ping(member.id, in: link.link.channel, at: now)) }
    let timeout = Task {
      try await Task.sleep(for: Self.pongPatience)
      sink.finish()
    }
    var paths: [PingReply.Path] = []
    for await (channel, roundTrip) in answers {
      guard let index = waiting.firstIndex(where: { $0.link.channel == channel }) else { continue }
      paths.append(path(waiting.remove(at: index), roundTrip))
      if waiting.isEmpty { break }
    }
    timeout.cancel()
    pongListeners.removeAll { $0.id == listener }
    for link in waiting { paths.append(path(link, nil)) }
    return PingReply(member: member.id.short, name: member.name, paths: paths)
  }

  private func path(_ peer: PeerStatistics, _ roundTrip: Duration?) -> PingReply.Path {
    PingReply.Path(
      channel: node.name(of: peer.link.channel) ?? "",
      address: peer.via == nil ? peer.address?.description : nil, via: peer.via?.short,
      rttMs: roundTrip?.inMilliseconds)
  }

  func noticePong(of member: NodeID, in channel: ChannelID, _ roundTrip: Duration) {
    for listener in pongListeners where listener.member == member {
      listener.answers.yield((channel, roundTrip))
    }
  }

  /// The only member that an id, key or name, or the beginning of one, can mean.
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
    let exact = known.filter { $0.id.short == text || $0.id.key.hex == text || $0.name == text }
    let prefixed = known.filter { $0.id.key.hex.hasPrefix(text) || $0.name.hasPrefix(text) }
    let found = exact.isEmpty ? prefixed : exact
    guard let only = found.first else {
      throw MusterError("no member \(shown) is here", hint: "see muster channel show")
    }
    guard found.count == 1 else {
      throw MusterError(
        "\(shown) may be any of \(found.map(\.id.short).joined(separator: ", "))",
        hint: "name one by its id", kind: .usage)
    }
    return only
  }
}

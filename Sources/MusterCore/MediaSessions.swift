import MusterBase
import MusterMedia
import MusterWire

/// The media of one node: its own sources, and a session for each link.
///
/// Methods return the outputs to execute, in order. This file begins and ends sessions; `+Send`
/// sends this node's media, `+Layers` selects layers, `+Requests` requests the video of others,
/// `+Receive` handles media from peers, `+Speakers` determines who speaks, `+CPU` gives up video
/// while this node is short of CPU, and `+Reports` handles RTCP and statistics.
struct MediaSessions: ~Copyable, Sendable {
  enum Output: Equatable {
    /// Seal this payload for the link, and send it at once.
    case send(OutgoingPayload, over: LinkID)
    /// Send this payload when its turn on the path of the link comes.
    case queue(QueuedPacket, QueuedPacket.Priority)
    case control([Control], over: LinkID)
    /// Pass this output to the host unchanged.
    case host(Node.Output)
  }

  /// The id of this node.
  let own: NodeID
  var local: LocalMedia
  /// One session per link that is up, at most `Limits.links`.
  var sessions = DeadlineTable<LinkID, MediaSession>()
  /// The dominant speakers of the calls with participants to whom there are links.
  var speakers = PeerTable<ChannelID, DominantSpeaker<NodeID>>()
  var requests: VideoRequests
  /// Measures during calls whether this node gets the CPU time that it needs.
  var overuse = CPUOveruseDetector()
  let reportInterval: Duration
  private let repetitionInterval: Duration
  private var prng: PRNG

  init(_ configuration: Node.Configuration, own: NodeID, prng: inout PRNG) {
    self.own = own
    requests = VideoRequests(configuration)
    reportInterval = configuration.reportInterval
    repetitionInterval = configuration.pingInterval
    local = LocalMedia(cameraBitrate: configuration.videoBitrate, prng: &prng)
    self.prng = PRNG(seed: prng.next())
  }

  // MARK: Links and calls

  mutating func linkUp(_ link: LinkID, at now: Instant) {
    sessions[link] = MediaSession(upSince: now)
  }

  mutating func linkDown(_ link: LinkID, at now: Instant) -> [Output] {
    let out = end(link, at: now)
    sessions[link] = nil
    return out + updateRequests(at: now)
  }

  /// Forgets the requests of a channel that the node has left.
  mutating func close(_ channel: ChannelID) { requests.close(channel) }

  /// Forgets the requests of a member that has left the channel.
  mutating func forget(_ link: LinkID) { requests.forget(link) }

  /// Whether media is exchanged with anybody.
  var isInCall: Bool { sessions.keys.indices.contains { sessions[at: $0].call != nil } }

  /// Whether media is exchanged over a link, which requires both nodes to be in the call.
  func isActive(_ link: LinkID) -> Bool {
    sessions.index(of: link).map { sessions[at: $0].call != nil } ?? false
  }

  /// Begins media with a participant; does nothing without a link or if media has already begun.
  /// `updateRequests` requests its video.
  mutating func begin(_ link: LinkID, at now: Instant) {
    guard let index = sessions.index(of: link), sessions[at: index].call == nil else { return }
    var call = CallMedia(seed: prng.next(), at: now)
    if let roundTrip = sessions[at: index].roundTrip { call.incoming.setRoundTrip(roundTrip) }
    for sent in sessions[at: index].sentLayers {
      if let sent { _ = call.incoming.receive(sent, at: now) }
    }
    sessions[at: index].call = call
    overuse.begin(at: now)
  }

  /// Ends media with a member; does nothing if no media is exchanged.
  mutating func end(_ link: LinkID, at now: Instant) -> [Output] {
    guard let index = sessions.index(of: link), var call = sessions[at: index].call else {
      return []
    }
    var out: [Output] = []
    for id in call.outgoing.ids {
      let change = call.outgoing.update(id) { $0.end() } ?? nil
      if let change { out.append(Self.event(change, .sent, of: id, link)) }
    }
    for id in call.incoming.ids {
      if let change = call.incoming.end(id) {
        out.append(Self.event(change, .received, of: id, link))
      }
    }
    sessions[at: index].call = nil
    sessions[at: index].sentLayers = [SentLayer?](repeating: nil, count: Limits.videoStreams)
    (sessions[at: index].pathBandwidth, sessions[at: index].uplinkShare) = (nil, nil)
    sessions[at: index].isPathNarrow = false
    out.append(.host(.mediaEnded(link, stream: nil)))
    out += forgetSpeaker(link)
    hasLessToDo()
    return out + selectLayers(at: now)
  }

  static func event(
    _ change: LayerChange, _ direction: LayerDirection, of stream: StreamID, _ link: LinkID
  ) -> Output {
    .host(.event(.layer(link.peer, stream, direction, change), in: link.channel))
  }

  mutating func setRoundTrip(_ roundTrip: Duration, of link: LinkID) {
    _ = sessions.update(link) { session in
      session.roundTrip = roundTrip
      session.call?.incoming.setRoundTrip(roundTrip)
    }
  }

  /// Notes what the presence of a participant says, and the media rights in both directions.
  /// `updateRequests` applies them.
  mutating func update(
    _ link: LinkID, sending: MediaRights, receiving: MediaRights, presence: CallMedia.MediaPresence,
    at now: Instant
  ) {
    _ = sessions.update(link) { session in
      session.call?.outgoingRights = sending
      session.call?.incomingRights = receiving
      session.call?.set(presence, at: now)
    }
  }

  // MARK: Repetition

  /// Returns the subscriptions and the sent layers if their repetition is due, and schedules the
  /// next repetition. The interval is that of the pings, so a lost message is late by at most one
  /// interval.
  mutating func dueRepetitions(over link: LinkID, at now: Instant) -> [Control] {
    guard let index = sessions.index(of: link), let call = sessions[at: index].call,
      call.nextRepetition <= now
    else { return [] }
    sessions[at: index].call?.nextRepetition = now + repetitionInterval
    return call.subscriptions + call.sentLayers
  }

  /// Returns the subscriptions if their early repetition is due.
  private mutating func dueEarlyRepetition(ofSessionAt index: Int, at now: Instant) -> [Control] {
    guard let call = sessions[at: index].call, let due = call.earlyRepetition, due <= now else {
      return []
    }
    sessions[at: index].call?.earlyRepetition = nil
    return call.subscriptions
  }

  // MARK: Time

  var deadline: Instant? {
    soonest(soonest(local.streams.deadline, sessions.deadline), overuse.deadline)
  }

  /// Updates the deadlines of the sessions that changed.
  mutating func refreshDeadlines() { sessions.refresh() }

  /// Returns the keyframe requests, repeated messages, NACKs and RTCP reports that are due.
  mutating func tick(at now: Instant) -> [Output] {
    var out = local.streams.dueKeyframes(at: now).map { due in
      Output.host(.encodeKeyframe(due.stream, layer: due.layer))
    }
    out += adaptToCPU(at: now)
    for index in 0..<sessions.count {
      guard let due = sessions.read(at: index, { $0.deadline }), due <= now else { continue }
      let link = sessions.keys[index]
      let repetitions =
        dueRepetitions(over: link, at: now) + dueEarlyRepetition(ofSessionAt: index, at: now)
      if !repetitions.isEmpty { out.append(.control(repetitions, over: link)) }
      tick(sessionAt: index, at: now, &out)
    }
    return out
  }
}

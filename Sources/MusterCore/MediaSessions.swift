import MusterBase
import MusterMedia
import MusterWire

/// The media of one node: its own sources, and a session for each link.
///
/// Methods return what is to be done, in order. The beginning and the end of sessions is here;
/// `+Send` has this node's own media, `+Layers` the choice of layers, `+Receive` the media of
/// others, `+Reports` RTCP and statistics.
struct MediaSessions: ~Copyable, Sendable {
  enum Output: Equatable {
    /// Seal this payload for the link.
    case send(OutgoingPayload, over: LinkID)
    case control([Control], over: LinkID)
    /// For the host, as it is.
    case host(Node.Output)
  }

  var local: LocalMedia
  /// `Limits.links` at most: one per link that is up.
  var sessions = DeadlineTable<LinkID, MediaSession>()
  /// The resolutions to request from participants who join a channel's call, by stream index;
  /// without an entry, the configuration's. At most `Limits.channels`.
  private var requested = PeerTable<ChannelID, [RequestedResolution]>()
  private let defaultRequest: RequestedResolution
  let reportInterval: Duration
  private let requestInterval: Duration
  private var prng: PRNG

  init(_ configuration: Node.Configuration, prng: inout PRNG) {
    defaultRequest = configuration.requested
    reportInterval = configuration.reportInterval
    requestInterval = configuration.pingInterval
    local = LocalMedia(prng: &prng)
    self.prng = PRNG(seed: prng.next())
  }

  // MARK: Links and calls

  mutating func linkUp(_ link: LinkID, at now: Instant) {
    sessions[link] = MediaSession(upSince: now)
  }

  mutating func linkDown(_ link: LinkID, at now: Instant) -> [Output] {
    let out = end(link, at: now)
    sessions[link] = nil
    return out
  }

  /// Forgets what was requested in a channel that the node has left.
  mutating func close(_ channel: ChannelID) { requested[channel] = nil }

  /// Whether media flows: both are in the call.
  func isActive(_ link: LinkID) -> Bool {
    sessions.index(of: link).map { sessions[at: $0].call != nil } ?? false
  }

  /// Begins media with a participant; nothing when it has begun.
  mutating func begin(_ link: LinkID, at now: Instant) -> [Output] {
    guard let index = sessions.index(of: link), sessions[at: index].call == nil else { return [] }
    var call = CallMedia(seed: prng.next(), wanted: requests(in: link.channel), at: now)
    if let roundTrip = sessions[at: index].roundTrip { call.incoming.setRoundTrip(roundTrip) }
    sessions[at: index].call = call
    return [.control(call.subscriptions, over: link)]
  }

  /// Ends media with a member; nothing when there is none.
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
    out.append(.host(.mediaEnded(link, stream: nil)))
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

  /// The media between two nodes that both roles, this node's muting and the peer's announcement
  /// allow.
  mutating func update(
    _ link: LinkID, sending: MediaRights, receiving: MediaRights, offers: [StreamOffer],
    at now: Instant
  ) -> [Output] {
    guard let index = sessions.index(of: link), sessions[at: index].call != nil else { return [] }
    sessions[at: index].call?.outgoingRights = sending
    sessions[at: index].call?.incomingRights = receiving
    sessions[at: index].call?.offers = offers
    return expectStreams(ofSessionAt: index, at: now)
  }

  // MARK: What this node requests

  private func requests(in channel: ChannelID) -> [RequestedResolution] {
    requested[channel] ?? Array(repeating: defaultRequest, count: Limits.videoStreams)
  }

  /// Requests a stream, or every stream when it is nil, no larger than `resolution`: of one member,
  /// or of all, and of those who come later, when `member` is nil.
  mutating func watch(
    _ resolution: RequestedResolution, stream: StreamID?, of member: NodeID?,
    in channel: ChannelID, at now: Instant
  ) -> [Output] {
    let streams = stream.map { [$0] } ?? StreamID.all
    if member == nil {
      var all = requests(in: channel)
      for stream in streams { all[stream.index] = resolution }
      requested[channel] = all
    }
    var out: [Output] = []
    for index in 0..<sessions.count {
      let link = sessions.keys[index]
      guard link.channel == channel, (member ?? link.peer) == link.peer,
        sessions[at: index].call != nil
      else { continue }
      for stream in streams { sessions[at: index].call?.wanted[stream.index] = resolution }
      let messages = streams.map { Control.subscribe(Subscription($0, resolution)) }
      out.append(.control(messages, over: link))
      out += expectStreams(ofSessionAt: index, at: now)
    }
    return out
  }

  /// Subscriptions are repeated as often as pings, so that a lost one is only late.
  mutating func dueSubscriptions(over link: LinkID, at now: Instant) -> [Control] {
    guard let index = sessions.index(of: link), let call = sessions[at: index].call,
      call.nextRequestAt <= now
    else { return [] }
    sessions[at: index].call?.nextRequestAt = now + requestInterval
    return call.subscriptions
  }

  // MARK: Time

  var deadline: Instant? { soonest(local.streams.deadline, sessions.deadline) }

  /// Has the sessions that changed say when they next have work.
  mutating func refreshDeadlines() { sessions.refresh() }

  /// Keyframes, subscriptions, repeated requests and reports that are due.
  mutating func tick(at now: Instant) -> [Output] {
    var out = local.streams.dueKeyframes(at: now).map { due in
      Output.host(.encodeKeyframe(due.stream, layer: due.layer))
    }
    for index in 0..<sessions.count {
      guard let due = sessions[at: index].deadline, due <= now else { continue }
      let link = sessions.keys[index]
      let subscriptions = dueSubscriptions(over: link, at: now)
      if !subscriptions.isEmpty { out.append(.control(subscriptions, over: link)) }
      tick(sessionAt: index, at: now, &out)
    }
    return out
  }
}

import MusterBase
import MusterLink
import MusterWire

/// Relayed paths to members of a call that cannot be reached directly, and back to direct ones; and
/// the budget for what this node relays for others.
///
/// The end that misses the other asks for an answer over a relayed route, and the other end's path
/// follows. Of two ends, the one with the smaller id begins, so that they do not choose different
/// relays at the same time. A member that restarted is first tried where it was last reached
/// directly.
struct Relaying: ~Copyable, Sendable {
  /// The outputs of the search, in this order.
  enum Output: Equatable, Sendable {
    /// Have a quiet peer answer.
    case ping(LinkID)
    /// Challenge the peer of an association over another route.
    case probe(LinkID, over: Route)
    /// Make a link to this run of a peer.
    case connect(LinkID, bootID: UInt64, over: Route)
    /// Send the peer this node's own candidates.
    case sendCandidates(LinkID)
    /// Ask the rendezvous where peers are.
    case seek
    /// Other peers than before are unreachable, and so to be discovered.
    case reachabilityChanged
  }

  /// A member of this node's call to which nothing gets through.
  private struct Unreachable: Sendable {
    /// When the next relay is tried.
    var nextAt: Instant
    var tried: [NodeID]
  }

  /// The state of the search for one link while it is up.
  private struct Search: Sendable {
    /// When the peer was last asked to answer because it had become quiet.
    var askedAt = Instant.zero
    /// Since when the path is direct; nil while it is not.
    var directSince: Instant?
    /// While the path is relayed: when a direct one is tried again.
    var nextTryAt = Instant.zero
    var tryInterval = Relaying.firstTryInterval
    /// Candidates that the peer sends: each address is probed.
    var candidates = TokenBucket(capacity: 4, perSecond: 0.5)
  }

  /// A new run of a peer, tried at its last direct address before any relay.
  private struct Restart: Sendable {
    let bootID: UInt64
    let since: Instant
  }

  /// The longest time between checks for unreachable peers: somebody may have joined the call.
  private static let searchInterval = Duration.milliseconds(250)
  /// The time for which a first direct path may be established before relays are tried.
  static let directPatience = Duration.milliseconds(750)
  /// By how much the end with the larger id is more patient.
  private static let secondPatience = Duration.milliseconds(150)
  /// A relay is given two round trips, and this, before the next one is tried.
  private static let relayPatience = Duration.milliseconds(250)
  /// A relay may exaggerate its round trip.
  private static let longestRelayRoundTrip = Duration.milliseconds(500)
  /// For a round trip that is not known yet.
  private static let unmeasured = Duration.milliseconds(100)
  /// After all relays have been tried in vain.
  private static let relayRest = Duration.seconds(1)
  private static let firstTryInterval = Duration.milliseconds(500)
  private static let longestTryInterval = Duration.seconds(4)
  /// A direct path that lasts for less was none: it is tried ever more rarely.
  private static let steadyAfter = Duration.seconds(10)
  private static let unsteadyTryInterval = Duration.seconds(30)

  var budget = RelayBudget()
  private var unreachable = PeerTable<LinkID, Unreachable>()
  private var searches = PeerTable<LinkID, Search>()
  private var restarts = PeerTable<LinkID, Restart>()
  /// When each channel with a call is next searched.
  private var nextAt = PeerTable<ChannelID, Instant>()

  // MARK: Queries

  /// Whether nothing gets through to a member of a call.
  func isUnreachable(_ link: LinkID) -> Bool { unreachable.index(of: link) != nil }

  var deadline: Instant? {
    var next: Instant?
    for index in 0..<nextAt.count { next = soonest(next, nextAt.read(at: index) { $0 }) }
    return next
  }

  /// Whether a channel is searched again.
  func isSearching(_ channel: ChannelID) -> Bool { nextAt.index(of: channel) != nil }

  /// Whether `search` has work in a channel, which it always has before the first time.
  func isDue(_ channel: ChannelID, at now: Instant) -> Bool {
    nextAt[channel].map { $0 <= now } ?? true
  }

  // MARK: What happens to links

  /// Something changed that may call for another path.
  mutating func searchSoon(in channel: ChannelID, at now: Instant) { nextAt[channel] = now }

  /// A link came up, or its path changed.
  mutating func pathChanged(of link: LinkID, to route: Route, at now: Instant) {
    if searches.index(of: link) == nil { searches[link] = Search() }
    restarts[link] = nil
    _ = searches.update(link) { search in
      guard !route.isDirect else {
        search.directSince = search.directSince ?? now
        return
      }
      if let since = search.directSince {
        search.tryInterval =
          now - since >= Self.steadyAfter
          ? Self.firstTryInterval : min(search.tryInterval * 2, Self.unsteadyTryInterval)
        search.nextTryAt = now + search.tryInterval
      }
      search.directSince = nil
    }
    searchSoon(in: link.channel, at: now)
  }

  /// A link went down: others may have been reached through its peer.
  mutating func linkDown(_ link: LinkID, at now: Instant) {
    searches[link] = nil
    searchSoon(in: link.channel, at: now)
  }

  /// Whether one more message with candidates of a peer is taken.
  mutating func takeCandidates(over link: LinkID, at now: Instant) -> Bool {
    searches.update(link) { $0.candidates.take(at: now) } ?? false
  }

  /// The call, or the channel, is left: none of its members needs a relayed path any more.
  mutating func close(_ channel: ChannelID) -> [Output] {
    nextAt[channel] = nil
    for link in restarts.keys where link.channel == channel { restarts[link] = nil }
    var out: [Output] = []
    for link in unreachable.keys where link.channel == channel { reached(link, &out) }
    return out
  }

  // MARK: The search

  /// Looks for paths to members of the call to which nothing gets through; `view` is nil outside of
  /// a call.
  mutating func search(
    in channel: ChannelID, _ view: RelayView?, at now: Instant
  ) -> [Output] {
    guard let view else {
      return close(channel)
    }
    var out: [Output] = []
    func isMissing(_ link: LinkID) -> Bool {
      link.channel == channel && !view.members.contains { $0.id == link.peer }
    }
    for link in unreachable.keys where isMissing(link) { reached(link, &out) }
    for link in restarts.keys where isMissing(link) { restarts[link] = nil }
    var next = now + Self.searchInterval
    for member in view.members {
      next = min(next, search(member, view, at: now, &out))
    }
    nextAt[channel] = max(next, now + .milliseconds(1))
    return out
  }

  /// Does what is due for one member, and says when to come back to it.
  private mutating func search(
    _ member: RelayView.Member, _ view: RelayView, at now: Instant, _ out: inout [Output]
  ) -> Instant {
    let link = LinkID(channel: view.channel, peer: member.id)
    if let due = tryRestarted(member, over: link, view, at: now, &out) { return due }
    guard let peer = view.links[member.id] else {
      guard view.own < member.id, !member.isRefused else {
        reached(link, &out)
        return now + Self.searchInterval
      }
      // After a restart of the peer its last direct address was tried first, which took that time.
      let start = restarts[link] == nil ? now + Self.directPatience : now
      return findRelay(to: member, over: link, from: start, view, at: now, &out)
    }
    guard let liveness = peer.liveness else { return now + Self.searchInterval }
    // A route through a member that is gone leads nowhere.
    let isCutOff = peer.route.relay.map { view.links[$0] == nil } ?? false
    if !isCutOff, !member.hasRestarted {
      let lostAt = lostAt(peer, member.id, liveness, view)
      if liveness.lateAt > now || lostAt > now {
        if liveness.lateAt <= now { ask(link, since: liveness.lastAt, at: now, &out) }
        reached(link, &out)
        let next = probeDirectPath(around: link, peer, at: now, &out)
        return min(next, liveness.lateAt > now ? liveness.lateAt : lostAt)
      }
    }
    return findRelay(to: member, over: link, from: now, view, at: now, &out)
  }

  /// A new run of a peer that was reached directly before is tried there at once, by both ends; a
  /// relay only when that has failed. Nil when there is no new run, or its time is over.
  private mutating func tryRestarted(
    _ member: RelayView.Member, over link: LinkID, _ view: RelayView, at now: Instant,
    _ out: inout [Output]
  ) -> Instant? {
    guard member.hasRestarted || view.links[member.id] == nil, !member.isRefused,
      let address = member.lastDirectAddress
    else { return nil }
    if let restart = restarts[link], restart.bootID == member.bootID {
      let end = restart.since + Self.directPatience
      return now < end ? end : nil
    }
    restarts[link] = Restart(bootID: member.bootID, since: now)
    out.append(.connect(link, bootID: member.bootID, over: .direct(address)))
    return now + Self.directPatience
  }

  private func lostAt(
    _ peer: RelayView.Link, _ id: NodeID, _ liveness: PathLiveness, _ view: RelayView
  ) -> Instant {
    liveness.lostAt(roundTrip: peer.roundTrip ?? Self.unmeasured)
      + (view.own < id ? .zero : Self.secondPatience)
  }

  /// A peer that has become quiet may have nothing to say, which its answer shows.
  private mutating func ask(
    _ link: LinkID, since: Instant, at now: Instant, _ out: inout [Output]
  ) {
    guard searches[link].map({ $0.askedAt < since }) ?? false else { return }
    _ = searches.update(link) { $0.askedAt = now }
    out.append(.ping(link))
  }

  /// A member is reached, or not looked for any more.
  private mutating func reached(_ link: LinkID, _ out: inout [Output]) {
    guard isUnreachable(link) else { return }
    unreachable[link] = nil
    out.append(.reachabilityChanged)
  }

  private mutating func findRelay(
    to member: RelayView.Member, over link: LinkID, from start: Instant, _ view: RelayView,
    at now: Instant, _ out: inout [Output]
  ) -> Instant {
    let peer = view.links[member.id]
    var state: Unreachable
    if let known = unreachable[link] {
      state = known
    } else {
      // The relay that was lost just now is no candidate.
      state = Unreachable(nextAt: start, tried: peer?.route.relay.map { [$0] } ?? [])
      unreachable[link] = state
      out.append(.reachabilityChanged)
      // It may have moved, and a rendezvous may know where.
      out.append(.seek)
    }
    guard state.nextAt <= now else { return state.nextAt }
    let relays = view.relays(to: member, unmeasured: Self.unmeasured, at: now)
    state.nextAt = now + (relays.isEmpty ? Self.searchInterval : Self.relayRest)
    if let relay = relays.first(where: { !state.tried.contains($0) }) {
      state.tried.append(relay)
      let roundTrip = view.links[relay]?.roundTrip ?? Self.relayPatience
      state.nextAt = now + Self.relayPatience + min(roundTrip, Self.longestRelayRoundTrip) * 2
      let route = Route.relayed(to: member.id, by: relay, in: view.channel)
      out.append(
        peer == nil || member.hasRestarted
          ? .connect(link, bootID: member.bootID, over: route) : .probe(link, over: route))
    } else {
      state.tried = []
    }
    unreachable[link] = state
    return state.nextAt
  }

  /// While a path is relayed, both ends exchange candidates and probe the address that worked
  /// before, so that a direct path is found when it opens, without a rendezvous.
  private mutating func probeDirectPath(
    around link: LinkID, _ peer: RelayView.Link, at now: Instant, _ out: inout [Output]
  ) -> Instant {
    guard !peer.route.isDirect, let search = searches[link] else {
      return now + Self.searchInterval
    }
    guard search.nextTryAt <= now else { return search.nextTryAt }
    let interval = max(
      search.tryInterval, min(search.tryInterval * 1.5, Self.longestTryInterval))
    _ = searches.update(link) {
      $0.tryInterval = interval
      $0.nextTryAt = now + interval
    }
    out.append(.sendCandidates(link))
    if let address = peer.lastDirectAddress { out.append(.probe(link, over: .direct(address))) }
    return now + interval
  }

  // MARK: Invariants

  func checkInvariants(isUp: (LinkID) -> Bool, isOpen: (ChannelID) -> Bool) -> [String] {
    var found: [String] = []
    for link in searches.keys where !isUp(link) {
      found.append("path search for \(link.peer) without a link")
    }
    for channel in nextAt.keys where !isOpen(channel) {
      found.append("relay search in \(channel), which is closed")
    }
    for link in unreachable.keys where !isOpen(link.channel) {
      found.append("\(link.peer) is unreachable in a closed channel")
    }
    return found
  }
}

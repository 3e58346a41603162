import MusterBase
import MusterLink
import MusterWire

/// The search for relayed paths to unreachable members of a call and for a return to direct paths,
/// and the budget for relaying on behalf of peers.
///
/// The end that finds its peer unreachable challenges the peer over a relayed route, and the peer's
/// path follows. The end with the smaller id begins, so that both ends do not choose different
/// relays at the same time. A member that restarted is first tried at its last direct address.
struct Relaying: ~Copyable, Sendable {
  /// The outputs of the search, in order.
  enum Output: Equatable, Sendable {
    /// Check the path to a peer that has become quiet.
    case check(LinkID)
    /// Challenge the peer of an association over another route.
    case probe(LinkID, over: Route)
    /// Establish a link to this run of a peer.
    case connect(LinkID, bootID: UInt64, over: Route)
    /// Send this node's candidates to the peer.
    case sendCandidates(LinkID)
    /// Query the rendezvous servers for the addresses of peers.
    case seek
    /// The set of unreachable peers, which discovery looks for, has changed.
    case reachabilityChanged
  }

  /// A member of this node's call to which no path works.
  private struct Unreachable: Sendable {
    /// The time at which the next relay is tried.
    var nextAt: Instant
    var tried: [NodeID]
  }

  /// The state of the search for one link while it is up.
  private struct Search: Sendable {
    /// The time of the last check of the path because the peer had become quiet.
    var askedAt = Instant.zero
    /// The time since which the path has been direct; nil for a relayed path.
    var directSince: Instant?
    /// The time at which a direct path is next tried while the path is relayed.
    var nextTryAt = Instant.zero
    var tryInterval = Relaying.firstTryInterval
    /// The rate limit for candidates from the peer, each of which is probed.
    var candidates = TokenBucket(capacity: 4, perSecond: 0.5)
  }

  /// A new run of a peer, which is tried at its last direct address before any relay.
  private struct Restart: Sendable {
    let bootID: UInt64
    let since: Instant
  }

  /// The maximum interval between two searches in a call, which members may join at any time.
  private static let searchInterval = Duration.milliseconds(250)
  /// The time allowed for a first direct path before relays are tried.
  static let directPatience = Duration.milliseconds(750)
  /// The additional time that the end with the larger id waits before it considers a path lost.
  private static let secondPatience = Duration.milliseconds(150)
  /// The time that a relay is given in addition to two round trips, before the next relay is tried.
  private static let relayPatience = Duration.milliseconds(250)
  /// The upper bound of the round trip used with `relayPatience`, since a relay may exaggerate its
  /// round trip.
  private static let longestRelayRoundTrip = Duration.milliseconds(500)
  /// The pause after all relays have been tried without success, before the relays are tried again.
  private static let relayRest = Duration.seconds(1)
  private static let firstTryInterval = Duration.milliseconds(500)
  private static let longestTryInterval = Duration.seconds(4)
  /// The minimum lifetime of a direct path that counts as stable; after a shorter lifetime, the
  /// interval between attempts doubles.
  private static let steadyAfter = Duration.seconds(10)
  private static let unsteadyTryInterval = Duration.seconds(30)

  var budget = RelayBudget()
  /// The datagrams that wait until `budget` allows them to be relayed.
  var queue = EventQueue<RelayedDatagram>()
  /// The numbers of datagrams that were not sent or relayed.
  var counters = RelayCounters()
  private var unreachable = PeerTable<LinkID, Unreachable>()
  private var searches = PeerTable<LinkID, Search>()
  private var restarts = PeerTable<LinkID, Restart>()
  /// The time at which each channel with a call is next searched.
  private var nextAt = PeerTable<ChannelID, Instant>()

  // MARK: Queries

  /// Whether a member of this node's call has no working path.
  func isUnreachable(_ link: LinkID) -> Bool { unreachable.index(of: link) != nil }

  var deadline: Instant? {
    nextAt.reduce(queue.deadline) { soonest($0, $1.value) }
  }

  /// Whether a search is scheduled in a channel.
  func isSearching(_ channel: ChannelID) -> Bool { nextAt.index(of: channel) != nil }

  /// Whether a search is due in a channel.
  func isDue(_ channel: ChannelID, at now: Instant) -> Bool {
    nextAt[channel].map { $0 <= now } ?? false
  }

  // MARK: Changes of links

  /// Schedules an immediate search after a change that may require another path.
  mutating func searchSoon(in channel: ChannelID, at now: Instant) { nextAt[channel] = now }

  /// Updates the search for a link that came up or changed its path.
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

  /// Handles the closure of a link, whose peer may have been a relay for other members.
  mutating func linkDown(_ link: LinkID, at now: Instant) {
    searches[link] = nil
    searchSoon(in: link.channel, at: now)
  }

  /// Whether the rate limit allows one more message with candidates from a peer.
  mutating func takeCandidates(over link: LinkID, at now: Instant) -> Bool {
    searches.update(link) { $0.candidates.take(at: now) } ?? false
  }

  /// Ends the search in a channel after this node has left the channel or its call.
  mutating func close(_ channel: ChannelID) -> [Output] {
    nextAt[channel] = nil
    for link in restarts.keys where link.channel == channel { restarts[link] = nil }
    var out: [Output] = []
    for link in unreachable.keys where link.channel == channel { reached(link, &out) }
    return out
  }

  // MARK: The search

  /// Searches for paths to unreachable members of the call; `view` is nil if this node is not in a
  /// call.
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

  /// Takes the steps that are due for one member, and returns the time of the next step.
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
      // After a restart, `directPatience` has already passed during the direct attempt.
      let start = restarts[link] == nil ? now + Self.directPatience : now
      return findRelay(to: member, over: link, from: start, view, at: now, &out)
    }
    guard let liveness = peer.liveness else { return now + Self.searchInterval }
    // A route through a member whose link is gone, or relayed itself, does not work.
    let isCutOff = peer.route.relay.map { view.links[$0]?.route.isDirect != true } ?? false
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

  /// Tries a new run of a peer at its last direct address at once, from both ends; relays are tried
  /// only after `directPatience`. Returns the end of this time; nil if there is no new run, no
  /// known address, or the time has passed.
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
    liveness.lostAt(roundTrip: peer.roundTrip)
      + (view.own < id ? .zero : Self.secondPatience)
  }

  /// Checks the path of a peer that has become quiet, which may merely have nothing to send.
  private mutating func ask(
    _ link: LinkID, since: Instant, at now: Instant, _ out: inout [Output]
  ) {
    guard searches[link].map({ $0.askedAt < since }) ?? false else { return }
    _ = searches.update(link) { $0.askedAt = now }
    out.append(.check(link))
  }

  /// Marks a member as reachable or as no longer searched for.
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
      // The relay that has just been lost is not tried again.
      state = Unreachable(nextAt: start, tried: peer?.route.relay.map { [$0] } ?? [])
      unreachable[link] = state
      out.append(.reachabilityChanged)
      // The member may have moved, and a rendezvous server may know its new address.
      out.append(.seek)
    }
    guard state.nextAt <= now else { return state.nextAt }
    let relays = view.relays(to: member, at: now)
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

  /// While a path is relayed, both ends exchange candidates and probe the last direct address, so
  /// that a direct path is found without a rendezvous server as soon as one exists. Returns the
  /// time of the next attempt.
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

import MusterBase
import MusterChannel
import MusterCrypto
import MusterDiscovery

/// How a node enters a channel's call: told to by its user, or without being told (`CallIntent`).
extension Node {
  /// Joins the channel's call, or starts a call if there is none.
  public mutating func startCall(
    in channel: ChannelID, at now: Instant
  ) throws(CommandRefusal) -> [Output] {
    guard let entry = channels[channel] else { throw .unknownChannel }
    if let refusal = refusalToEnter(entry) { throw refusal }
    var out: [Output] = []
    wantCall(in: channel, at: now, &out)
    return out
  }

  /// Joins the active call.
  public mutating func joinCall(
    in channel: ChannelID, at now: Instant
  ) throws(CommandRefusal) -> [Output] {
    try check(.joinCall, in: channel)
    guard call(in: channel) != nil else { throw .noCall }
    return try startCall(in: channel, at: now)
  }

  /// Schedules this node's entry into a call: an active call is joined at once; if this node hears
  /// of none, it starts a call when its wait (`startTime`) is over.
  mutating func wantCall(in channel: ChannelID, at now: Instant, _ out: inout [Output]) {
    guard let entry = channels[channel], !entry.state.isInCall, entry.intent.startsAt == nil else {
      return
    }
    setCallState(.connecting, in: channel, &out)
    let grace = mayHearFromAfar ? Self.remoteGrace : Self.localGrace
    let due = max(now, entry.openedAt + grace)
    _ = channels.update(channel) { $0.intent.start(at: due, by: due) }
    enterCallIfDue(channel, at: now, &out)
  }

  /// Enters a call after a change of the channel's state: one that members have started, if this
  /// node does so without being told, or one that it waits for.
  mutating func enterCallAfterChange(
    in channel: ChannelID, at now: Instant, _ out: inout [Output]
  ) {
    guard let index = channels.index(of: channel), channels[at: index].intent.startsAt == nil,
      !channels[at: index].state.isInCall, isAnswering(channels[at: index]),
      refusalToEnter(channels[at: index]) == nil
    else { return enterCallIfDue(channel, at: now, &out) }
    wantCall(in: channel, at: now, &out)
  }

  /// Whether this node enters the active call, if it may, without being told.
  private func isAnswering(_ entry: Channel) -> Bool {
    guard let call = entry.state.call?.info.id, !entry.state.isLeaving else { return false }
    return entry.intent.accepts(call, answers: configuration.answersCalls)
  }

  /// Whether this node is in the channel's call, or about to enter one without being told again.
  public func isInOrEnteringCall(_ channel: ChannelID) -> Bool {
    guard let entry = channels[channel] else { return false }
    return entry.state.isInCall || entry.intent.startsAt != nil || entry.intent.joinsNext
      || isAnswering(entry)
  }

  /// Joins the channel's call, or starts a call when the wait for one is over.
  mutating func enterCallIfDue(
    _ channel: ChannelID, at now: Instant, _ out: inout [Output]
  ) {
    guard let index = channels.index(of: channel), var latest = channels[at: index].intent.startsBy
    else { return }
    let entry = channels[at: index]
    if !mayHearFromAfar { latest = min(latest, now + Self.localGrace) }
    var due = startTime(entry, latest: latest, at: now)
    if let later = entry.state.initialSyncDeadline {
      (due, latest) = (max(due, later), max(latest, later))
    }
    if (due, latest) != (entry.intent.startsAt, entry.intent.startsBy) {
      _ = channels.update(channel) { $0.intent.start(at: due, by: latest) }
    }
    guard entry.state.initialSyncDeadline == nil, entry.state.call != nil || now >= due else {
      return
    }
    if let refusal = refusalToEnter(entry) {
      // After a restart, the grant that makes this node a member may still be on its way.
      if case .notMember = refusal, now - entry.openedAt < Self.grantPatience {
        let due = now + Self.localGrace
        _ = channels.update(channel) { $0.intent.start(at: due, by: due) }
        return
      }
      refuseEntry(refusal, to: channel, &out)
      return
    }
    _ = channels.update(channel) { $0.intent.entered() }
    let proposal = CallID(high: prng.next(), low: prng.next())
    let startedAt = wallMilliseconds(now)
    let outputs =
      channels.update(channel) {
        $0.state.startOrJoinCall(proposing: proposal, startedAt: startedAt, at: now)
      } ?? []
    perform(outputs, in: channel, at: now, &out)
  }

  /// Gives up entering a call. A node whose role permits joining one, but not starting one, still
  /// enters the next that a member starts, if it joined the channel for its call.
  private mutating func refuseEntry(
    _ refusal: CommandRefusal, to channel: ChannelID, _ out: inout [Output]
  ) {
    let mayJoin = (try? check(.joinCall, in: channel)) != nil
    let isForStartAlone = if case .notAllowed(.startCall, _) = refusal { mayJoin } else { false }
    let joinsNext =
      channels.update(channel) { entry in
        entry.intent.refused(waits: isForStartAlone)
        return entry.intent.joinsNext
      } ?? false
    setCallState(.disconnected, in: channel, &out)
    out.append(.event(.callRefused(refusal, joinsNext: joinsNext), in: channel))
  }

  /// The time for which a node that has just entered a channel waits to learn of an active call
  /// before it starts one; members on the LAN are found within a fraction of it.
  private static let localGrace = Duration.seconds(1)
  /// The same while someone beyond the LAN may still answer: several attempts to reach a server or
  /// a peer over a slow network.
  private static let remoteGrace = Duration.seconds(5)
  /// The wait of a node that has compared documents with a neighbour by then, while others that
  /// have been heard of may still answer.
  private static let comparedGrace = Duration.milliseconds(600)
  /// The wait of a node that has compared with all that it has heard of, besides some round trips:
  /// the time in which two nodes that hear of each other come to have compared. So of two nodes the
  /// one that came first has compared before the other's wait is over.
  private static let settledGrace = Duration.milliseconds(80)
  private static let settledRoundTrips = 8
  /// The time for which a member that was challenged may still answer: several round trips.
  private static let answerTime = Duration.milliseconds(300)
  /// The additional wait for neighbours with smaller ids, which may have come at the same moment,
  /// on top of a round trip to them, within which their claims would arrive.
  private static let startTurn = Duration.milliseconds(20)
  private static let longestStartTurn = Duration.seconds(1)

  /// Whether a member beyond the LAN may still be found.
  private var mayHearFromAfar: Bool {
    finders.peers || finders.dht
      || discovery.answeringRendezvous.count < finders.rendezvousServers
  }

  /// The time at which a node starts a call if it knows of none: soon after it knows what its
  /// neighbours know, at once if nobody else was heard of; at `latest` if nobody answers.
  private func startTime(_ entry: Channel, latest: Instant, at now: Instant) -> Instant {
    guard let comparedAt = entry.state.comparedAt else { return latest }
    var due = max(comparedAt, entry.openedAt + Self.comparedGrace)
    if knowsAllWithinReach(entry, at: now) {
      let links = peers.keys.filter { $0.channel == entry.state.channel }
      let newest = links.compactMap { peers[$0]?.upSince }.max() ?? comparedAt
      let longest = links.compactMap { self.roundTrip(of: $0) }.max() ?? .zero
      let grace = Self.settledGrace + longest * Self.settledRoundTrips
      due = min(due, max(comparedAt, newest, entry.openedAt + grace))
    }
    return min(latest, due + startTurn(entry))
  }

  /// Whether this node knows what all members know that it has heard of, as far as they answer.
  private func knowsAllWithinReach(_ entry: Channel, at now: Instant) -> Bool {
    let channel = entry.state.channel
    return !finders.dht && discovery.answeringRendezvous.count >= finders.rendezvousServers
      && entry.state.hasHeardAllNeighbours && !associations.isConnecting(in: channel, at: now)
      && !discovery.isSeeking(in: channel, challengedSince: now + (.zero - Self.answerTime))
  }

  private func startTurn(_ entry: Channel) -> Duration {
    let before = entry.state.neighbourIDs.filter { $0 < identity.id }
    guard !before.isEmpty else { return .zero }
    let roundTrips = before.compactMap {
      roundTrip(of: LinkID(channel: entry.state.channel, peer: $0))
    }
    return min(Self.startTurn + (roundTrips.max() ?? .zero), Self.longestStartTurn)
  }

  /// Why this node may not enter the channel's call, or start one if there is none; nil if it may.
  package mutating func refusalToEnterCall(in channel: ChannelID) -> CommandRefusal? {
    guard let entry = channels[channel] else { return .unknownChannel }
    return refusalToEnter(entry)
  }

  private mutating func refusalToEnter(_ entry: Channel) -> CommandRefusal? {
    do {
      try check(entry.state.call == nil ? .startCall : .joinCall, in: entry.state.channel)
    } catch { return error }
    let remover = entry.state.call.flatMap { entry.state.remover(of: id, from: $0.info.id) }
    return remover.map { .removedFromCall(by: $0) }
  }
}

import MusterBase
import MusterCrypto
import MusterWire

/// Links to neighbours, and the messages that arrive over them.
extension ChannelState {
  /// The time within which changes of links share one neighbour report.
  static let reportDelay = Duration.milliseconds(50)
  /// The minimum time between presences that differ only in the speaking flag. The flag changes
  /// often, and each change costs an entry to every member.
  static let speakingInterval = Duration.milliseconds(250)

  /// Whether `peer` is a neighbour, or there is room for another neighbour.
  public func hasRoom(for peer: NodeID) -> Bool {
    neighbours.index(of: peer) != nil || neighbours.count < Limits.peersPerChannel
  }

  /// Handles a usable link to the run `bootID` of `peer`; does nothing if there is no room.
  public mutating func linkUp(_ peer: NodeID, bootID: UInt64, at now: Instant) -> [Output] {
    guard peer != identity.id, hasRoom(for: peer) else { return [] }
    return commit(at: now) { state, out in
      state.linkEnds[peer] = nil
      state.contacts &+= 1
      state.neighbours[peer] = Neighbour(bootID: bootID, contact: state.contacts)
      state.noteUses(at: now)
      if state.call == nil, state.initialSyncDeadline == nil {
        state.initialSyncDeadline = now + Self.initialSyncTime
      }
      state.detector.linkUp(peer, at: now)
      if let entry = state.gossip.document.newest(.neighbourReport, of: peer),
        case .neighbourReport(let neighbourReport) = entry.entry.body
      {
        state.detector.noted(neighbourReport, of: peer, at: now)
      }
      state.neighboursChanged(at: now)
      let outputs = state.gossip.linkUp(peer, first: state.leadingClaim, at: now)
      state.apply(outputs, at: now, &out)
    }
  }

  /// The neighbours whose current reports list `member` as a neighbour.
  public func neighbours(of member: NodeID) -> [NodeID] {
    neighbours.keys.filter { neighbour in
      guard
        case .neighbourReport(let report)? = gossip.document.newest(
          .neighbourReport, of: neighbour)?.entry.body
      else { return false }
      return report.bootID == neighbours[neighbour]?.bootID
        && report.heard.contains(member.key.prefix)
    }
  }

  /// Handles the loss of the link to `peer`, which may still be reachable through other members.
  public mutating func linkDown(
    _ peer: NodeID, reason: LeaveReason, at now: Instant
  ) -> [Output] {
    guard neighbours.index(of: peer) != nil else { return [] }
    return commit(at: now) { state, _ in
      state.neighbours[peer] = nil
      state.detector.linkDown(peer)
      state.gossip.linkDown(peer)
      if reason != .crashed, state.linkEnds.count < Limits.peersPerChannel {
        state.linkEnds[peer] = reason
      }
      state.neighboursChanged(at: now)
    }
  }

  private mutating func neighboursChanged(at now: Instant) {
    changes.reachability = true
    reportDueAt = reportDueAt ?? now + Self.reportDelay
  }

  /// Limits the entries that neighbours lack or want, for which this node's media leaves so many
  /// bytes per second; nil without media.
  public mutating func limitDeliveries(toBytesPerSecond rate: Double?, at now: Instant) {
    gossip.limitDeliveries(toBytesPerSecond: rate, at: now)
  }

  /// Processes a control message from a neighbour; ignores other senders.
  public mutating func receive(
    _ message: Control, from peer: NodeID, at now: Instant
  ) -> [Output] {
    guard neighbours.index(of: peer) != nil else { return [] }
    return commit(at: now) { state, out in
      switch message {
      case .entry, .entriesReceived, .digest, .ranges, .want:
        let (rights, own) = (state.rights, state.identity.id)
        let outputs = state.gossip.receive(message, from: peer, at: now) {
          rights.admits($0, from: peer, at: own)
        }
        state.apply(outputs, at: now, &out)
        if case .digest(let theirs) = message { state.endInitialSync(ifEqual: theirs) }
      case .probe(let target, let token):
        state.execute(
          state.detector.receiveProbe(target, token: token, from: peer, at: now), at: now, &out)
      case .probed(let target, let token, let answered):
        let isThere = answered && state.isInSameRun(target)
        state.execute(
          state.detector.receiveProbed(
            target, token: token, answered: isThere, from: peer, at: now), at: now, &out)
      case .subscribe, .ping, .pong, .epochKey, .refused, .seen, .candidates, .sentLayer:
        break
      }
    }
  }

  /// Ends the wait for the neighbours' parts of the document once it is equal to that of one, and
  /// all have said who they are.
  private mutating func endInitialSync(ifEqual theirs: DocumentDigest) {
    guard initialSyncDeadline != nil, theirs == gossip.document.digest, hasHeardAllNeighbours
    else { return }
    initialSyncDeadline = nil
    changes.call = true
  }

  /// The boot id in a member's newest presence, whether that run is reachable or not; nil if the
  /// member has left or has no presence.
  public func announcedBootID(of member: NodeID) -> UInt64? {
    guard
      case .presence(let presence)? = gossip.document.newest(.presence, of: member)?.entry.body,
      !presence.flags.contains(.left)
    else { return nil }
    return presence.bootID
  }

  /// Whether a neighbour's newest presence is of the run at the other end of its link. If not,
  /// other members' reports may be about another run of that neighbour.
  func isInSameRun(_ peer: NodeID) -> Bool {
    guard case .presence(let presence)? = gossip.document.newest(.presence, of: peer)?.entry.body
    else { return false }
    return presence.bootID == neighbours[peer]?.bootID
  }

  /// Performs all work that is due; has no effect before `deadline`. `lastHeard` and `roundTrip`
  /// describe the link to a neighbour.
  public mutating func tick(
    at now: Instant, lastHeard: (NodeID) -> Instant?, roundTrip: (NodeID) -> Duration?
  ) -> [Output] {
    var out: [Output] = []
    let probes = detector.tick(at: now, lastHeard: lastHeard, roundTrip: roundTrip)
    out += commit(at: now) { state, out in
      state.execute(probes, at: now, &out)
      state.apply(state.gossip.tick(at: now), at: now, &out)
      state.show(state.messages.tick(at: now), &out)
      if let due = state.confirmationDueAt, due <= now { state.confirmUses(at: now, &out) }
      if let due = state.reportDueAt, due <= now { state.publishReport(at: now, &out) }
      if let due = state.initialSyncDeadline, due <= now {
        state.initialSyncDeadline = nil
        state.changes.call = true
      }
      if let due = state.succession.deadline, due <= now { state.changes.call = true }
      if let due = state.joiningSchedule.deadline, due <= now { state.changes.call = true }
    }
    return out
  }

  /// Executes the outputs of the failure detector.
  private mutating func execute(
    _ outputs: [FailureDetector.Output], at now: Instant, _ out: inout [Output]
  ) {
    for output in outputs {
      switch output {
      case .ping(let peer):
        out.append(.send(.ping(UInt64(bitPattern: now.nanoseconds)), to: peer))
      case .ask(let helper, let target, let token):
        out.append(.send(.probe(target, token: token), to: helper))
      case .answer(let requester, let target, let token, let answered):
        out.append(.send(.probed(target, token: token, answered: answered), to: requester))
      case .suspects, .clears: reportDueAt = reportDueAt ?? now
      case .fails(let peer): out.append(.fail(peer))
      }
    }
  }

  /// Executes the outputs of the gossip, and marks the derived state that new entries affect.
  /// `isWritten`: the entries are already on disk.
  mutating func apply(
    _ outputs: [Gossip.Output], isWritten: Bool = false, at now: Instant, _ out: inout [Output]
  ) {
    for output in outputs {
      switch output {
      case .send(let message, let peer): out.append(.send(message, to: peer))
      case .inserted(let entry, let removed):
        if !isWritten, Self.isLasting(entry) { out.append(.keep(entry)) }
        forget(removed, &out)
        note(entry, at: now, &out)
      case .quarantined(_, let removed):
        forget(removed, &out)
        changes = Changes()
      case .superseded(let entry): messages.skip(entry, at: now)
      }
    }
  }

  func forget(_ entries: [SignedEntry], _ out: inout [Output]) {
    let lasting = entries.filter(Self.isLasting).map(\.id)
    if !lasting.isEmpty { out.append(.forget(lasting)) }
  }

  /// Whether an entry is stored on disk; presences and neighbour reports are valid only while their
  /// process runs.
  private static func isLasting(_ entry: SignedEntry) -> Bool {
    switch entry.entry.body.kind {
    case .presence, .neighbourReport: false
    default: true
    }
  }

  private mutating func note(_ entry: SignedEntry, at now: Instant, _ out: inout [Output]) {
    let author = entry.entry.author
    switch entry.entry.body {
    case .presence(let presence):
      changes.reachability = true
      // The entry was signed by an earlier process of this node, or before this node last left the
      // channel.
      if author == identity.id, entry != ownEntry { changes.ownIsOvertaken = true }
      if author == identity.id { noteRun(presence.bootID, of: author, &out) }
      if neighbours.index(of: author) != nil {
        if isInSameRun(author) {
          reportIfMissing(author, at: now)
        } else {
          detector.heardInAnotherRun(author, at: now)
        }
      }
    case .neighbourReport(let neighbourReport):
      changes.reachability = true
      if author == identity.id {
        if entry != ownReport { reportDueAt = now }
      } else if neighbours.index(of: author) != nil {
        detector.noted(neighbourReport, of: author, at: now)
      }
    case .claim, .end, .joining: changes.call = true
    case .moderation(let moderation):
      changes.call = true
      note(moderation, by: author, &out)
    case .grant, .redemption, .epoch: changes.rights = true
    case .message: show(messages.insert(entry, at: now), &out)
    case .unknown: break
    }
  }

  mutating func noteRun(_ bootID: UInt64, of member: NodeID, _ out: inout [Output]) {
    if runs.note(bootID, of: member, at: lastInputAt) { out.append(.event(.runsTwice(member))) }
  }

  /// Schedules a neighbour report if the last one lacks a neighbour whose presence has arrived.
  private mutating func reportIfMissing(_ neighbour: NodeID, at now: Instant) {
    if case .neighbourReport(let report)? = ownReport?.entry.body,
      report.heard.contains(neighbour.key.prefix)
    {
      return
    }
    reportDueAt = reportDueAt ?? now + Self.reportDelay
  }

  private func note(_ moderation: Moderation, by author: NodeID, _ out: inout [Output]) {
    guard moderation.call == call?.info.id, rights.moderates(author, moderation.member),
      !moderation.actions.isDisjoint(with: .all)
    else { return }
    out.append(.event(.moderated(moderation, by: author)))
  }

  /// Reports messages, but withholds messages whose authors do not have the right to write yet.
  mutating func show(_ entries: [SignedEntry], _ out: inout [Output]) {
    for entry in entries {
      guard may(.sendText, entry.entry.author) else {
        awaitingGrant = (awaitingGrant + [entry]).suffix(Limits.messagesPerAuthor)
        continue
      }
      out.append(.delivered(entry.id))
      let counter = order.counter(of: entry)
      if let text = text(of: entry, listedAt: counter) { out.append(.event(.message(text))) }
    }
  }
}

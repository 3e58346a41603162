import MusterBase
import MusterChannel
import MusterCore
import MusterCrypto
import MusterWire

/// The progress of a run towards convergence after its last fault.
struct Settling: Sendable {
  /// The time at which a process last started or ended, or a node last entered or left the channel.
  private(set) var changedAt = Instant.zero
  /// The times at which the current agreement or disagreement between nodes began; at least one of
  /// the two is nil.
  private(set) var settledAt: Instant?
  private(set) var disputedSince: Instant?
  /// The indices of the nodes that must agree about everything.
  var group: [Int] = []
  /// The time at which every node sent its closing message.
  var spokeAt: Instant?
  var framesAt: Instant?
  var completeAt: Instant?

  mutating func changed(at now: Instant) { changedAt = now }

  mutating func agreed(_ agreed: Bool, at now: Instant) {
    settledAt = agreed ? settledAt ?? now : nil
    disputedSince = agreed ? nil : disputedSince ?? now
  }
}

/// Periodic checks: bounds and events at any time, agreement once the faults are over.
extension Simulation {
  /// The time limit for links, rosters, calls and documents to converge after the last fault:
  /// announcements are at most 6 s apart, and a handshake and the document exchange follow.
  static let settleLimit = Duration.seconds(12)
  /// The same limit in created channels, where nodes do not connect to a refused node for 20 s
  /// (`Node.refusalTime`), even if it receives a role in that time.
  static let settleLimitWithRoles = Duration.seconds(30)
  /// The time limit for a later hand-over, or the end of a role, to reach all nodes.
  static let disputeLimit = Duration.seconds(2)
  /// The time limit for convergence after the last fault even if each disagreement is shorter than
  /// `disputeLimit`.
  static let restlessLimit = Duration.seconds(60)
  /// The time that agreement must last before the closing messages, and again before the end.
  static let settledTime = Duration.milliseconds(800)
  static let messageLimit = Duration.seconds(5)
  static let frameLimit = Duration.seconds(20)
  /// The time limit for refusals: two periods of 20 s without connections to refused nodes
  /// (`Node.refusalTime`).
  static let refusalLimit = Duration.seconds(40)

  mutating func check() {
    schedule(.check, in: Self.checkInterval)
    checkTraffic()
    for index in nodes.indices where nodes[index].process != nil { checkStory(of: index) }
    guard isHealed, nodes.allSatisfy(\.isPresent) else { return }
    let healedAt = max(healAt, settling.changedAt)
    let views = self.views
    let dispute = disagreement(among: views) ?? surprise(in: views)
    settling.agreed(dispute == nil, at: now)
    settling.group = agreeing(views)
    if let dispute {
      settling.completeAt = nil
      let limit =
        scenario.kind == .created ? Self.settleLimitWithRoles : Self.settleLimit
      let isLate = now - healedAt >= limit
      let isLasting = settling.disputedSince.map { now - $0 >= Self.disputeLimit } ?? false
      if isLate && isLasting || now - healedAt >= Self.restlessLimit {
        violated("agreement", dispute + documentDifference(among: views))
      }
      return
    }
    guard let settledAt = settling.settledAt, now - settledAt >= Self.settledTime else { return }
    guard let spokeAt = settling.spokeAt else {
      settling.spokeAt = now
      for index in nodes.indices { say(index, to: nil) }
      return
    }
    let isComplete =
      isDone("messages", lostMessage, within: Self.messageLimit, since: max(spokeAt, healedAt))
      && isDone("video", missingFrame, within: Self.frameLimit, since: healedAt)
      && isDone("refusal", missingRefusal, within: Self.refusalLimit, since: healedAt)
    settling.completeAt = isComplete ? settling.completeAt ?? now : nil
    if let completeAt = settling.completeAt, now - completeAt >= Self.settledTime { finish() }
  }

  private mutating func isDone(
    _ checker: String, _ missing: String?, within limit: Duration, since start: Instant
  ) -> Bool {
    if checker == "video" {
      settling.framesAt = missing == nil ? settling.framesAt ?? now : nil
    }
    if let missing, now - start >= limit { violated(checker, missing) }
    return missing == nil
  }

  // MARK: Checks at any time

  private mutating func checkTraffic() {
    guard now - trafficCheckedAt >= .seconds(1) else { return }
    trafficCheckedAt = now
    let fault = bounds.secondPassed(
      sent: network.counters.sent, nodes: nodes.count, hasMedia: scenario.hasMedia)
    if let fault { violated("bounds", fault) }
  }

  private mutating func checkStory(of index: Int) {
    guard let process = nodes[index].process else { return }
    checkEntry(of: index)
    let id = channel.id
    let call = process.node.call(in: id)
    let members = process.node.members(of: id)
    var faults: [(String, String?)] = [
      (
        "bounds",
        bounds.kept(
          members: members.count, peers: process.node.statistics(at: now).count,
          participants: call?.participants.count ?? 0)
      ),
      ("bounds", bounds.kept(entries: Int(process.node.digest(of: id)?.count ?? 0))),
    ]
    if let call { faults.append(("calls", calls.seen(call.info, at: index))) }
    let missing = standings.missing(
      of: nodes[index].identity.id, at: index, known: { process.node.entries(of: id) }, now)
    faults.append(("standing", missing))
    if nodes[index].isInChannel {
      let difference = nodes[index].events.difference(members: members, call: call)
      faults.append(("events", difference))
    }
    for (checker, fault) in faults {
      if let fault { violated(checker, "\(nodes[index].label): \(fault)") }
    }
  }

  // MARK: Checks after the last fault

  private var views: [AgreementChecker.View] {
    let id = channel.id
    return nodes.compactMap { simulated in
      guard simulated.isInChannel, let process = simulated.process,
        let own = process.node.ownMember(in: id)
      else { return nil }
      return AgreementChecker.View(
        own: own, members: process.node.members(of: id),
        linked: process.node.statistics(at: now).map(\.link.peer),
        call: process.node.call(in: id), digest: process.node.digest(of: id),
        epoch: process.node.epoch(of: id),
        isLawless: simulated.index == scenario.lawless)
    }
  }

  /// The fault when a node of the group lacks a message that another node of the group holds; nil
  /// for none.
  private var lostMessage: String? {
    let readers = settling.group.map { nodes[$0].reader }
    let required = messages.held(by: readers) { nodes[$1.index].disk.holds($0) }
    for index in settling.group {
      guard let process = nodes[index].process else { continue }
      // A grant to an author outside the group may be known only on that author's side of the
      // network.
      let together = settling.group.map { nodes[$0].identity.id }
      let fault = messages.fault(
        in: process.node.history(of: channel.id).map(\.id), of: nodes[index].identity.id,
        among: required,
        isAuthor: { author in
          isSurelyMember(author)
            && (together.contains(author) || process.node.may(.sendText, author, in: channel.id))
        })
      if let fault { return "\(nodes[index].label) \(fault)" }
    }
    return nil
  }

  /// The fault when a participant has shown no frame of another participant's stream for 1.5 s, or
  /// for 5 s where the path has room for stills only, one in 4 s; nil for none.
  private var missingFrame: String? {
    guard scenario.hasMedia else { return nil }
    let inCall = settling.group.filter { nodes[$0].process?.node.isInCall(channel.id) ?? false }
    for receiver in inCall {
      for sender in inCall where paths.has(sender, receiver) {
        for stream in [StreamID.camera, .screen] where mustBeSeen(stream, of: sender) {
          let last = shownAt[shownIndex(stream, of: sender, at: receiver)]
          let silence = last.map { now - $0 } ?? .seconds(60)
          let limit =
            silence > .milliseconds(1500) && getsStills(stream, of: sender, at: receiver)
            ? Duration.seconds(5) : .milliseconds(1500)
          if silence > limit {
            return "\(nodes[receiver].label) does not see the \(stream) of \(nodes[sender].label)"
          }
        }
      }
    }
    return nil
  }

  /// Whether a receiver gets only a still now and then of a stream.
  private func getsStills(_ stream: StreamID, of sender: Int, at receiver: Int) -> Bool {
    let peers = nodes[receiver].process?.node.statistics(at: nodes[receiver].local(now)) ?? []
    let peer = peers.first { $0.link.peer == nodes[sender].identity.id }
    let received =
      stream == .camera
      ? peer?.received : peer?.streams.first { $0.stream == stream }?.received
    return received?.layer?.framesPerSecond == 0
  }

  /// Whether a node sends a stream that its role certainly permits.
  private func mustBeSeen(_ stream: StreamID, of sender: Int) -> Bool {
    if stream == .camera, nodes[sender].isVideoMuted { return false }
    let id = nodes[sender].identity.id
    return !nodes[sender].source.layers(of: stream).isEmpty
      && roles.may(stream.capability, id, at: WallTime.seconds(now), strictly: true)
      && !roles.isAmbiguous(id)
  }

  /// The fault when a node without a role has received no refusal although a neighbour in the group
  /// must have sent one; nil for none.
  private var missingRefusal: String? {
    let informed = expectedGroups.flatMap { $0 }.filter(settling.group.contains)
    for index in nodes.indices where !settling.group.contains(index) && isSurelyNonMember(index) {
      let isNear = informed.contains { paths.has(index, $0) && canUnderstand(index, $0) }
      if isNear, nodes[index].refusals.isEmpty { return "\(nodes[index].label) did not learn why" }
    }
    return nil
  }
}

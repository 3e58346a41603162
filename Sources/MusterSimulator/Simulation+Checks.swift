import MusterBase
import MusterChannel
import MusterCore
import MusterCrypto
import MusterWire

/// How far a run has come together since its last fault.
struct Settling: Sendable {
  /// When a process last came or went, or a channel was entered or left.
  private(set) var changedAt = Instant.zero
  /// Since when all agree, and since when they have not; one of them is nil.
  private(set) var settledAt: Instant?
  private(set) var disputedSince: Instant?
  /// The indices of the nodes that must agree in everything.
  var group: [Int] = []
  /// When every node sent its closing message.
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
  /// Links, rosters, calls and documents must have come together this long after the last fault:
  /// an announcement every 6 s at the latest, then a handshake and the document.
  static let settleLimit = Duration.seconds(12)
  /// The same in created channels: after a refusal a node is not connected to for 20 s
  /// (`Node.refusalTime`), even if it has a role by then.
  static let settleLimitWithRoles = Duration.seconds(30)
  /// A hand-over, or a role that ends, may come later, and must then be everywhere within this.
  static let disputeLimit = Duration.seconds(2)
  /// A channel that still changes after this long has failed to converge.
  static let restlessLimit = Duration.seconds(60)
  /// Agreement must last this long before the closing messages, and again before the end.
  static let settledTime = Duration.milliseconds(800)
  static let messageLimit = Duration.seconds(5)
  static let frameLimit = Duration.seconds(20)
  /// Two periods of 20 s in which refused nodes are not connected to (`Node.refusalTime`).
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
        violated("agreement", dispute)
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

  // MARK: At any time

  private mutating func checkTraffic() {
    guard now - trafficCheckedAt >= .seconds(1) else { return }
    trafficCheckedAt = now
    let fault = bounds.secondPassed(
      sent: network.counters.sent, nodes: nodes.count, hasMedia: scenario.hasMedia)
    if let fault { violated("bounds", fault) }
  }

  private mutating func checkStory(of index: Int) {
    guard let process = nodes[index].process else { return }
    let id = channel.id
    let call = process.node.call(in: id)
    let members = process.node.members(of: id)
    var faults: [(String, String?)] = [
      (
        "bounds",
        bounds.kept(
          members: members.count, peers: process.node.statistics().count,
          participants: call?.participants.count ?? 0)
      ),
      ("bounds", bounds.kept(entries: Int(process.node.digest(of: id)?.count ?? 0))),
    ]
    if let call { faults.append(("calls", calls.seen(call.info, at: index))) }
    if nodes[index].isInChannel {
      let difference = nodes[index].events.difference(members: members, call: call)
      faults.append(("events", difference))
    }
    for (checker, fault) in faults {
      if let fault { violated(checker, "\(nodes[index].label): \(fault)") }
    }
  }

  // MARK: At the end

  private var views: [AgreementChecker.View] {
    let id = channel.id
    return nodes.compactMap { simulated in
      guard simulated.isInChannel, let process = simulated.process,
        let own = process.node.ownMember(in: id)
      else { return nil }
      return AgreementChecker.View(
        own: own, members: process.node.members(of: id),
        linked: process.node.statistics().map(\.link.peer),
        call: process.node.call(in: id), digest: process.node.digest(of: id),
        epoch: process.node.epoch(of: id),
        isLawless: simulated.index == scenario.lawless)
    }
  }

  /// A message that a node of the group lacks and another holds.
  private var lostMessage: String? {
    let readers = settling.group.map { nodes[$0].reader }
    let required = messages.held(by: readers) { nodes[$1.index].disk.holds($0) }
    for index in settling.group {
      guard let process = nodes[index].process else { continue }
      // The grant of an author outside the group may be known to that author's side only.
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

  /// A participant that has shown no frame of another for 1.5 s.
  private var missingFrame: String? {
    guard scenario.hasMedia else { return nil }
    let inCall = settling.group.filter { nodes[$0].process?.node.isInCall(channel.id) ?? false }
    for receiver in inCall {
      for sender in inCall where paths.has(sender, receiver) {
        for stream in [StreamID.camera, .screen] where mustBeSeen(stream, of: sender) {
          let last = shownAt[shownIndex(stream, of: sender, at: receiver)]
          if last.map({ now - $0 > .milliseconds(1500) }) ?? true {
            return "\(nodes[receiver].label) does not see the \(stream) of \(nodes[sender].label)"
          }
        }
      }
    }
    return nil
  }

  /// Whether a node sends a stream that its role surely allows.
  private func mustBeSeen(_ stream: StreamID, of sender: Int) -> Bool {
    if stream == .camera, nodes[sender].isVideoMuted { return false }
    let id = nodes[sender].identity.id
    return !nodes[sender].source.layers(of: stream).isEmpty
      && roles.may(stream.capability, id, at: WallTime.seconds(now), strictly: true)
      && !roles.isAmbiguous(id)
  }

  /// A node without a role that no informed neighbour has refused.
  private var missingRefusal: String? {
    let informed = expectedGroups.flatMap { $0 }.filter(settling.group.contains)
    for index in nodes.indices where !settling.group.contains(index) && isSurelyNonMember(index) {
      let isNear = informed.contains { paths.has(index, $0) && canUnderstand(index, $0) }
      if isNear, nodes[index].refusals.isEmpty { return "\(nodes[index].label) did not learn why" }
    }
    return nil
  }
}

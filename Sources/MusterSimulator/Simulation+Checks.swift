import MusterBase
import MusterCore
import MusterCrypto
import MusterMesh

/// What is looked at every so often: bounds all the time, agreement once there are no faults.
extension Simulation {
  mutating func check() {
    schedule(.check, in: Self.checkInterval)
    noticeEndedCalls()
    for place in nodes.indices { checkBounds(place) }
    guard isCalm, let calmedAt else { return }
    let dispute = AgreementChecker.disagreement(among: views)
    settledAt = dispute == nil ? settledAt ?? now : nil
    if let dispute, now - calmedAt >= Self.settleLimit {
      violated("agreement", dispute)
      return
    }
    let missing = dispute ?? missingPicture
    picturesAt = missing == nil ? picturesAt ?? now : nil
    if let missing, now - calmedAt >= Self.pictureLimit {
      violated("pictures", missing)
      return
    }
    if let picturesAt, now - picturesAt >= Self.settledTime { finish() }
  }

  /// When the last process came or went and the network became whole: agreement takes time from
  /// then.
  private var calmedAt: Instant? {
    nodes.contains { ($0.node != nil) != $0.isInChannel } ? nil : max(calmAt, lastChangeAt)
  }

  private mutating func checkBounds(_ place: Int) {
    guard let node = nodes[place].node else { return }
    let channel = key.channelID
    let fault = bounds.kept(
      members: node.members(of: channel).count, peers: node.statistics().count,
      participants: node.call(in: channel)?.participants.count ?? 0)
    if let fault { violated("bounds", "\(nodes[place].label): \(fault)") }
  }

  private var views: [AgreementChecker.View] {
    let channel = key.channelID
    return nodes.compactMap { simulated in
      guard let node = simulated.node, let own = node.ownMember(in: channel) else { return nil }
      return AgreementChecker.View(
        own: own, members: node.members(of: channel),
        linked: node.statistics().map(\.link.peer), call: node.call(in: channel))
    }
  }

  /// Somebody in the call who does not see somebody else, as of the last second and a half.
  private var missingPicture: String? {
    let channel = key.channelID
    let inCall = nodes.filter { $0.node?.isInCall(channel) ?? false }
    for receiver in inCall {
      for sender in inCall where sender.place != receiver.place {
        guard !sender.isVideoMuted, !sender.source.layers.isEmpty else { continue }
        let last = shownAt[receiver.place * nodes.count + sender.place]
        if last.map({ now - $0 > .milliseconds(1500) }) ?? true {
          return "\(receiver.label) does not see \(sender.label)"
        }
      }
    }
    return nil
  }
}

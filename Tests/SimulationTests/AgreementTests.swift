import MusterBase
import MusterChannel
import MusterCrypto
import MusterSimulator
import MusterWire
import Testing

/// The checker for agreement of rosters, calls and documents.
struct AgreementTests {
  private func id(_ seed: UInt64) -> NodeID {
    var entropy = Entropy.seeded(seed)
    return Identity(generating: &entropy).id
  }

  private func member(_ seed: UInt64, call: CallInfo? = nil) -> Member {
    Member(
      id: id(seed), name: "m\(seed)", flags: call == nil ? [] : [.inCall], call: call?.id,
      bootID: seed)
  }

  private func views(_ members: [Member], call: CallInfo? = nil) -> [AgreementChecker.View] {
    let sorted = members.sorted { $0.id < $1.id }
    let inCall = sorted.filter(\.isInCall).map(\.id)
    let active = call.map { ActiveCall(info: $0, participants: inCall, byPresence: inCall) }
    return members.map { own in
      let others = sorted.filter { $0.id != own.id }
      return AgreementChecker.View(
        own: own, members: others, linked: others.map(\.id), call: active,
        digest: DocumentDigest(count: 3, sum: .zero))
    }
  }

  private func disagree(_ views: [AgreementChecker.View]) -> Bool {
    AgreementChecker.disagreement(among: views) != nil
  }

  private var call: CallInfo {
    CallInfo(
      id: CallID(high: 1, low: 2), initiator: id(1), startedAt: 5, term: 1, order: 1,
      standing: .joined)
  }

  @Test func equalViewsAgree() {
    #expect(!disagree([]))
    #expect(!disagree(views([member(1)])))
    #expect(
      !disagree(views([member(1, call: call), member(2), member(3, call: call)], call: call)))
  }

  /// Members in a call that nobody may lead see it, and others need not; one that is led is seen by
  /// all.
  @Test(arguments: [false, true])
  func aCallThatNobodyLeadsNeedNotBeSeenByAll(isLed: Bool) {
    var views = views([member(1, call: call), member(2), member(3, call: call)], call: call)
    for index in views.indices { views[index].call?.isLed = isLed }
    #expect(!disagree(views))
    views[1].call = nil
    #expect(disagree(views) == isLed)
    views[2].call?.byPresence.reverse()
    #expect(disagree(views))
  }

  @Test func theSpeakingFlagMayDiffer() {
    var views = views([member(1), member(2)])
    views[0].own.flags.insert(.speaking)
    #expect(!disagree(views))
  }

  @Test func membersBehindOthersCount() {
    // A chain: the first and the last have no link.
    var views = views([member(1), member(2), member(3)])
    views[0].linked = [id(2)]
    views[2].linked = [id(2)]
    #expect(AgreementChecker.groups(views).count == 1)
    #expect(!disagree(views))
    views[0].members.removeAll { $0.id == id(3) }
    #expect(disagree(views))
  }

  @Test func separateGroupsNeedNotAgree() {
    let apart = views([member(1)]) + views([member(2), member(3)])
    #expect(AgreementChecker.groups(apart).map(\.count) == [1, 2])
    #expect(!disagree(apart))
  }

  @Test func aLinkThatOneEndAloneHasIsNone() {
    var views = views([member(1), member(2)])
    views[1].linked = []
    #expect(AgreementChecker.groups(views).count == 2)
    // Each roster lists a member that is unreachable.
    #expect(disagree(views))
  }

  @Test func anythingThatDiffersIsFound() {
    let good = views([member(1, call: call), member(2), member(3, call: call)], call: call)
    #expect(!disagree(good))
    let changes: [(inout AgreementChecker.View) -> Void] = [
      { $0.members[0].flags.insert(.audioMuted) }, { $0.members[0].role = .consumer },
      { $0.members[0].name = "else" }, { $0.members.append(self.member(9)) },
      { $0.call = nil }, { $0.call?.info.term = 2 }, { $0.call?.participants.removeLast() },
      { $0.call?.byPresence = [] }, { $0.digest = DocumentDigest(count: 4, sum: .zero) },
      { $0.epoch = 1 },
    ]
    for (number, change) in changes.enumerated() {
      for index in good.indices {
        var changed = good
        change(&changed[index])
        #expect(disagree(changed), "change \(number) at \(index)")
        // The state of a patched node is not checked.
        changed[index].isLawless = true
        #expect(!disagree(changed), "change \(number) at \(index)")
      }
    }
  }

  @Test func aCallThatNobodyElseSeesIsFound() {
    var views = views([member(1, call: call), member(2)], call: call)
    views[0].own.call = CallID(high: 3, low: 4)
    #expect(disagree(views))
  }
}

import MusterBase
import MusterChannel
import MusterCrypto
import MusterSimulator
import MusterWire
import Testing

private func nodeID(_ seed: UInt64) -> NodeID {
  var entropy = Entropy.seeded(seed)
  return Identity(generating: &entropy).id
}

private let first = nodeID(1)
private let second = nodeID(2)

/// The roles that follow from the owners' grants.
struct RoleCheckerTests {
  private let owner = nodeID(9)

  private func order(_ lamport: UInt64) -> RoleChecker.Order {
    RoleChecker.Order(lamport: lamport, author: owner)
  }

  private func checker() -> RoleChecker {
    RoleChecker(owner: owner, settings: ChannelSettings(onlyPresentersSend: true))
  }

  @Test func inAnOpenChannelEveryoneIsAPresenter() {
    let checker = RoleChecker(owner: nil, settings: ChannelSettings())
    #expect(checker.role(of: first, at: 0) == .presenter)
    #expect(checker.may(.startCall, first, at: 0, strictly: true))
    #expect(!checker.may(.grant, first, at: 0, strictly: false))
  }

  @Test func nonMembersHaveNoCapability() {
    let checker = checker()
    #expect(checker.role(of: first, at: 0) == .none)
    #expect(!checker.may(.receive, first, at: 0, strictly: false))
    #expect(checker.role(of: owner, at: 0) == .owner)
  }

  @Test func theNewestGrantCountsInTheEnd() {
    var checker = checker()
    checker.granted(.attendee, to: first, expiresAt: 0, order: order(5))
    checker.granted(.presenter, to: first, expiresAt: 0, order: order(4))
    #expect(checker.role(of: first, at: 0) == .attendee)
    // A node may not have received the newer grant yet.
    #expect(checker.may(.sendVideo, first, at: 0, strictly: false))
    #expect(!checker.may(.sendVideo, first, at: 0, strictly: true))
    #expect(!checker.may(.grant, first, at: 0, strictly: false))
  }

  @Test func rolesEnd() {
    var checker = checker()
    checker.granted(.presenter, to: first, expiresAt: 100, order: order(1))
    #expect(checker.role(of: first, at: 99) == .presenter)
    #expect(checker.role(of: first, at: 100) == .none)
  }

  @Test func invitesEndWithARemoval() {
    var checker = checker()
    for member in [first, second] {
      checker.invited(member, as: .presenter, expiresAt: 0, epoch: 0, order: order(1))
    }
    #expect(checker.role(of: first, at: 0) == .presenter)
    checker.changedKey(removing: [])
    #expect(checker.role(of: first, at: 0) == .presenter)
    checker.changedKey(removing: [second])
    checker.granted(.none, to: second, expiresAt: 0, order: order(2))
    checker.granted(.attendee, to: first, expiresAt: 0, order: order(3))
    #expect(checker.epoch == 2 && checker.removed.map(\.member) == [second])
    #expect(checker.role(of: first, at: 0) == .attendee)
    #expect(checker.role(of: second, at: 0) == .none)
    checker.invited(second, as: .consumer, expiresAt: 0, epoch: 2, order: order(4))
    #expect(checker.role(of: second, at: 0) == .consumer)
    #expect(checker.isAmbiguous(second) && !checker.isAmbiguous(first))
  }
}

/// The checker for nodes that show a call whose end they have received.
struct CallCheckerTests {
  private func call(_ term: UInt32, by initiator: NodeID = first) -> CallInfo {
    CallInfo(
      id: CallID(high: 1, low: 1), initiator: initiator, startedAt: 0, term: term, order: 1,
      standing: .joined)
  }

  private func word(_ term: UInt32, _ author: NodeID = first) -> CallChecker.Statement {
    CallChecker.Statement(call: CallID(high: 1, low: 1), term: term, author: author)
  }

  @Test func anEndedCallThatComesBackIsFound() {
    var checker = CallChecker(nodes: 2)
    checker.learnt(claim: word(1), at: 0)
    #expect(checker.seen(call(1), at: 0) == nil)
    checker.learnt(end: word(1), at: 0)
    #expect(checker.seen(call(1), at: 0) != nil)
    // A node without the end may stay in the call, and so may a successor of a later term.
    #expect(checker.seen(call(1), at: 1) == nil)
    #expect(checker.seen(call(2, by: second), at: 0) == nil)
    #expect(checker.seen(call(1, by: second), at: 0) == nil)
    checker.forgot(0)
    #expect(checker.seen(call(1), at: 0) == nil)
  }

  @Test func theEndOfARemovedMemberDoesNotCount() {
    var checker = CallChecker(nodes: 1)
    checker.learnt(claim: word(1), at: 0)
    checker.learnt(end: word(1), at: 0)
    checker.removed(second, from: call(1).id)
    checker.removed(first, from: CallID(high: 1, low: 2))
    #expect(checker.seen(call(1), at: 0) != nil)
    checker.removed(first, from: call(1).id)
    #expect(checker.seen(call(1), at: 0) == nil)
  }

  @Test func anEndCoversEarlierTerms() {
    var checker = CallChecker(nodes: 1)
    checker.learnt(end: word(3), at: 0)
    // An end without a claim of its term has no effect.
    #expect(checker.seen(call(2), at: 0) == nil)
    checker.learnt(claim: word(3), at: 0)
    #expect(checker.seen(call(2, by: second), at: 0) != nil)
    #expect(checker.seen(call(4), at: 0) == nil)
  }

  @Test func callsAreCountedOnce() {
    var checker = CallChecker(nodes: 1)
    for _ in 0..<2 {
      checker.learnt(claim: word(1), at: 0)
      checker.learnt(end: word(1), at: 0)
    }
    #expect(checker.seen(call(1), at: 0) != nil)
    checker.learnt(claim: word(2, second), at: 0)
    #expect(checker.totals == CallTotals(started: 1, ended: 1, handedOver: 1))
  }
}

/// The checker for inconsistent sequences of events.
struct EventCheckerTests {
  private func member(_ id: NodeID, flags: MemberFlags = []) -> Member {
    Member(id: id, name: "m", flags: flags, bootID: 1)
  }

  private func call(_ participants: [NodeID], initiator: NodeID = first) -> ActiveCall {
    let info = CallInfo(
      id: CallID(high: 1, low: 1), initiator: initiator, startedAt: 0, term: 1, order: 1,
      standing: .joined)
    return ActiveCall(info: info, participants: participants.sorted(), byPresence: participants)
  }

  /// The first fault in a sequence of events.
  private func fault(_ events: [ChannelEvent]) -> String? {
    var checker = EventChecker()
    for event in events {
      if let fault = checker.saw(event) { return fault }
    }
    return nil
  }

  @Test func consistentEventsPass() {
    let quiet = member(first, flags: .audioMuted)
    let story: [ChannelEvent] = [
      .memberJoined(member(first)), .memberUpdated(quiet), .memberLeft(quiet, .left),
      .memberJoined(member(first)), .callStarted(call([first])),
      .callJoined(call([first, second]), second),
      .callHandedOver(call([first, second], initiator: second)),
      .callLeft(call([second], initiator: second), first, .crashed),
      .callEnded(call([second], initiator: second).info, reason: CallEndReason.ended),
      .callStarted(call([second])), .keyChanged(epoch: 1), .keyChanged(epoch: 2),
    ]
    #expect(fault(story) == nil)
  }

  @Test func inconsistentEventsAreFound() {
    let started = ChannelEvent.callStarted(call([first]))
    let broken: [[ChannelEvent]] = [
      [.memberJoined(member(first)), .memberJoined(member(first))],
      [.memberLeft(member(first), .left)], [.memberUpdated(member(first))],
      [.memberJoined(member(first)), .memberUpdated(member(first))],
      [started, started], [.callEnded(call([first]).info, reason: "")],
      [.callJoined(call([first]), first)], [started, .callJoined(call([first]), first)],
      [started, .callJoined(call([first, second, nodeID(3)]), second)],
      [started, .callLeft(call([first]), second, .left)],
      [started, .callHandedOver(call([first]))],
      [.keyChanged(epoch: 2), .keyChanged(epoch: 2)],
    ]
    for (number, story) in broken.enumerated() {
      #expect(fault(story) != nil, "story \(number)")
    }
  }

  @Test func eventsMustAddUpToWhatIs() {
    var checker = EventChecker()
    #expect(checker.saw(.memberJoined(member(first))) == nil)
    #expect(checker.saw(.callStarted(call([first]))) == nil)
    #expect(checker.difference(members: [member(first)], call: call([first])) == nil)
    #expect(checker.difference(members: [], call: call([first])) != nil)
    #expect(checker.difference(members: [member(first)], call: nil) != nil)
    #expect(checker.difference(members: [member(first)], call: call([first, second])) != nil)
    let other = call([first], initiator: second)
    #expect(checker.difference(members: [member(first)], call: other) != nil)
    checker.entered()
    #expect(checker.difference(members: [], call: nil) == nil)
  }
}

/// The checker for messages that are lost, duplicated, altered, misdelivered or reordered.
struct MessageCheckerTests {
  private let here = MessageChecker.Reader(index: 0, memory: 0)
  private let there = MessageChecker.Reader(index: 1, memory: 0)

  private func entryID(_ number: UInt8) -> EntryID {
    EntryID([number] + [UInt8](repeating: 0, count: 31)) ?? .zero
  }

  private func at(_ milliseconds: Int) -> Instant { .zero + .milliseconds(milliseconds) }

  private func word(
    _ number: UInt8, to: NodeID? = nil, after: [UInt8] = []
  ) -> MessageChecker.Draft {
    MessageChecker.Draft(
      text: "text \(number)", id: entryID(number), from: first, to: to,
      after: after.map { entryID($0).prefix })
  }

  private func message(_ number: UInt8, to: NodeID? = nil, text: String? = nil) -> TextMessage {
    TextMessage(
      id: entryID(number), from: first, to: to, text: text ?? "text \(number)", sentAt: 0,
      counter: 1)
  }

  @Test func messagesShownOnceAndInOrderPass() {
    var checker = MessageChecker()
    checker.sent(word(1), at: here, at(0))
    checker.sent(word(2, after: [1]), at: here, at(10))
    for number in [1, 2] as [UInt8] {
      checker.kept(entryID(number), at: there, isUnproven: false, at: at(20))
      let fault = checker.shown(message(number), at: there, own: second, at: at(50))
      #expect(fault == nil)
    }
    #expect(checker.totals.sent == 2 && checker.totals.shown == 2)
    #expect(checker.totals.medianDelay == .milliseconds(40))
  }

  @Test func doubledAlteredAndMisplacedOnesAreFound() {
    var checker = MessageChecker()
    checker.sent(word(1), at: here, at(0))
    checker.sent(word(2, to: first), at: here, at(0))
    #expect(checker.shown(message(1), at: there, own: second, at: at(1)) != nil, "never came")
    for number in [1, 2] as [UInt8] {
      checker.kept(entryID(number), at: there, isUnproven: false, at: at(1))
    }
    #expect(checker.shown(message(7), at: there, own: second, at: at(2)) != nil)
    let altered = message(1, text: "other")
    #expect(checker.shown(altered, at: there, own: second, at: at(2)) != nil)
    #expect(checker.shown(message(2, to: first), at: there, own: second, at: at(2)) != nil)
    #expect(checker.shown(message(1), at: there, own: second, at: at(2)) == nil)
    #expect(checker.shown(message(1), at: there, own: second, at: at(3)) != nil)
    // After a lost disk a node shows the message again.
    let anew = MessageChecker.Reader(index: 1, memory: 1)
    checker.kept(entryID(1), at: anew, isUnproven: false, at: at(4))
    #expect(checker.shown(message(1), at: anew, own: second, at: at(5)) == nil)
  }

  @Test(arguments: [(100, true), (2900, true), (3100, false)])
  func aCauseAfterItsEffectIsFound(waited: Int, isFault: Bool) {
    var checker = MessageChecker()
    checker.sent(word(1), at: here, at(0))
    checker.sent(word(2, after: [1]), at: here, at(10))
    checker.kept(entryID(2), at: there, isUnproven: false, at: at(100))
    #expect(checker.shown(message(2), at: there, own: second, at: at(100 + waited)) == nil)
    checker.kept(entryID(1), at: there, isUnproven: false, at: at(200 + waited))
    let fault = checker.shown(message(1), at: there, own: second, at: at(300 + waited))
    #expect((fault != nil) == isFault)
  }

  /// A message is shown with one that follows it, when the wait of that one ends.
  @Test(arguments: [(2900, true), (3100, false)])
  func theWaitOfAFollowerEndsThatOfAMessage(waited: Int, isFault: Bool) {
    var checker = MessageChecker()
    checker.sent(word(1), at: here, at(0))
    checker.sent(word(2, after: [1]), at: here, at(10))
    checker.sent(word(3, after: [2]), at: here, at(20))
    checker.kept(entryID(3), at: there, isUnproven: false, at: at(100))
    checker.kept(entryID(2), at: there, isUnproven: false, at: at(2000))
    #expect(checker.shown(message(2), at: there, own: second, at: at(100 + waited)) == nil)
    checker.kept(entryID(1), at: there, isUnproven: false, at: at(3500))
    let fault = checker.shown(message(1), at: there, own: second, at: at(3600))
    #expect((fault != nil) == isFault)
  }

  /// Message 1 has arrived before message 2 is shown, or is accepted later, when its author may
  /// write again.
  @Test(arguments: [true, false], [20, 800])
  func aMessageWhoseAuthorLostItsRightMayBeOvertaken(isWithheld: Bool, arrival: Int) {
    var checker = MessageChecker()
    checker.sent(word(1), at: here, at(0))
    checker.sent(word(2, after: [1]), at: here, at(10))
    checker.kept(entryID(2), at: there, isUnproven: false, at: at(20))
    if arrival < 50 { checker.kept(entryID(1), at: there, isUnproven: false, at: at(arrival)) }
    let fault = checker.shown(
      message(2), at: there, own: second, at: at(50), mayWrite: { _ in !isWithheld })
    #expect(fault == nil)
    // The author has the right to write again.
    if arrival > 50 { checker.kept(entryID(1), at: there, isUnproven: false, at: at(arrival)) }
    let later = checker.shown(message(1), at: there, own: second, at: at(900))
    #expect((later == nil) == isWithheld)
  }

  @Test func aLostMessageIsFound() {
    var checker = MessageChecker()
    checker.sent(word(1), at: here, at(0))
    checker.sent(word(2, to: nodeID(7)), at: here, at(0))
    #expect(checker.held(by: [there]).isEmpty)
    var dropping = checker
    dropping.dropped(entryID(1))
    #expect(!dropping.held(by: [here, there]).contains(0))
    let required = checker.held(by: [here, there])
    #expect(required == [0, 1])
    func fault(_ history: [EntryID]) -> String? {
      checker.fault(in: history, of: second, among: required, isAuthor: { $0 == first })
    }
    #expect(fault([entryID(1)]) == nil)
    #expect(fault([]) != nil)
    #expect(fault([entryID(1), entryID(1)]) != nil)
    let ofNonMember = checker.fault(
      in: [], of: second, among: required, isAuthor: { _ in false })
    #expect(ofNonMember == nil)
  }
}

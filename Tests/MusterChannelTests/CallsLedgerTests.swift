import MusterBase
import MusterChannel
import MusterCrypto
import MusterWire
import Testing

/// A set of call entries, and the call that follows from them.
struct CallsBooks {
  var entries = CallEntries(claims: [], ends: [], joinings: [])
  var claims: [SignedEntry] {
    get { entries.claims }
    set { entries.claims = newValue }
  }
  var ends: [SignedEntry] {
    get { entries.ends }
    set { entries.ends = newValue }
  }
  /// The members in a call, each with its call and the Lamport counter of its joining.
  var present: [(member: NodeID, participation: Participation)] = []
  /// Members without the right to start or take over a call.
  var listeners: [NodeID] = []
  /// The member that sees the call; nil for one that is in none.
  var viewer: NodeID?
  var rules = CallRules()

  mutating func add(_ new: SignedEntry...) {
    for entry in new {
      switch entry.entry.body.kind {
      case .claim: entries.claims.append(entry)
      case .end: entries.ends.append(entry)
      default: entries.joinings.append(entry)
      }
    }
  }

  mutating func join(_ pen: Pen, _ call: UInt64, since joined: UInt64 = 0) {
    present.append((pen.id, Participation(id: callID(call), joined: joined)))
  }

  func may(_ capability: Capability, _ member: NodeID) -> Bool {
    capability == .joinCall || !listeners.contains(member)
  }

  var active: ActiveCall? {
    CallLedger.active(entries, present: present, viewer: viewer, rules: rules, may: may)
  }

  func isOver(_ call: UInt64) -> Bool {
    CallLedger.isOver(callID(call), entries, may: may)
  }

  func info(_ call: UInt64) -> CallInfo? {
    CallLedger.info(of: callID(call), entries, may: may)
  }
}

struct CallsLedgerTests {
  private var books = CallsBooks()
  private var a = Pen(1)
  private var b = Pen(2)
  private var c = Pen(3)

  @Test mutating func theStarterOfACallIsItsInitiator() {
    books.add(a.claim(7, lamport: 5, startedAt: 1000))
    #expect(books.active == nil)
    #expect(!books.isOver(7))
    books.join(b, 7, since: 6)
    books.join(a, 7, since: 5)
    books.join(c, 9, since: 1)
    let info = CallInfo(
      id: callID(7), initiator: a.id, startedAt: 1000, term: 1, order: 5, standing: .informed)
    #expect(
      books.active
        == ActiveCall(
          info: info, participants: [a.id, b.id].sorted(), byPresence: [a.id, b.id]))
    #expect(books.info(7) == info)
    #expect(books.info(9) == nil && !books.isOver(9))
  }

  @Test mutating func ofConcurrentCallsTheEarliestWithSomebodyInItStays() {
    books.add(a.claim(7, lamport: 5), b.claim(8, lamport: 4), c.claim(9, lamport: 4))
    books.join(a, 7)
    #expect(books.active?.info.id == callID(7))
    books.join(c, 9)
    #expect(books.active?.info.id == callID(9))
    books.join(b, 8)
    #expect(books.active?.info.id == callID(8))
  }

  @Test mutating func theInitiatorEndsTheCall() {
    books.add(a.claim(7, lamport: 5))
    books.join(b, 7)
    books.add(a.end(7, lamport: 6))
    #expect(books.active == nil)
    #expect(books.isOver(7))
    #expect(books.info(7) == nil)
  }

  @Test mutating func anotherClaimOfTheInitiatorDoesNotBringItBack() {
    books.add(a.claim(7, lamport: 5), a.end(7, lamport: 6), a.claim(7, lamport: 7))
    books.join(a, 7)
    #expect(books.active == nil)
    #expect(books.isOver(7))
  }

  @Test mutating func aHandOverKeepsTheCallAndItsAge() {
    books.add(a.claim(7, lamport: 5, startedAt: 1000))
    books.add(b.claim(7, term: 2, lamport: 20, startedAt: 1000, order: 5))
    books.join(b, 7)
    let info = CallInfo(
      id: callID(7), initiator: b.id, startedAt: 1000, term: 2, order: 5, standing: .lasting)
    #expect(books.active?.info == info)
    // A document may drop the claim of the first term, and with it the original initiator.
    books.claims.removeFirst()
    var forgotten = info
    forgotten.standing = .informed
    #expect(books.active?.info == forgotten)
  }

  @Test mutating func anEndCoversTermsUpToItsOwn() {
    books.add(a.claim(7, lamport: 5), b.claim(7, term: 2, lamport: 20, order: 5))
    books.join(c, 7)
    books.add(b.end(7, term: 2, lamport: 21))
    #expect(books.isOver(7))
    books.add(c.claim(7, term: 3, lamport: 22, order: 5))
    #expect(books.active?.info.initiator == c.id)
  }

  @Test mutating func theSuccessorBeyondAPartitionOutlivesTheEndOfTheOldTerm() {
    books.add(a.claim(7, lamport: 5), b.claim(7, term: 2, lamport: 20, order: 5))
    books.join(b, 7)
    books.add(a.end(7, lamport: 100))
    #expect(books.active?.info.initiator == b.id)
    #expect(!books.isOver(7))
  }

  @Test mutating func ofTwoSuccessorsTheFirstLeadsAndNeitherEndsTheOther() {
    books.add(
      a.claim(7, lamport: 5), c.claim(7, term: 2, lamport: 21, order: 5),
      b.claim(7, term: 2, lamport: 20, order: 5))
    books.join(c, 7)
    #expect(books.active?.info.initiator == b.id)
    books.add(b.end(7, term: 2, lamport: 30))
    #expect(books.active?.info.initiator == c.id)
    #expect(books.active?.info.term == 2)
  }

  @Test mutating func theLeadingSuccessorEndsTheCallForBoth() throws {
    books.add(
      a.claim(7, lamport: 5), c.claim(7, term: 2, lamport: 21, order: 5),
      b.claim(7, term: 2, lamport: 20, order: 5))
    books.join(c, 7)
    let info = try #require(books.info(7))
    let bodies = CallLedger.ending(
      info, by: b.id, books.entries, may: books.may)
    #expect(bodies.map(\.kind) == [.claim, .end])
    for (index, body) in bodies.enumerated() {
      books.add(b.sign(body, lamport: 30 + UInt64(index)))
    }
    #expect(books.isOver(7))
  }

  @Test mutating func anInitiatorAloneEndsItsOwnTerm() throws {
    books.add(a.claim(7, lamport: 5), b.claim(7, term: 2, lamport: 20, order: 5))
    let info = try #require(books.info(7))
    let bodies = CallLedger.ending(
      info, by: b.id, books.entries, may: books.may)
    #expect(bodies == [.end(CallEnd(call: callID(7), term: 2))])
  }

  /// None of these ends has an effect, because its author has no valid claim to that call and term.
  @Test mutating func nobodyEndsTheCallOfAnother() {
    books.add(a.claim(7, lamport: 5))
    books.join(a, 7)
    books.listeners = [c.id]
    let call = books.active
    let forged = [
      b.end(7, term: 1, lamport: 9), b.end(7, term: 2, lamport: 9),
      b.end(7, term: .max, lamport: 9), b.end(7, term: 0, lamport: 9),
      a.end(7, term: 2, lamport: 9), a.end(7, term: 0, lamport: 9),
      a.end(7, term: .max, lamport: 9), a.end(8, term: 1, lamport: 9),
      c.end(7, term: 1, lamport: 9),
    ]
    for end in forged {
      var other = books
      other.add(end)
      #expect(other.active == call)
    }
    books.ends = forged
    #expect(books.active == call)
    #expect(!books.isOver(7))
  }

  @Test mutating func entriesBeyondARoleHaveNoEffect() {
    books.listeners = [c.id]
    books.add(c.claim(9, lamport: 1))
    books.join(c, 9)
    #expect(books.active == nil)
    #expect(!books.isOver(9))

    books.add(a.claim(7, lamport: 5))
    books.join(b, 7)
    let call = books.active
    books.add(
      c.claim(7, lamport: 1), c.claim(7, term: 2, lamport: 6), c.end(7, term: 2, lamport: 7),
      c.end(7, term: 1, lamport: 8))
    #expect(books.active == call)
    #expect(call?.info.initiator == a.id)
  }

  @Test mutating func aCallGoesWithTheRightToIt() {
    books.add(a.claim(7, lamport: 5))
    books.join(b, 7)
    #expect(books.active != nil)
    books.listeners = [a.id]
    #expect(books.active == nil)
    books.add(b.claim(7, term: 2, lamport: 9, order: 5))
    #expect(books.active?.info.initiator == b.id)
  }

  @Test mutating func aMemberWithoutTheRightIsNoParticipant() {
    books.add(a.claim(7, lamport: 5))
    books.join(a, 7)
    books.join(b, 7)
    let (kept, barred) = (a.id, b.id)
    let call = CallLedger.active(
      books.entries, present: books.present, viewer: nil,
      may: { $0 != .joinCall || $1 != barred })
    #expect(call?.participants == [kept])
    #expect(call?.byPresence == [kept])
  }

  @Test mutating func participantsAreOrderedBySeniority() {
    books.add(a.claim(7, lamport: 5))
    books.join(c, 7, since: 8)
    books.join(b, 7, since: 8)
    books.join(a, 7, since: 9)
    #expect(books.active?.byPresence == [b.id, c.id].sorted() + [a.id])
    #expect(books.active?.participants == [a.id, b.id, c.id].sorted())
  }

  @Test mutating func theLastTermIsNotCountedBeyond() throws {
    books.add(a.claim(7, term: .max, lamport: 5), b.claim(7, term: .max, lamport: 6))
    books.join(a, 7)
    let info = try #require(books.info(7))
    let bodies = CallLedger.ending(
      info, by: a.id, books.entries, may: books.may)
    #expect(bodies == [.end(CallEnd(call: callID(7), term: .max))])
  }

  // MARK: Which of two calls stays

  /// The evidence for the standing of call 7; call 8 was started by a newcomer that had seen no
  /// other member, and has the smaller Lamport counter.
  enum Evidence: CaseIterable {
    case comparison, waiting, meeting, twoWhoStayed, takeover
  }

  @Test(arguments: Evidence.allCases)
  mutating func aNewcomersCallDisplacesNoEstablishedOne(evidence: Evidence) {
    let knowledge = evidence == .comparison ? CallClaim.Knowledge.compared : .none
    books.add(a.claim(7, lamport: 500, knowledge: knowledge))
    books.add(c.claim(8, lamport: 1, knowledge: .none))
    books.join(a, 7)
    books.join(c, 8)
    #expect(books.active?.info.id == callID(evidence == .comparison ? 7 : 8))
    switch evidence {
    case .comparison: break
    case .meeting: books.add(b.joining(7, .met, lamport: 501))
    case .waiting: books.add(a.joining(7, .met, lamport: 501))
    case .twoWhoStayed:
      books.add(a.joining(7, .lasting, lamport: 501), b.joining(7, .lasting, lamport: 501))
    case .takeover: books.add(b.claim(7, term: 2, lamport: 501, knowledge: knowledge))
    }
    #expect(books.active?.info.id == callID(7))
    let standing = [CallStanding.informed, .informed, .joined, .lasting, .lasting]
    #expect(books.info(7)?.standing == standing[Evidence.allCases.firstIndex(of: evidence) ?? 0])
  }

  @Test mutating func aCallThatLastedBeatsTenNewcomersWhoMetEachOtherFirst() {
    books.add(a.claim(7, lamport: 500))
    books.add(a.joining(7, .lasting, lamport: 501), b.joining(7, .lasting, lamport: 502))
    books.add(c.claim(8, lamport: 1))
    for number in 10..<20 {
      var newcomer = Pen(UInt64(number))
      books.add(newcomer.joining(8, .met, lamport: 2))
      books.join(newcomer, 8)
    }
    books.join(a, 7)
    #expect(books.active?.info.id == callID(7))
  }

  /// One member can sign any number of claims and joinings, but these do not raise the standing.
  @Test mutating func oneMembersWordEstablishesNoCall() {
    books.add(a.claim(7, lamport: 500))
    books.add(b.joining(7, .met, lamport: 501))
    books.add(c.claim(8, lamport: 1))
    books.add(c.joining(8, .lasting, lamport: 2))
    books.add(c.claim(8, term: 2, lamport: 3), c.claim(8, term: 3, lamport: 4))
    books.join(a, 7)
    books.join(c, 8)
    #expect(books.info(8)?.standing == .informed)
    #expect(books.active?.info.id == callID(7))
  }

  @Test mutating func amongEqualsTheEarlierCallStays() {
    for (pen, call) in [(a, 7), (b, 8)] as [(Pen, UInt64)] {
      var (pen, other) = (pen, c)
      books.add(pen.claim(call, lamport: 10 - call))
      books.add(other.joining(call, .met, lamport: 20))
      books.join(pen, call)
    }
    #expect(books.active?.info.id == callID(8))
  }

  // MARK: Calls that nobody may lead

  /// Any number of members that may lead no call bring nobody into one whose initiator has crashed.
  @Test mutating func aCallThatNobodyLeadsDisplacesNone() {
    books.add(a.claim(7, lamport: 1), b.claim(8, lamport: 500))
    for number in 10..<20 {
      var key = Pen(UInt64(number))
      books.listeners.append(key.id)
      books.add(key.joining(7, .lasting, lamport: 2))
      books.join(key, 7)
    }
    books.join(b, 8)
    for viewer in [nil, a.id, b.id, books.listeners[0]] {
      books.viewer = viewer
      #expect(books.active?.info.id == callID(8))
      #expect(books.active?.isLed == true)
    }
    books.listeners.removeFirst()
    #expect(books.active?.info.id == callID(7))
  }

  @Test mutating func aCallThatNobodyLeadsStaysForItsParticipants() {
    books.add(a.claim(7, lamport: 1), b.claim(8, lamport: 500))
    let (listener, other) = (Pen(10), Pen(11))
    books.listeners = [listener.id, other.id]
    books.join(listener, 7)
    books.join(other, 8)
    for endsWithInitiator in [false, true] {
      books.rules = CallRules(endsWithInitiator: endsWithInitiator)
      for (viewer, call) in [(listener, 7), (other, 8)] as [(Pen, UInt64)] {
        books.viewer = viewer.id
        #expect(books.active?.info.id == callID(call))
        #expect(books.active?.isLed == false)
      }
      books.viewer = nil
      #expect(books.active?.info.id == (endsWithInitiator ? nil : callID(7)))
    }
  }
}

import MusterBase
import MusterChannel
import MusterCrypto
import MusterWire
import Testing

/// Properties of calls that hold whatever the network does; every failure names its seed.
struct CallsPropertyTests {
  // MARK: Entries alone

  private func randomEntries(_ prng: inout PRNG) -> [SignedEntry] {
    var pens = (1...4).map { Pen($0) }
    return (0..<(4 + prng.below(20))).map { _ in
      let (author, call) = (prng.below(pens.count), UInt64(prng.below(3)))
      let (term, lamport) = (UInt32(1 + prng.below(3)), UInt64(1 + prng.below(12)))
      switch prng.below(10) {
      case 0..<5:
        return pens[author].claim(
          call, term: term, lamport: lamport, startedAt: lamport, order: term == 1 ? 0 : call,
          knowledge: prng.chance(0.5) ? .none : .compared)
      case 5..<8: return pens[author].end(call, term: term, lamport: lamport)
      default:
        return pens[author].joining(call, prng.chance(0.5) ? .met : .lasting, lamport: lamport)
      }
    }
  }

  private func randomBooks(_ prng: inout PRNG) -> CallsBooks {
    var books = CallsBooks()
    for number in 1...5 as ClosedRange<UInt64> where prng.chance(0.8) {
      books.join(Pen(number), UInt64(prng.below(3)), since: UInt64(prng.below(5)))
    }
    for _ in 0..<prng.below(4) {
      books.listeners.append(testIdentity(UInt64(1 + prng.below(5))).id)
    }
    if prng.chance(0.7) { books.viewer = testIdentity(UInt64(1 + prng.below(6))).id }
    books.rules = CallRules(endsWithInitiator: prng.chance(0.4))
    return books
  }

  /// An independent implementation of the rule: the initiator has the claim of the highest term
  /// that no end covers.
  private func leader(_ call: UInt64, _ books: CallsBooks) -> (NodeID, UInt32)? {
    var claims: [(author: NodeID, term: UInt32, lamport: UInt64)] = []
    for entry in books.claims where !books.listeners.contains(entry.entry.author) {
      guard case .claim(let claim) = entry.entry.body, claim.call == callID(call) else { continue }
      claims.append((entry.entry.author, claim.term, entry.entry.lamport))
    }
    let live = claims.filter { claim in
      !books.ends.contains { entry in
        guard case .end(let end) = entry.entry.body, end.call == callID(call),
          claims.contains(where: { $0.author == entry.entry.author && $0.term == end.term })
        else { return false }
        return claim.term < end.term
          || (claim.term == end.term && claim.author == entry.entry.author)
      }
    }
    let highest = live.map(\.term).max()
    return live.filter { $0.term == highest }
      .min { ($0.lamport, $0.author) < ($1.lamport, $1.author) }
      .map { ($0.author, $0.term) }
  }

  /// An independent implementation of the standing of a call.
  private func standing(_ call: CallID, _ books: CallsBooks) -> CallStanding {
    func isValid(_ entry: SignedEntry) -> Bool {
      !books.listeners.contains(entry.entry.author)
    }
    let claims = books.claims.filter(isValid).sorted().compactMap { entry -> (NodeID, CallClaim)? in
      guard case .claim(let claim) = entry.entry.body, claim.call == call else { return nil }
      return (entry.entry.author, claim)
    }
    guard let leader = books.info(call.low)?.initiator,
      let first = claims.first(where: { $0.1.term == 1 })
        ?? claims.filter({ $0.0 == leader }).max(by: { $0.1.term < $1.1.term })
    else { return .blind }
    var said: [NodeID: CallJoining.Stage] = [:]
    for entry in books.entries.joinings {
      guard case .joining(let joining) = entry.entry.body, joining.call == call else { continue }
      said[entry.entry.author] = joining.stage
    }
    if claims.contains(where: { $0.1.term > 1 && $0.0 != first.0 })
      || said.values.filter({ $0 == .lasting }).count >= 2
    {
      return .lasting
    }
    if said.keys.contains(where: { $0 != first.0 }) { return .joined }
    return first.1.knowledge == .none && said.isEmpty ? .blind : .informed
  }

  private func expectTheRules(_ books: CallsBooks, _ seed: UInt64) {
    for call in 0..<3 as Range<UInt64> {
      let expected = leader(call, books)
      let info = books.info(call)
      #expect(info?.initiator == expected?.0, "seed \(seed), call \(call)")
      #expect(info?.term == expected?.1, "seed \(seed), call \(call)")
      #expect(!books.isOver(call) || info == nil, "seed \(seed), call \(call)")
    }
    #expect(books.active?.info == channelsCall(books), "seed \(seed)")
  }

  /// An independent implementation of the choice of the channel's call.
  private func channelsCall(_ books: CallsBooks) -> CallInfo? {
    let open = books.present.map(\.participation.id).compactMap { books.info($0.low) }
      .sorted {
        let (a, b) = (standing($0.id, books).rawValue, standing($1.id, books).rawValue)
        return a != b ? a > b : ($0.order, $0.id) < ($1.order, $1.id)
      }
    let led = open.first { call in
      books.present.contains { member, participation in
        guard participation.id == call.id else { return false }
        let isSuccessor = !books.rules.endsWithInitiator && !books.listeners.contains(member)
        return member == call.initiator || isSuccessor
      }
    }
    if let led { return led }
    let own = books.present.first { $0.member == books.viewer }?.participation.id
    if let own = open.first(where: { $0.id == own }) { return own }
    return open.first { !books.rules.endsWithInitiator || $0.initiator == books.viewer }
  }

  @Test(arguments: 1...100 as ClosedRange<UInt64>)
  func anyOrderAndAnySubsetLeadToTheSameCall(seed: UInt64) {
    var prng = PRNG(seed: seed)
    let entries = randomEntries(&prng)
    let start = randomBooks(&prng)
    var results: [ActiveCall?] = []
    for _ in 0..<4 {
      var books = start
      var document = Document(channel: testKey.channelID)
      let subset = prng.permuted(entries).prefix(prng.below(entries.count))
      // A random subset arrives early, then all entries; many arrive twice.
      for entry in Array(subset) + prng.permuted(entries) {
        _ = document.insert(entry)
        books.claims = document.all(.claim)
        books.ends = document.all(.end)
        books.entries.joinings = document.all(.joining)
        expectTheRules(books, seed)
      }
      results.append(books.active)
    }
    #expect(results.allSatisfy { $0 == results[0] }, "seed \(seed)")
  }

  @Test(arguments: 1...100 as ClosedRange<UInt64>)
  func claimsAndEndsWithoutTheRightChangeNothing(seed: UInt64) {
    var prng = PRNG(seed: seed)
    var books = randomBooks(&prng)
    for entry in randomEntries(&prng) { books.add(entry) }
    var (listener, forger) = (Pen(50), Pen(51))
    books.listeners.append(listener.id)
    let before = (books.active, (0..<3).map { books.isOver($0) })
    for _ in 0..<10 {
      let (call, term) = (UInt64(prng.below(3)), UInt32(1 + prng.below(4)))
      books.add(
        listener.claim(call, term: term, lamport: UInt64(prng.below(20))),
        listener.end(call, term: term, lamport: UInt64(prng.below(20))),
        forger.end(call, term: term, lamport: UInt64(prng.below(20))))
    }
    #expect(books.active == before.0, "seed \(seed)")
    #expect((0..<3).map { books.isOver($0) } == before.1, "seed \(seed)")
  }

  // MARK: Members who keep the rules

  private func act(_ world: inout CallsWorld, _ prng: inout PRNG) {
    let node = prng.below(world.nodes.count)
    switch prng.below(10) {
    case 0, 1, 2: world.start(node)
    case 3: world.leave(node)
    case 4: world.crash(node)
    case 5, 6: world.restart(node)
    case 7: world.split(world.nodes.map { _ in prng.below(2) })
    case 8: world.heal()
    default: world.run(for: .seconds(prng.below(15)), arriving: prng.unit())
    }
  }

  @Test(arguments: 1...40 as ClosedRange<UInt64>)
  func everyoneSettlesOnOneCallAfterAnyHistory(seed: UInt64) {
    var prng = PRNG(seed: seed)
    var world = CallsWorld(
      2 + prng.below(5), endsWithInitiator: prng.chance(0.3), seed: seed)
    for _ in 0..<30 {
      act(&world, &prng)
      world.run(for: .milliseconds(prng.below(2000)), arriving: prng.unit())
    }
    world.heal()
    world.run(for: .seconds(45))

    let up = world.upNodes
    let call = up.first?.view
    for node in up {
      #expect(node.view == call, "seed \(seed)")
      #expect(node.document.digest == up[0].document.digest, "seed \(seed)")
      #expect(node.own?.id == (node.own == nil ? nil : call?.info.id), "seed \(seed)")
      expectNoReturn(node.events, seed)
    }
    let inside = up.filter { $0.own != nil }.map(\.pen.id).sorted()
    #expect((call?.participants ?? []) == inside, "seed \(seed)")
    // A vanished initiator has a successor, or the call has ended.
    if let call { #expect(call.participants.contains(call.info.initiator), "seed \(seed)") }
  }

  /// Checks that events report each call in order, and that no term returns after its end.
  private func expectNoReturn(_ events: [ChannelEvent], _ seed: UInt64) {
    var (ended, current): ([CallInfo], ActiveCall?) = ([], nil)
    for event in events {
      switch event {
      case .callStarted(let call):
        #expect(current == nil, "seed \(seed)")
        let isReturn = ended.contains {
          $0.id == call.info.id
            && (call.info.term < $0.term
              || (call.info.term == $0.term && call.info.initiator == $0.initiator))
        }
        #expect(!isReturn, "seed \(seed): \(call.info)")
        current = call
      case .callJoined(let call, let member):
        #expect(current?.info.id == call.info.id, "seed \(seed)")
        #expect(current?.participants.contains(member) == false, "seed \(seed)")
        current = call
      case .callLeft(let call, let member, _):
        #expect(current?.info.id == call.info.id, "seed \(seed)")
        #expect(current?.participants.contains(member) == true, "seed \(seed)")
        current = call
      case .callHandedOver(let call):
        #expect(current?.info.id == call.info.id, "seed \(seed)")
        #expect(current?.info.initiator != call.info.initiator, "seed \(seed)")
        current = call
      case .callEnded(let info, let reason):
        #expect(current?.info.id == info.id, "seed \(seed)")
        current = nil
        if reason == CallEndReason.ended { ended.append(info) }
      default: Issue.record("seed \(seed): \(event)")
      }
    }
  }

  // MARK: Single histories

  private func member(_ number: UInt64) -> NodeID { testIdentity(number).id }

  /// Four members in a call that the first one has started.
  private func worldInCall(endsWithInitiator: Bool = false) -> CallsWorld {
    var world = CallsWorld(4, endsWithInitiator: endsWithInitiator, seed: 1)
    for node in 0..<4 {
      world.start(node)
      world.run(for: .seconds(1))
    }
    return world
  }

  @Test func aCallSurvivesTheCutFromItsInitiatorOnBothSides() {
    var world = worldInCall()
    world.split([0, 0, 1, 1])
    world.run(for: .seconds(30))
    #expect(world.nodes.map { $0.view?.info.initiator } == [1, 1, 3, 3].map(member))
    // The call ends on one side of the partition and continues on the other.
    world.leave(0)
    world.run(for: .seconds(1))
    #expect(world.nodes[1].view == nil && world.nodes[1].own == nil)
    world.heal()
    world.run(for: .seconds(2))
    for node in world.nodes {
      #expect(node.view?.info.initiator == member(3))
      #expect(node.view?.info.term == 2)
      #expect(node.view?.participants == [member(3), member(4)].sorted())
    }
  }

  @Test func aHealedCutHasOneInitiatorWhoEndsTheCallForAll() {
    var world = CallsWorld(6, endsWithInitiator: false, seed: 1)
    for node in 0..<6 {
      world.start(node)
      world.run(for: .seconds(1))
    }
    // The initiator crashes, and each side of the partition elects a successor for the same term.
    world.crash(0)
    world.split([0, 1, 1, 2, 2, 2])
    world.run(for: .seconds(30))
    #expect(world.nodes[1].view?.info.initiator == member(2))
    #expect(world.nodes[5].view?.info.initiator == member(4))
    world.heal()
    world.run(for: .seconds(2))
    let initiators = world.upNodes.map { $0.view?.info.initiator }
    #expect(initiators.allSatisfy { $0 == initiators[0] })
    let leader = world.nodes.firstIndex { $0.pen.id == initiators[0] } ?? 1
    world.leave(leader)
    world.run(for: .seconds(2))
    #expect(world.upNodes.allSatisfy { $0.view == nil && $0.own == nil })
  }

  @Test func participantsOfACallThatEndsWithItsInitiatorAreFreeAfterTheGrace() {
    var world = worldInCall(endsWithInitiator: true)
    world.crash(0)
    world.run(for: .seconds(9))
    #expect(world.nodes[1].view != nil)
    world.run(for: .seconds(3))
    #expect(world.upNodes.allSatisfy { $0.view == nil && $0.own == nil })
    world.start(2)
    world.run(for: .seconds(1))
    #expect(world.nodes[1].view?.info.initiator == member(3))
  }

  @Test func startsOnBothSidesOfACutSettleOnTheEarlier() {
    var world = CallsWorld(4, endsWithInitiator: false, seed: 1)
    world.split([0, 0, 1, 1])
    world.start(3)
    world.run(for: .seconds(1))
    world.start(2)
    world.start(0)
    world.run(for: .seconds(1))
    world.start(1)
    world.heal()
    world.run(for: .seconds(2))
    let calls = world.nodes.map(\.view?.info.id)
    #expect(calls[0] != nil && calls.allSatisfy { $0 == calls[0] })
    #expect(world.nodes[0].view?.participants.count == 4)
  }
}

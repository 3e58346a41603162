import MusterBase
import MusterCrypto
import MusterMesh
import MusterWire
import Testing

/// Properties that hold whatever the network does; every failure names its seed.
struct CallPropertyTests {
  @Test(arguments: 1...40 as ClosedRange<UInt64>)
  func concurrentStartsSettleOnTheSmallestEverywhere(seed: UInt64) {
    var prng = PRNG(seed: seed)
    var room = Room(2 + prng.below(5), seed: seed)
    room.longestDelay = .milliseconds(1 + prng.below(200))
    room.loss = prng.chance(0.5) ? 0 : 0.3
    room.linkAll()
    if prng.chance(0.5) { room.run(for: .seconds(2)) }

    var calls: [CallInfo] = []
    for node in 0..<room.count where node < 2 || prng.chance(0.5) {
      let call = UInt64(prng.below(1000) * 8 + node)
      let startedAt = UInt64(prng.below(3))
      if room.states[node].call == nil {
        calls.append(testCall(call, by: UInt64(node) + 1, startedAt: startedAt))
      }
      room.start(node, call, startedAt: startedAt)
      if prng.chance(0.3) { room.run(for: .milliseconds(prng.below(100))) }
    }
    room.run(for: .milliseconds(100))
    room.loss = 0
    room.run(for: .seconds(2))

    let winner = calls.min { ($0.startedAt, $0.id) < ($1.startedAt, $1.id) }
    expectAgreement(room, seed)
    #expect(room.states[0].call?.info == winner, "seed \(seed)")
    for node in 0..<room.count {
      let started = room.events[node].filter {
        if case .callStarted(let call) = $0 { call.info == winner } else { false }
      }
      #expect(started.count == 1, "seed \(seed), node \(node)")
    }
  }

  @Test(arguments: 1...60 as ClosedRange<UInt64>)
  func everyoneAgreesAfterAnyHistory(seed: UInt64) {
    var prng = PRNG(seed: seed)
    var room = Room(2 + prng.below(4), seed: seed)
    // Some faults are absent altogether, the rest have weights of their own.
    room.loss = prng.chance(0.4) ? 0 : 0.5 * prng.unit()
    room.longestDelay = .milliseconds(1 + prng.below(prng.chance(0.5) ? 10 : 300))
    let flaps = prng.chance(0.5) ? 0 : prng.below(5)
    room.linkAll()
    for step in 0..<30 {
      act(&room, flaps: flaps, step: UInt64(step), &prng)
      room.run(for: .milliseconds(prng.below(400)))
    }
    room.loss = 0
    room.linkAll()
    room.run(for: .seconds(10))
    expectAgreement(room, seed)
    for node in 0..<room.count { expectNoResurrection(room.events[node], seed) }
  }

  private func act(_ room: inout Room, flaps: Int, step: UInt64, _ prng: inout PRNG) {
    let node = prng.below(room.count)
    let other = prng.below(room.count)
    switch prng.below(6 + flaps) {
    case 0, 1: room.start(node, step, startedAt: UInt64(prng.below(1000)))
    case 2: room.perform(node) { $0.leaveCall(at: $1) }
    case 3: room.perform(node) { $0.setFlags(.audioMuted, at: $1) }
    case 4: room.perform(node) { $0.setFlags(.speaking, at: $1) }
    case 5: room.link(node, other)
    default: room.unlink(node, other)
    }
  }

  private func expectAgreement(_ room: Room, _ seed: UInt64) {
    let call = room.states[0].call
    for node in 0..<room.count {
      let state = room.states[node]
      #expect(state.call == call, "seed \(seed), node \(node)")
      let others = (0..<room.count).filter { $0 != node }.map { room.states[$0].ownMember }
      #expect(
        state.members == others.sorted { $0.id < $1.id }, "seed \(seed), node \(node)")
      #expect(
        state.isInCall == (call?.participants.contains(room.id(node)) ?? false),
        "seed \(seed), node \(node)")
      #expect(state.isSettled, "seed \(seed), node \(node)")
    }
  }

  /// Events tell of every call in order, and of an ended one never again.
  private func expectNoResurrection(_ events: [ChannelEvent], _ seed: UInt64) {
    var (ended, current): ([CallInfo], ActiveCall?) = ([], nil)
    for event in events {
      switch event {
      case .callStarted(let call):
        #expect(current == nil && !ended.contains(call.info), "seed \(seed)")
        current = call
      case .callJoined(let call, let member):
        #expect(current?.info == call.info, "seed \(seed)")
        #expect(current?.participants.contains(member) == false, "seed \(seed)")
        current = call
      case .callLeft(let call, let member, _):
        #expect(current?.info == call.info, "seed \(seed)")
        #expect(current?.participants.contains(member) == true, "seed \(seed)")
        current = call
      case .callEnded(let info, let reason):
        #expect(current?.info == info, "seed \(seed)")
        current = nil
        if reason == CallEndReason.ended { ended.append(info) }
      default: break
      }
    }
  }

  /// The call follows from the newest hellos alone, in whatever order they came.
  @Test(arguments: 1...30 as ClosedRange<UInt64>)
  func theOrderOfHellosMakesNoDifference(seed: UInt64) {
    var prng = PRNG(seed: seed)
    let calls = (1...3).map { testCall($0, by: $0 + 1, startedAt: UInt64(prng.below(3))) }
    var hellos: [(author: UInt64, signed: [UInt8])] = []
    for author in UInt64(2)...6 {
      for sequence in 1...3 as ClosedRange<UInt64> {
        let call = prng.chance(0.6) ? calls[prng.below(3)] : nil
        // Only what the author may end, and it is not in it any more.
        let own = calls.first { $0.initiator == testIdentity(author).id }
        let ends = sequence == 3 && own != call && prng.chance(0.5)
        hellos.append(
          (
            author,
            signedHello(
              author, sequence: sequence, call: call, endedCall: ends ? own?.id : nil)
          ))
      }
    }
    var seen: [ActiveCall?] = []
    for _ in 0..<6 {
      for index in hellos.indices { hellos.swapAt(index, prng.below(hellos.count)) }
      var watcher = testChannel(1)
      for author in UInt64(2)...6 { _ = watcher.linkUp(testIdentity(author).id, at: seconds(1)) }
      for hello in hellos {
        _ = watcher.receiveHello(
          hello.signed, from: testIdentity(hello.author).id, at: seconds(1))
      }
      seen.append(watcher.call)
    }
    #expect(seen.allSatisfy { $0 == seen[0] }, "seed \(seed)")
  }
}

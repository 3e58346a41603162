import MusterBase
import MusterChannel
import MusterCrypto
import MusterWire
import Testing

/// The single call of a channel, and the rights to call in a created channel.
struct ChannelStateCallTests {
  /// All members have joined, one after the other, the call that the first one started.
  private func talking(_ count: Int) -> ChannelStateWorld {
    var world = ChannelStateWorld.mesh(count)
    joinAll(&world)
    return world
  }

  private func joinAll(_ world: inout ChannelStateWorld) {
    for index in world.nodes.indices {
      world.startOrJoin(index, proposing: UInt64(index) + 1)
      world.run(for: .milliseconds(200))
    }
  }

  @Test func aNewParticipantJoinsTheActiveCall() {
    let world = talking(3)
    for node in world.nodes {
      #expect(node.state.isInCall && node.state.call?.info.id == callID(1))
      #expect(node.state.call?.info.initiator == world.ids[0])
      #expect(node.state.call?.participants == world.ids.sorted())
      #expect(node.state.call?.byPresence == world.ids)
      #expect(node.events.callsStarted == [callID(1)])
      #expect(node.events.callEnds.isEmpty)
    }
  }

  @Test(arguments: 2...5)
  func ofCallsStartedAtOnceOneStays(_ count: Int) {
    var world = ChannelStateWorld.mesh(count)
    world.forgetEvents()
    world.hold()
    for index in 0..<count { world.startOrJoin(index, proposing: UInt64(10 - index)) }
    for (index, node) in world.nodes.enumerated() {
      #expect(node.state.call?.info.id == callID(UInt64(10 - index)))
    }
    world.release()
    world.run(for: .seconds(2))
    // All calls have the same Lamport counter, so the one with the smallest id stays.
    for node in world.nodes {
      #expect(node.state.isInCall)
      #expect(node.state.call?.info.id == callID(UInt64(11 - count)))
      #expect(node.state.call?.participants == world.ids.sorted())
      #expect(node.events.callEnds.allSatisfy { $0 == CallEndReason.merged })
      #expect(node.events.callsStarted.count == node.events.callEnds.count + 1)
    }
    #expect(world.nodes.last?.events.callEnds == [])
  }

  @Test func theCallIsOverWhenItsInitiatorLeavesIt() {
    var world = talking(3)
    world.forgetEvents()
    world.act(0) { $0.leaveCall(at: $1) }
    world.run(for: .seconds(1))
    for node in world.nodes {
      #expect(!node.state.isInCall && node.state.call == nil)
      #expect(node.events.callEnds == [CallEndReason.ended])
    }
    // The next call has a new id.
    world.startOrJoin(1, proposing: 7)
    world.run(for: .seconds(1))
    for node in world.nodes { #expect(node.state.call?.info.id == callID(7)) }
  }

  @Test func anInitiatorMayHandItsCallOver() {
    var world = talking(3)
    world.forgetEvents()
    #expect(world.nodes[0].state.successor == world.ids[1])
    #expect(world.nodes[1].state.successor == nil)
    world.act(0) { $0.leaveCall(handsOver: true, at: $1) }
    world.run(for: .milliseconds(500))
    for node in world.nodes {
      #expect(node.state.call?.participants == [world.ids[1], world.ids[2]].sorted())
      #expect(node.state.call?.info.id == callID(1) && node.state.call?.info.term == 2)
      #expect(node.events.handedOverTo == [world.ids[1]])
      #expect(node.events.callEnds.isEmpty)
      #expect(node.state.checkInvariants() == [])
    }
    #expect(!world.nodes[0].state.isInCall)
    // It may come back, as an ordinary participant whose leaving ends nothing, and who hands
    // nothing over when the next initiator vanishes.
    world.startOrJoin(0, proposing: 9)
    world.run(for: .seconds(1))
    #expect(world.nodes[0].state.call?.info.initiator == world.ids[1])
    world.crash(1)
    world.run(for: .seconds(8))
    #expect(world.nodes[2].events.handedOverTo == [world.ids[1]])
    world.run(for: .seconds(10))
    #expect(world.nodes[2].events.handedOverTo == [world.ids[1], world.ids[2]])
  }

  @Test func anInitiatorMayHandItsCallOverAndLeaveTheChannel() {
    var world = talking(3)
    world.forgetEvents()
    world.act(0) { $0.leaveCall(handsOver: true, at: $1) + $0.leave(at: $1) }
    world.run(for: .milliseconds(500))
    for index in [1, 2] {
      #expect(world.nodes[index].events.left.map(\.reason) == [.left])
      #expect(world.nodes[index].events.handedOverTo == [world.ids[1]])
      #expect(world.nodes[index].events.callEnds.isEmpty)
    }
  }

  @Test func aCallWithoutASuccessorEnds() {
    for (count, endsWithInitiator) in [(1, false), (3, true)] {
      var world = club(3, .presenter, endsWithInitiator: endsWithInitiator)
      for index in 0..<count {
        world.startOrJoin(index, proposing: UInt64(index + 1))
        world.run(for: .milliseconds(200))
      }
      #expect(world.nodes[0].state.successor == nil)
      world.act(0) { $0.leaveCall(handsOver: true, at: $1) }
      world.run(for: .seconds(1))
      for node in world.nodes { #expect(node.events.callEnds == [CallEndReason.ended]) }
    }
  }

  @Test func theCallGoesOnWhenAnotherLeavesIt() {
    var world = talking(3)
    world.forgetEvents()
    world.act(1) { $0.leaveCall(at: $1) }
    world.run(for: .seconds(1))
    for node in world.nodes {
      #expect(node.state.call?.participants == [world.ids[0], world.ids[2]].sorted())
      #expect(node.events.callEnds.isEmpty)
    }
    #expect(!world.nodes[1].state.isInCall)
    #expect(world.nodes[0].state.member(world.ids[1])?.isInCall == false)
  }

  @Test func anInitiatorLeavingTheChannelEndsItsCall() {
    var world = talking(3)
    world.forgetEvents()
    world.act(0) { $0.leave(at: $1) }
    world.run(for: .seconds(1))
    #expect(world.nodes[0].state.isFlushed)
    for index in [1, 2] {
      #expect(world.nodes[index].events.callEnds == [CallEndReason.ended])
      #expect(world.nodes[index].events.left.map(\.reason) == [.left])
    }
  }

  @Test func aVanishedInitiatorIsSucceededByTheMostSenior() {
    var world = talking(3)
    world.forgetEvents()
    world.crash(0)
    world.run(for: .seconds(8))
    for node in world.upNodes {
      #expect(node.state.call?.participants == [world.ids[1], world.ids[2]].sorted())
      #expect(node.events.handedOverTo.isEmpty)
    }
    world.run(for: .seconds(10))
    for node in world.upNodes {
      #expect(node.events.handedOverTo == [world.ids[1]])
      #expect(node.state.call?.info.term == 2 && node.state.call?.info.id == callID(1))
      #expect(node.events.callEnds.isEmpty)
    }
    // A returning initiator is an ordinary participant.
    world.comeBack(0, bootID: 2, to: [1, 2], .replaced)
    world.run(for: .seconds(2))
    world.startOrJoin(0, proposing: 9)
    world.run(for: .seconds(2))
    for node in world.nodes {
      #expect(node.state.call?.info.initiator == world.ids[1])
      #expect(node.state.call?.participants == world.ids.sorted())
    }
  }

  // MARK: Created channels

  private func club(_ count: Int, _ role: Role, endsWithInitiator: Bool) -> ChannelStateWorld {
    var world = ChannelStateWorld(
      count, settings: ChannelSettings(callEndsWithInitiator: endsWithInitiator))
    for member in world.ids.dropFirst() {
      world.act(0) { $0.grant(role, to: member, expiresAt: 0, at: $1) }
    }
    for index in 1..<count { world.connect(index, to: Array(0..<index)) }
    world.run(for: .seconds(2))
    return world
  }

  @Test func aCallMayEndWithItsInitiator() {
    var world = club(3, .presenter, endsWithInitiator: true)
    joinAll(&world)
    #expect(world.nodes.allSatisfy { $0.state.call?.participants.count == 3 })
    world.forgetEvents()
    world.crash(0)
    world.run(for: .seconds(20))
    for node in world.upNodes {
      #expect(!node.state.isInCall && node.state.call == nil)
      #expect(node.events.handedOverTo.isEmpty)
    }
    // The one that gives up first leaves the other in it.
    let reasons = world.upNodes.flatMap(\.events.callEnds).sorted()
    #expect(reasons == [CallEndReason.empty, CallEndReason.leaderless])
  }

  /// The participants wait for their initiator; others start another call, to which they move.
  @Test func aCallThatLostItsInitiatorTakesNoNewcomers() {
    var world = club(4, .presenter, endsWithInitiator: true)
    world.startOrJoin(1, proposing: 1)
    world.run(for: .milliseconds(200))
    world.startOrJoin(2, proposing: 2)
    world.run(for: .seconds(1))
    world.forgetEvents()
    world.crash(1)
    world.run(for: .seconds(8))
    #expect(world.nodes[2].state.isInCall && world.nodes[2].state.call?.isLed == false)
    for index in [0, 3] {
      #expect(world.nodes[index].state.call == nil)
      #expect(world.nodes[index].events.callEnds == [CallEndReason.leaderless])
    }
    world.startOrJoin(3, proposing: 9)
    world.run(for: .seconds(1))
    for node in world.upNodes {
      #expect(node.state.call?.info.id == callID(9))
      #expect(node.state.checkInvariants() == [])
    }
    #expect(world.nodes[2].state.isInCall)
    #expect(world.nodes[2].events.callEnds == [CallEndReason.merged])
  }

  /// A listener in a call that its initiator has left by a crash brings nobody into it.
  @Test(arguments: [false, true])
  func aCallThatNobodyLeadsMovesNobody(endsWithInitiator: Bool) {
    var world = club(4, .consumer, endsWithInitiator: endsWithInitiator)
    let presenter = world.ids[1]
    world.act(0) { $0.grant(.presenter, to: presenter, expiresAt: 0, at: $1) }
    world.run(for: .seconds(1))
    world.startOrJoin(1, proposing: 1)
    world.run(for: .milliseconds(200))
    world.startOrJoin(2, proposing: 2)
    world.startOrJoin(3, proposing: 3)
    world.run(for: .seconds(12))
    world.crash(1)
    world.run(for: .seconds(8))
    world.act(3) { $0.leaveCall(at: $1) }
    // Without the call in its way the owner starts another one.
    world.startOrJoin(0, proposing: 4)
    world.run(for: .seconds(2))
    let call = world.nodes[0].state.call?.info
    #expect(call?.id == callID(endsWithInitiator ? 4 : 1) && world.nodes[0].state.isInCall)
    for node in world.upNodes { #expect(node.state.call?.info.id == call?.id) }
  }

  @Test func onlyPresentersStartCalls() {
    var world = club(2, .attendee, endsWithInitiator: false)
    #expect(world.nodes[1].state.ownMember.role == .attendee)
    world.startOrJoin(1, proposing: 1)
    world.run(for: .seconds(1))
    #expect(world.nodes.allSatisfy { $0.state.call == nil && !$0.state.isInCall })
    world.startOrJoin(0, proposing: 2)
    world.startOrJoin(1, proposing: 3)
    world.run(for: .seconds(1))
    #expect(world.nodes.allSatisfy { $0.state.call?.info.id == callID(2) && $0.state.isInCall })
  }

  /// The removal also ends the call of the removed initiator, so that only the owner's call is
  /// left.
  @Test func aRemovedInitiatorMergesIntoNoOtherCall() {
    var world = club(2, .presenter, endsWithInitiator: false)
    world.startOrJoin(1, proposing: 1)
    world.run(for: .seconds(1))
    world.crash(0)
    world.forgetEvents()
    let (owner, member) = (world.nodes[0].identity, world.ids[1])
    let presence = Presence(
      bootID: 1, flags: [], name: "node", call: Participation(id: callID(2), joined: 1),
      streams: [])
    let removal = Grant(subject: member, role: .none)
    let bodies: [EntryBody] = [
      .claim(CallClaim(call: callID(2), term: 1, startedAt: 2000, order: 0, knowledge: .compared)),
      .presence(presence), .grant(removal),
    ]
    for (index, body) in bodies.enumerated() {
      #expect(world.nodes[1].state.call?.info.id == callID(1))
      let number = 1 << 20 + UInt64(index)
      let entry = SignedEntry.sign(
        Entry(author: owner.id, sequence: number, lamport: number, body: body),
        by: owner, in: world.channel)
      world.act(1) { $0.receive(.entry(entry.bytes), from: owner.id, at: $1) }
    }
    #expect(!world.nodes[1].state.isInCall)
    #expect(world.nodes[1].events.callJoins.isEmpty)
    #expect(world.nodes[1].state.checkInvariants() == [])
  }

  @Test func aNodeWithoutARoleIsNoMember() {
    var world = ChannelStateWorld(2, settings: ChannelSettings())
    let outsider = world.ids[1]
    world.connect(1, to: [0])
    world.say(1, "early")
    world.run(for: .seconds(1))
    #expect(world.nodes[0].state.members.isEmpty && world.nodes[0].events.texts.isEmpty)
    #expect(world.nodes[0].state.refusal(of: outsider) == .noGrant)
    world.act(0) { $0.grant(.presenter, to: outsider, expiresAt: 0, at: $1) }
    world.run(for: .seconds(1))
    #expect(world.nodes[0].state.members.map(\.role) == [.presenter])
    #expect(world.nodes[0].events.texts == ["early"])
    #expect(world.nodes[1].events.contains(.ownRoleChanged(.presenter)))
    world.act(0) { $0.grant(.none, to: outsider, expiresAt: 0, at: $1) }
    world.run(for: .seconds(1))
    #expect(world.nodes[0].events.left.map(\.reason) == [.removed])
    #expect(world.nodes[0].state.refusal(of: outsider) == .removed)
  }

  @Test func keysWithoutGrantsDisplaceNothing() {
    var world = club(3, .presenter, endsWithInitiator: false)
    joinAll(&world)
    world.say(1, "stays")
    world.run(for: .seconds(1))
    world.forgetEvents()
    let (neighbour, lamport) = (world.ids[1], Entry.lamportLimit)
    for number in 0..<20 {
      let outsider = testIdentity(UInt64(900 + number))
      var bodies: [EntryBody] = (0..<30).map {
        .claim(
          CallClaim(
            call: callID(UInt64(500 + $0)), term: 1, startedAt: 0, order: 0, knowledge: .compared))
      }
      bodies += (0..<30).map { _ in
        .message(Message(sentAt: 0, after: [], to: nil, content: [0x78]))
      }
      bodies.append(
        .presence(Presence(bootID: 1, flags: [], name: "x", call: nil, streams: [])))
      bodies.append(
        .grant(
          Grant(
            subject: outsider.id, role: .owner)))
      for (index, body) in bodies.enumerated() {
        let entry = SignedEntry.sign(
          Entry(author: outsider.id, sequence: UInt64(index), lamport: lamport, body: body),
          by: outsider, in: world.channel)
        world.act(0) { $0.receive(.entry(entry.bytes), from: neighbour, at: $1) }
      }
    }
    world.run(for: .seconds(2))
    #expect(world.agree)
    for node in world.nodes {
      #expect(node.state.call?.info.id == callID(1) && node.state.members.count == 2)
      #expect(node.state.history.map(\.text) == ["stays"])
      #expect(node.events.isEmpty)
    }
  }
}

import MusterBase
import MusterChannel
import MusterCrypto
import MusterWire
import Testing

/// Members of higher roles that mute others in the call, or remove them from it.
struct ChannelStateModerationTests {
  /// An owner, a presenter and two attendees in the call that the member at `initiator` started.
  private func call(
    of initiator: Int = 0, endsWithInitiator: Bool = false
  ) -> ChannelStateWorld {
    var world = ChannelStateWorld(
      4, settings: ChannelSettings(callEndsWithInitiator: endsWithInitiator))
    for (index, role) in [Role.presenter, .attendee, .attendee].enumerated() {
      let member = world.ids[index + 1]
      world.act(0) { $0.grant(role, to: member, expiresAt: 0, at: $1) }
    }
    for index in 1..<4 { world.connect(index, to: Array(0..<index)) }
    world.run(for: .seconds(2))
    let order = [initiator] + world.nodes.indices.filter { $0 != initiator }
    for index in order {
      world.startOrJoin(index, proposing: UInt64(index) + 1)
      world.run(for: .milliseconds(200))
    }
    world.forgetEvents()
    return world
  }

  private func moderated(_ node: ChannelStateWorld.Node) -> [(Moderation, NodeID)] {
    node.events.compactMap {
      if case .moderated(let moderation, let author) = $0 { (moderation, author) } else { nil }
    }
  }

  private func leaves(_ node: ChannelStateWorld.Node) -> [LeaveReason] {
    node.events.compactMap { if case .callLeft(_, _, let reason) = $0 { reason } else { nil } }
  }

  private func faults(_ world: ChannelStateWorld) -> [String] {
    world.upNodes.flatMap { $0.state.checkInvariants() }
  }

  @Test func aRemovedMemberLeavesTheCallAndCannotComeBackToIt() {
    var world = call()
    let (presenter, removed) = (world.ids[1], world.ids[2])
    world.act(1) { $0.moderate(removed, .remove, at: $1) }
    world.run(for: .seconds(1))
    let others = world.ids.filter { $0 != removed }.sorted()
    for node in world.nodes {
      #expect(node.state.call?.participants == others && leaves(node) == [.removed])
      #expect(moderated(node).map(\.1) == [presenter] && node.events.callEnds.isEmpty)
      #expect(node.state.remover(of: removed, from: callID(1)) == presenter)
      #expect(node.state.member(removed) != nil || node.id == removed)
    }
    #expect(!world.nodes[2].state.isInCall)
    world.startOrJoin(2, proposing: 9)
    world.run(for: .seconds(1))
    #expect(!world.nodes[2].state.isInCall)
    // A restart changes nothing, whether it remembers or not.
    for remembers in [true, false] {
      world.comeBack(2, bootID: remembers ? 2 : 3, to: [0, 1, 3], .replaced, remembers: remembers)
      world.run(for: .seconds(1))
      world.startOrJoin(2, proposing: 10)
      world.run(for: .seconds(1))
      #expect(world.nodes.allSatisfy { $0.state.call?.participants == others })
    }
    // The next call is open to it.
    world.act(0) { $0.leaveCall(at: $1) }
    world.run(for: .seconds(1))
    world.startOrJoin(1, proposing: 11)
    world.run(for: .seconds(1))
    world.startOrJoin(2, proposing: 12)
    world.run(for: .seconds(1))
    #expect(world.nodes[0].state.call?.participants == [presenter, removed].sorted())
    #expect(faults(world) == [] && world.agree)
  }

  /// A removed member does not meet the others again in an older call that nobody has ended.
  @Test func aRemovalHoldsForAllCallsThatHadBeenStarted() {
    var world = call()
    let (presenter, removed) = (world.ids[1], world.ids[2])
    var old = Pen(77, in: world.channel)
    let starter = old.id
    world.act(0) { $0.grant(.presenter, to: starter, expiresAt: 0, at: $1) }
    let claim = old.claim(8, lamport: 1)
    world.act(0) { $0.receive(.entry(claim.bytes), from: presenter, at: $1) }
    world.act(1) { $0.moderate(removed, .remove, at: $1) }
    world.run(for: .seconds(1))
    for node in world.nodes {
      #expect(node.state.remover(of: removed, from: callID(8)) == presenter)
      #expect(node.state.remover(of: world.ids[3], from: callID(8)) == nil)
    }
  }

  /// The others of a class may have come by the same invite; they stay.
  @Test func aRemovalHoldsForLaterKeysOfTheSameInvite() {
    var world = call()
    let (presenter, removed) = (world.ids[1], world.ids[2])
    let (later, other) = (testIdentity(78).id, testIdentity(79).id)
    let owner = world.nodes[0].identity
    for (index, member) in [removed, world.ids[3], later].enumerated() {
      let number = 1 << 20 + UInt64(index)
      let grant = Grant(subject: member, role: .attendee, form: .byInvite(other))
      let entry = SignedEntry.sign(
        Entry(author: owner.id, sequence: number, lamport: 50 + number, body: .grant(grant)),
        by: owner, in: world.channel)
      for receiver in 0..<4 {
        world.act(receiver) { $0.receive(.entry(entry.bytes), from: presenter, at: $1) }
      }
    }
    world.act(1) { $0.moderate(removed, .remove, at: $1) }
    world.run(for: .seconds(1))
    for node in world.nodes {
      #expect(node.state.call?.participants == world.ids.filter { $0 != removed }.sorted())
      #expect(node.state.remover(of: later, from: callID(1)) == presenter)
      #expect(node.state.remover(of: world.ids[3], from: callID(1)) == nil)
      #expect(node.state.remover(of: other, from: callID(1)) == nil)
    }
    #expect(faults(world) == [])
  }

  /// What the remover sends may arrive later than the presence with which the member leaves.
  @Test func aRemovedMemberSendsItsRemovalBeforeItsLeave() throws {
    var world = call()
    let (presenter, removed) = (world.ids[1], world.ids[2])
    world.hold()
    world.act(1) { $0.moderate(removed, .remove, at: $1) }
    let removal = try #require(world.nodes[1].written.last)
    #expect(removal.entry.body.kind == .moderation)
    var state = world.nodes[2].state
    let outputs = state.receive(.entry(removal.bytes), from: presenter, at: world.now)
    for other in [world.ids[0], world.ids[3]] {
      let kinds = try outputs.compactMap { output -> EntryBody.Kind? in
        guard case .send(.entry(let bytes), other) = output else { return nil }
        return try SignedEntry.verified(bytes, in: world.channel).entry.body.kind
      }
      #expect(kinds == [.moderation, .presence])
    }
  }

  /// One that insists on being in the call is in it for itself alone.
  @Test func aNodeThatIgnoresItsRemovalIsInTheCallForNobody() {
    var world = call()
    let removed = world.ids[2]
    world.act(1) { $0.moderate(removed, .remove, at: $1) }
    let presence = Presence(
      bootID: 1, flags: [], name: "node", call: Participation(id: callID(1), joined: 1),
      streams: [])
    let bodies: [EntryBody] = [
      .presence(presence), .end(CallEnd(call: callID(1), term: 1)),
      .joining(CallJoining(call: callID(1), stage: .lasting)),
    ]
    for (index, body) in bodies.enumerated() {
      let number = 1 << 20 + UInt64(index)
      let entry = SignedEntry.sign(
        Entry(author: removed, sequence: number, lamport: number, body: body),
        by: world.nodes[2].identity, in: world.channel)
      for receiver in [0, 1, 3] {
        world.act(receiver) { $0.receive(.entry(entry.bytes), from: removed, at: $1) }
      }
    }
    for index in [0, 1, 3] {
      #expect(world.nodes[index].state.call?.participants.contains(removed) == false)
      #expect(world.nodes[index].state.isInCall)
    }
  }

  @Test func mutingIsReportedAndRemovesNobody() {
    var world = call()
    let muted = world.ids[3]
    world.act(0) { $0.moderate(muted, [.muteAudio, .muteShare], at: $1) }
    world.run(for: .seconds(1))
    for node in world.nodes {
      #expect(moderated(node).map(\.0.actions) == [[.muteAudio, .muteShare]])
      #expect(node.state.call?.participants.count == 4 && leaves(node).isEmpty)
    }
    // A restart does not mute it anew.
    world.comeBack(3, bootID: 2, to: [0, 1, 2], .replaced, remembers: true)
    world.run(for: .seconds(1))
    world.startOrJoin(3, proposing: 9)
    world.run(for: .seconds(1))
    #expect(moderated(world.nodes[3]).isEmpty && world.nodes[3].state.isInCall)
    #expect(faults(world) == [] && world.agree)
  }

  @Test(arguments: [(1, 0), (2, 3), (3, 1)])
  func nobodyModeratesAnEqualOrAHigherRole(by author: Int, _ target: Int) {
    var world = call()
    let member = world.ids[target]
    world.act(author) { $0.moderate(member, [.muteAudio, .remove], at: $1) }
    world.run(for: .seconds(1))
    for node in world.nodes {
      #expect(node.state.call?.participants.count == 4 && moderated(node).isEmpty)
    }
  }

  @Test func theCallOfARemovedInitiatorGoesOn() {
    var world = call(of: 1)
    let removed = world.ids[1]
    world.act(0) { $0.moderate(removed, .remove, at: $1) }
    world.run(for: .seconds(1))
    #expect(world.nodes[0].state.call?.info.id == callID(2) && !world.nodes[1].state.isInCall)
    world.run(for: .seconds(12))
    for node in world.nodes {
      #expect(node.events.handedOverTo == [world.ids[0]] && node.events.callEnds.isEmpty)
      #expect(node.state.call?.participants.count == 3 && node.state.call?.info.term == 2)
    }
    #expect(faults(world) == [] && world.agree)
  }

  /// As it would if the initiator had vanished.
  @Test func inSuchAChannelTheCallEndsWithARemovedInitiator() {
    var world = call(of: 1, endsWithInitiator: true)
    let removed = world.ids[1]
    world.act(0) { $0.moderate(removed, .remove, at: $1) }
    world.run(for: .seconds(12))
    #expect(world.nodes.allSatisfy { $0.state.call == nil && !$0.state.isInCall })
    #expect(faults(world) == [] && world.agree)
  }

  /// The other side of a partition hears of it when it heals.
  @Test func aRemovalHoldsAcrossAPartition() {
    var world = call()
    let removed = world.ids[2]
    world.disconnect(2, from: [0, 1], .crashed)
    world.disconnect(3, from: [0, 1], .crashed)
    world.act(1) { $0.moderate(removed, .remove, at: $1) }
    world.run(for: .seconds(5))
    #expect(world.nodes[1].state.call?.participants.count == 2)
    #expect(world.nodes[2].state.isInCall)
    world.connect(2, to: [0, 1])
    world.connect(3, to: [0, 1])
    world.run(for: .seconds(3))
    let others = world.ids.filter { $0 != removed }.sorted()
    #expect(world.nodes.allSatisfy { $0.state.call?.participants == others })
    #expect(faults(world) == [] && world.agree)
  }

  @Test func inAnOpenChannelNobodyIsModerated() {
    var world = ChannelStateWorld.mesh(2)
    for index in [0, 1] { world.startOrJoin(index, proposing: UInt64(index) + 1) }
    world.run(for: .seconds(1))
    let member = world.ids[1]
    world.act(0) { $0.moderate(member, .remove, at: $1) }
    world.run(for: .seconds(1))
    #expect(world.nodes[0].events.contains(.notKept(.moderation)))
    #expect(world.nodes.allSatisfy { $0.state.call?.participants.count == 2 } && world.agree)
  }
}

import MusterBase
import MusterChannel
import MusterCrypto
import MusterWire
import Testing

/// The reasons that events give for what happened.
struct ChannelStateReasonTests {
  private func talking(_ count: Int) -> ChannelStateWorld {
    var world = ChannelStateWorld.mesh(count)
    for index in world.nodes.indices {
      world.startOrJoin(index, proposing: UInt64(index) + 1)
      world.run(for: .milliseconds(200))
    }
    world.forgetEvents()
    return world
  }

  private func presence(
    of index: Int, in world: ChannelStateWorld, call: UInt64
  ) -> SignedEntry {
    let presence = Presence(
      bootID: 1, flags: [], name: "node", call: Participation(id: callID(call), joined: 1),
      streams: [])
    let identity = world.nodes[index].identity
    return SignedEntry.sign(
      Entry(author: identity.id, sequence: .max, lamport: 1 << 20, body: .presence(presence)),
      by: identity, in: world.channel)
  }

  @Test func aRestartedMemberIsReplaced() {
    var world = ChannelStateWorld.mesh(2)
    world.forgetEvents()
    world.comeBack(1, bootID: 2, to: [0], .replaced)
    #expect(world.nodes[0].events.left.map(\.reason) == [.replaced])
    #expect(world.nodes[0].events.joined == [world.ids[1]])
  }

  @Test func aRemovedNodeSeesItsRemovalAndNoCrashes() {
    var world = ChannelStateWorld(2, settings: ChannelSettings())
    let member = world.ids[1]
    world.act(0) { $0.grant(.presenter, to: member, expiresAt: 0, at: $1) }
    world.connect(1, to: [0])
    world.run(for: .seconds(1))
    world.startOrJoin(0, proposing: 1)
    world.startOrJoin(1, proposing: 2)
    world.run(for: .seconds(1))
    #expect(world.nodes[1].state.isInCall)
    world.forgetEvents()
    world.act(0) { $0.grant(.none, to: member, expiresAt: 0, at: $1) }
    // It loses sight of the others at once, although their links may last a while.
    #expect(world.nodes[1].state.members.isEmpty)
    #expect(world.nodes[1].events.callLeaves.first?.id == member)
    world.run(for: .seconds(1))
    world.disconnect(1, from: [0], .crashed)
    let own = world.nodes[1].events.callLeaves.filter { $0.id == member }
    #expect(own.map(\.reason) == [.removed])
    #expect(world.nodes[1].events.left.map(\.reason) == [.removed])
    #expect(world.nodes[0].events.callLeaves.map(\.reason) == [.removed])
  }

  @Test func aWatcherSeesAMergeBeforeTheOtherCall() {
    var world = ChannelStateWorld.mesh(2)
    world.startOrJoin(0, proposing: 5)
    world.run(for: .milliseconds(200))
    world.forgetEvents()
    let moved = presence(of: 0, in: world, call: 4)
    let peer = world.ids[0]
    world.act(1) { $0.receive(.entry(moved.bytes), from: peer, at: $1) }
    #expect(world.nodes[1].events.callEnds == [CallEndReason.merged])
    #expect(world.nodes[1].events.callLeaves.isEmpty)
  }

  /// Its participant has not heard of that call yet, and stays until it has.
  @Test func aParticipantThatMergesFirstHasNotJustLeft() {
    var world = talking(2)
    let moved = presence(of: 0, in: world, call: 4)
    let peer = world.ids[0]
    world.act(1) { $0.receive(.entry(moved.bytes), from: peer, at: $1) }
    #expect(world.nodes[1].state.isInCall)
    #expect(world.nodes[1].events.callLeaves.map(\.reason) == [.merged])
  }

  /// The neighbour that restarted has sent it nothing yet, and may never.
  @Test func aReportOfALinkToALaterRunBringsNobodyBack() {
    var world = ChannelStateWorld.mesh(3)
    world.crash(0)
    world.run(for: .seconds(20))
    #expect(world.nodes[2].state.members.map(\.id) == [world.ids[1]])
    world.forgetEvents()
    let restarted = world.ids[0]
    world.act(1) { $0.linkUp(restarted, bootID: 2, at: $1) }
    world.run(for: .seconds(1))
    #expect(world.nodes[2].events.joined == [])
  }

  @Test func aReturningInitiatorHearsOfItsSuccessorFirst() {
    var world = talking(3)
    world.crash(0)
    world.run(for: .seconds(20))
    #expect(world.nodes[1].events.handedOverTo == [world.ids[1]])
    world.comeBack(0, bootID: 2, to: [1, 2], .replaced, remembers: true)
    world.run(for: .seconds(1))
    let events = world.nodes[0].events
    #expect(events.initiators == [world.ids[1]])
    #expect(events.handedOverTo.isEmpty)
  }

  @Test func earlierParticipantsAreNotReportedAsJoining() {
    var world = talking(3)
    world.comeBack(2, bootID: 2, to: [0, 1], .replaced)
    world.run(for: .seconds(1))
    let events = world.nodes[2].events
    #expect(events.callsStarted == [callID(1)])
    #expect(events.callJoins.isEmpty)
    #expect(world.nodes[2].state.call?.participants == [world.ids[0], world.ids[1]].sorted())
  }

  @Test func nobodySpeaksOutsideACallOrWithoutTheRight() {
    var world = talking(2)
    for index in [0, 1] { world.act(index) { $0.setFlags([.audio, .speaking], at: $1) } }
    world.run(for: .seconds(1))
    let (one, other) = (world.ids[0], world.ids[1])
    #expect(world.nodes[0].state.member(other)?.flags.contains(.speaking) == true)
    world.act(1) { $0.leaveCall(at: $1) }
    world.run(for: .seconds(1))
    #expect(world.nodes[0].state.member(other)?.flags.contains(.speaking) == false)
    #expect(!world.nodes[1].state.ownMember.flags.contains(.speaking))
    #expect(world.nodes[1].state.member(one)?.flags.contains(.speaking) == true)
    let presence = Presence(
      bootID: 1, flags: [.speaking], name: "node",
      call: Participation(id: callID(1), joined: 1), streams: [])
    let shown = [Role.consumer, .attendee].map {
      Member(presence, of: one, role: $0, settings: ChannelSettings()).flags.contains(.speaking)
    }
    #expect(shown == [false, true])
  }
}

extension Array where Element == ChannelEvent {
  var callLeaves: [(id: NodeID, reason: LeaveReason)] {
    compactMap { if case .callLeft(_, let id, let why) = $0 { (id, why) } else { nil } }
  }

  var callJoins: [NodeID] {
    compactMap { if case .callJoined(_, let id) = $0 { id } else { nil } }
  }

  /// The initiators of the calls reported as started.
  var initiators: [NodeID] {
    compactMap { if case .callStarted(let call) = $0 { call.info.initiator } else { nil } }
  }
}

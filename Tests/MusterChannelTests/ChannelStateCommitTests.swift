import MusterBase
import MusterChannel
import MusterCrypto
import MusterWire
import Testing

/// Entries of this node that must be on the disk before they are sent or shown, with a disk that is
/// slow or fails.
struct ChannelStateCommitTests {
  private func talking() -> ChannelStateWorld {
    var world = ChannelStateWorld.mesh(2)
    for index in world.nodes.indices {
      world.startOrJoin(index, proposing: UInt64(index) + 1)
      world.run(for: .milliseconds(200))
    }
    world.forgetEvents()
    return world
  }

  private func failures(_ events: [ChannelEvent]) -> [CommitSubject] {
    events.compactMap { if case .commitFailed(let subject) = $0 { subject } else { nil } }
  }

  /// Documents must be equal, and no other node accepts a message without its author's role.
  @Test func aStoredMessageWaitsWhileItsAuthorsGrantIsLost() {
    var world = ChannelStateWorld(3, settings: ChannelSettings())
    let author = world.ids[1]
    for member in world.ids.dropFirst() {
      world.act(0) { $0.grant(.presenter, to: member, expiresAt: 0, at: $1) }
    }
    for index in 1..<3 { world.connect(index, to: Array(0..<index)) }
    world.run(for: .seconds(2))
    world.say(1, "hello")
    world.run(for: .seconds(1))
    #expect(world.nodes[2].events.texts == ["hello"])
    world.disconnect(2, from: [0, 1], .crashed)
    world.comeBack(2, bootID: 2, to: [], .crashed, remembers: true) { entry in
      if case .grant(let grant) = entry.entry.body { grant.subject == author } else { false }
    }
    #expect(!world.nodes[2].state.entries.contains { $0.entry.author == author })
    world.connect(2, to: [0])
    world.run(for: .seconds(2))
    #expect(world.nodes[2].state.entries.contains { $0.entry.body.kind == .message })
    #expect(world.nodes[2].state.checkInvariants() == [] && world.agree)
  }

  @Test func nobodyHearsOfAMessageBeforeItIsWritten() {
    var world = ChannelStateWorld.mesh(2)
    let before = world.nodes[0].state.digest
    world.isDiskStopped = true
    world.say(0, "first")
    world.say(0, "second")
    world.run(for: .seconds(5))
    for node in world.nodes { #expect(node.events.texts.isEmpty) }
    // Anti-entropy does not deliver the message either.
    #expect(world.nodes[0].state.digest == before && world.agree)
    #expect(!world.nodes[0].state.isFlushed)
    world.finishWrites(isDurable: true)
    world.run(for: .milliseconds(200))
    for node in world.nodes {
      #expect(node.events.texts == ["first", "second"])
      #expect(node.state.checkInvariants() == [])
    }
  }

  @Test func aUseOfAnInviteIsConfirmedOnceHoweverSlowTheDisk() {
    var world = ChannelStateWorld(3, settings: ChannelSettings())
    let secret = testIdentity(900)
    var grant: [UInt8] = []
    world.act(0) { state, now in
      let made = state.bearerGrant(.attendee, for: secret.id, expiresAt: 0, uses: 2, at: now)
      grant = made.grant.bytes
      return made.outputs
    }
    for index in 1..<3 { world.connect(index, to: Array(0..<index)) }
    world.isDiskStopped = true
    for index in 1..<3 {
      world.act(index) { $0.redeem(grant: grant, secret: secret, at: $1) }
      world.run(for: .seconds(2))
    }
    #expect(world.writes.count == 2)
    world.finishWrites(isDurable: true)
    world.run(for: .seconds(2))
    let signed = world.nodes[0].written.filter { entry in
      if case .grant(let grant) = entry.entry.body { grant.invite != nil } else { false }
    }
    #expect(signed.count == 2)
    for node in world.nodes {
      let invite = node.state.rights.invites(at: 0).first
      #expect(invite?.confirmed == world.ids.dropFirst().sorted())
    }
  }

  @Test func aMessageThatCannotBeWrittenIsReportedAndDropped() {
    var world = ChannelStateWorld.mesh(2)
    world.isDiskStopped = true
    world.say(0, "lost")
    world.finishWrites(isDurable: false)
    #expect(failures(world.nodes[0].events) == [.message])
    world.say(0, "next")
    world.run(for: .milliseconds(200))
    for node in world.nodes { #expect(node.events.texts == ["next"]) }
    #expect(world.agree)
  }

  @Test func theEndOfACallIsHeardBeforeItsInitiatorHasLeft() {
    var world = talking()
    world.isDiskStopped = true
    world.act(0) { $0.leaveCall(at: $1) }
    world.run(for: .seconds(2))
    #expect(!world.nodes[0].state.isInCall)
    #expect(world.nodes[0].events.callEnds == [CallEndReason.ended])
    #expect(world.nodes[1].state.call?.participants.count == 2)
    world.finishWrites(isDurable: true)
    world.run(for: .milliseconds(200))
    #expect(world.nodes[1].events.callEnds == [CallEndReason.ended])
    #expect(world.nodes[1].events.callLeaves.isEmpty && !world.nodes[1].state.isInCall)
  }

  @Test func aCallWhoseEndCannotBeWrittenGoesOnWithoutItsInitiator() {
    var world = talking()
    world.isDiskStopped = true
    world.act(0) { $0.leaveCall(at: $1) }
    world.finishWrites(isDurable: false)
    world.run(for: .milliseconds(200))
    #expect(failures(world.nodes[0].events) == [.callEnd])
    #expect(!world.nodes[0].state.isInCall && world.nodes[1].state.isInCall)
    for node in world.nodes {
      #expect(node.state.call?.participants == [world.ids[1]])
      #expect(node.state.checkInvariants() == [])
    }
  }

  @Test func aRemovalIsWrittenWithItsKeyChange() {
    var world = ChannelStateWorld(2, settings: ChannelSettings())
    let member = world.ids[1]
    world.act(0) { $0.grant(.presenter, to: member, expiresAt: 0, at: $1) }
    world.isDiskStopped = true
    var outputs: [ChannelState.Output] = []
    world.act(0) { state, now in
      outputs = state.changeKey(to: otherKey.keyID, removing: [member], at: now)
      return outputs
    }
    var kinds: [EntryBody.Kind?] = []
    for case .commit(let entries, _) in outputs { kinds += entries.map(\.entry.body.kind) }
    #expect(kinds == [.grant, .epoch])
    #expect(world.nodes[0].state.currentEpoch == 0)
    #expect(world.nodes[0].state.role(of: member) == .presenter)
    world.finishWrites(isDurable: true)
    #expect(world.nodes[0].state.currentEpoch == 1)
    #expect(world.nodes[0].state.refusal(of: member) == .removed)
  }

  @Test func aDiskThatHasStoppedTakesNoMoreThanItsBound() {
    var world = ChannelStateWorld(1)
    world.isDiskStopped = true
    while !world.nodes[0].state.isWaitingForDisk, world.writes.count < 1000 { world.say(0, "on") }
    let count = world.writes.count
    world.say(0, "too much")
    #expect(world.writes.count == count && count < 1000)
    #expect(failures(world.nodes[0].events) == [.message])
  }

  @Test func anOutcomeThatNobodyWaitsForChangesNothing() {
    var world = ChannelStateWorld(1)
    world.say(0, "once")
    let digest = world.nodes[0].state.digest
    var outputs: [ChannelState.Output] = []
    world.act(0) { state, now in
      outputs = state.finish(
        CommitID(channel: state.channel, number: 1), isDurable: true, at: now)
      return outputs
    }
    #expect(outputs.isEmpty && world.nodes[0].state.digest == digest)
  }
}

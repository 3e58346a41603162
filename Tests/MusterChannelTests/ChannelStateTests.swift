import MusterBase
import MusterChannel
import MusterCrypto
import MusterWire
import Testing

/// Rosters and messages of members that are linked to each other.
struct ChannelStateTests {
  @Test(arguments: 2...5)
  func everyoneKnowsEveryoneOnce(_ count: Int) {
    let world = ChannelStateWorld.mesh(count)
    #expect(world.agree)
    for node in world.nodes {
      let others = world.ids.filter { $0 != node.id }.sorted()
      #expect(node.state.members.map(\.id) == others)
      #expect(node.events.joined.sorted() == others)
      #expect(node.events.count == others.count)
    }
  }

  @Test func theEndsOfAChainKnowEachOtherUntilItBreaks() {
    var world = ChannelStateWorld(5)
    for index in 1..<5 { world.connect(index, to: [index - 1]) }
    world.run(for: .seconds(3))
    for node in world.nodes { #expect(node.state.members.count == 4) }
    world.forgetEvents()
    world.disconnect(2, from: [3], .crashed)
    world.run(for: .seconds(3))
    #expect(world.nodes[0].events.left.map(\.id).sorted() == world.ids[3...].sorted())
    #expect(world.nodes[0].events.left.allSatisfy { $0.reason == .crashed })
    #expect(world.nodes[0].state.members.map(\.id) == world.ids[1...2].sorted())
    #expect(world.nodes[4].state.members.map(\.id) == [world.ids[3]])
    world.connect(2, to: [3])
    world.run(for: .seconds(3))
    for node in world.nodes { #expect(node.state.members.count == 4) }
    #expect(world.agree)
  }

  @Test func aPresenceIsSeenByEveryone() {
    var world = ChannelStateWorld.mesh(3)
    world.forgetEvents()
    world.act(1) { $0.setFlags([.audioMuted, .left], at: $1) }
    world.run(for: .seconds(1))
    for index in [0, 2] {
      // Only a member that leaves announces it.
      #expect(world.nodes[index].state.member(world.ids[1])?.flags == [.audioMuted])
      #expect(world.nodes[index].events.count == 1)
    }
  }

  // MARK: Going and coming

  @Test func aLeaveIsSettledWhenEveryNeighbourHasIt() {
    var world = ChannelStateWorld.mesh(3)
    world.forgetEvents()
    world.act(1) { $0.leave(at: $1) }
    #expect(world.nodes[1].state.hasLeft && !world.nodes[1].state.isFlushed)
    world.run(for: .seconds(1))
    #expect(world.nodes[1].state.isFlushed)
    world.disconnect(1, from: [0, 2], .left)
    world.run(for: .seconds(1))
    for index in [0, 2] {
      #expect(world.nodes[index].events.left.map(\.id) == [world.ids[1]])
      #expect(world.nodes[index].events.left.map(\.reason) == [.left])
      #expect(world.nodes[index].state.members.count == 1)
    }
  }

  /// The `left` flag of its last presence, which the member no longer has, must not keep it out.
  @Test func aMemberCanReenterInTheSameProcess() {
    var world = ChannelStateWorld.mesh(3)
    world.act(1) { $0.leave(at: $1) }
    world.run(for: .seconds(1))
    world.forgetEvents()
    world.comeBack(1, bootID: 1, to: [0, 2], .left)
    world.run(for: .seconds(3))
    for index in [0, 2] {
      #expect(world.nodes[index].events.joined == [world.ids[1]])
      #expect(world.nodes[index].events.left.isEmpty)
    }
    #expect(world.nodes[1].state.members.count == 2)
    #expect(world.agree)
  }

  @Test func aRestartedMemberWithoutADiskIsANewProcess() {
    var world = ChannelStateWorld.mesh(3)
    world.forgetEvents()
    world.crash(1)
    world.comeBack(1, bootID: 2, to: [0, 2], .replaced)
    world.run(for: .seconds(3))
    for index in [0, 2] {
      #expect(world.nodes[index].events.left.map(\.id) == [world.ids[1]])
      #expect(world.nodes[index].events.left.map(\.reason) == [.replaced])
      #expect(world.nodes[index].events.joined == [world.ids[1]])
      #expect(world.nodes[index].state.member(world.ids[1])?.bootID == 2)
    }
    #expect(world.nodes[1].state.members.count == 2)
    #expect(world.agree)
  }

  @Test func oneOfTwoMayStartAnew() {
    var world = ChannelStateWorld.mesh(2)
    world.forgetEvents()
    world.crash(1)
    world.comeBack(1, bootID: 2, to: [0], .replaced)
    world.run(for: .seconds(3))
    #expect(world.nodes[0].events.left.map(\.id) == [world.ids[1]])
    #expect(world.nodes[0].events.joined == [world.ids[1]])
    #expect(world.nodes[0].state.member(world.ids[1])?.bootID == 2)
    #expect(world.agree)
  }

  @Test func aSilentMemberIsReportedCrashed() {
    var world = ChannelStateWorld.mesh(3)
    world.forgetEvents()
    world.run(for: .seconds(20))
    #expect(world.nodes.allSatisfy { $0.events.isEmpty })
    world.crash(1)
    world.run(for: .seconds(8))
    for index in [0, 2] {
      #expect(world.nodes[index].events.left.map(\.id) == [world.ids[1]])
      #expect(world.nodes[index].events.left.map(\.reason) == [.crashed])
      #expect(world.nodes[index].state.suspected.isEmpty)
    }
  }

  // MARK: Text

  @Test func textReachesEveryoneOnceAndInOneOrder() {
    var world = ChannelStateWorld.mesh(3)
    for number in 0..<10 { world.say(number % 3, "text \(number)") }
    world.run(for: .seconds(1))
    for node in world.nodes {
      #expect(node.events.texts == (0..<10).map { "text \($0)" })
      #expect(node.state.history.map(\.text) == node.events.texts)
    }
  }

  @Test func textForOneIsReadByBothEndsAlone() {
    var world = ChannelStateWorld.mesh(4)
    world.say(1, "for one", to: 2)
    world.say(1, "for all")
    world.run(for: .seconds(1))
    for index in [1, 2] {
      #expect(world.nodes[index].events.texts == ["for one", "for all"])
      #expect(world.nodes[index].state.history.first?.to == world.ids[2])
    }
    for index in [0, 3] {
      #expect(world.nodes[index].events.texts == ["for all"])
      #expect(world.nodes[index].state.history.map(\.text) == ["for all"])
    }
    #expect(world.agree)
  }

  @Test func aLatecomerGetsTheHistory() {
    var world = ChannelStateWorld(3)
    world.connect(1, to: [0])
    for number in 0..<5 { world.say(number % 2, "text \(number)") }
    world.run(for: .seconds(1))
    world.connect(2, to: [0, 1])
    world.run(for: .seconds(3))
    #expect(world.nodes[2].events.texts == (0..<5).map { "text \($0)" })
  }

  @Test func textThatIsTooLongIsNotSent() {
    var world = ChannelStateWorld.mesh(2)
    world.say(0, String(repeating: "x", count: Limits.textBytes + 1))
    world.run(for: .seconds(1))
    #expect(world.nodes.allSatisfy { $0.state.history.isEmpty })
    world.say(0, String(repeating: "x", count: Limits.textBytes))
    world.run(for: .seconds(1))
    #expect(world.nodes.allSatisfy { $0.state.history.count == 1 })
  }

  // MARK: Counters

  /// The Lamport counter of the earlier presence exceeds the clock by more than one entry may raise
  /// it.
  @Test(arguments: [UInt64(1) << 20, 1 << 33, 1 << 60, Entry.lamportLimit - 1000])
  func aNewProcessOverridesEarlierPresences(_ lamport: UInt64) {
    var world = ChannelStateWorld.mesh(2)
    let author = testIdentity(1)
    let former = SignedEntry.sign(
      Entry(
        author: author.id, sequence: 5, lamport: lamport,
        body: .presence(Presence(bootID: 99, flags: [], name: "old", call: nil, streams: []))),
      by: author, in: testKey.channelID)
    let berta = world.ids[1]
    world.act(0) { $0.receive(.entry(former.bytes), from: berta, at: $1) }
    world.run(for: .seconds(2))
    world.act(0) { $0.setFlags([.audioMuted], at: $1) }
    world.run(for: .seconds(2))
    #expect(world.nodes[1].state.member(author.id)?.bootID == 1)
    #expect(world.nodes[1].state.member(author.id)?.flags == [.audioMuted])
    #expect(world.agree)
  }

  // MARK: Admission

  @Test func aRedemptionOfNothingIsNotAdmittedEvenFromTheOwner() {
    var world = ChannelStateWorld(2, settings: ChannelSettings())
    world.connect(1, to: [0])
    world.run(for: .seconds(1))
    let owner = world.nodes[0].identity
    let forged = Redemption(
      grant: [], signature: [UInt8](repeating: 0, count: Entry.signatureBytes))
    for body in [EntryBody.redemption(forged), .end(CallEnd(call: callID(1), term: 1))] {
      let kind = body.kind
      let entry = SignedEntry.sign(
        Entry(author: owner.id, sequence: 1, lamport: 50, body: body), by: owner,
        in: world.channel)
      world.act(1) { $0.receive(.entry(entry.bytes), from: owner.id, at: $1) }
      let isKept = world.nodes[1].state.entries.contains { $0.id == entry.id }
      #expect(isKept == (kind == .end))
    }
  }
}

import MusterBase
import MusterChannel
import MusterCrypto
import MusterWire
import Testing

/// What a node does when the document does not keep its own entries.
struct ChannelStateRetentionTests {
  private var world = ChannelStateWorld.mesh(2)

  /// Lets the first node receive one entry of each of many authors with the highest counter.
  private mutating func flood(_ count: Int, _ body: EntryBody) {
    let neighbour = world.ids[1]
    for number in 0..<count {
      var author = Pen(UInt64(10_000 + number))
      let entry = author.sign(body, lamport: Entry.lamportLimit)
      world.act(0) { $0.receive(.entry(entry.bytes), from: neighbour, at: $1) }
    }
  }

  @Test mutating func aCallThatIsNotKeptDoesNotStart() {
    let claim = CallClaim(
      call: callID(7), term: 1, startedAt: 0, order: 0, knowledge: .compared)
    flood(Limits.callEntries, .claim(claim))
    world.forgetEvents()
    world.startOrJoin(0, proposing: 1)
    #expect(world.nodes[0].events.contains(.notKept(.call)))
    #expect(!world.nodes[0].state.isInCall)
    #expect(world.nodes[0].state.checkInvariants() == [])
  }

  /// A table that is full of presences with the highest counters takes no other.
  @Test func aPresenceThatIsNotKeptIsPublishedAgainEachSecond() {
    let identity = testIdentity(1)
    var setup = ChannelState.Setup(
      identity: identity, channel: testKey.channelID, genesis: nil, name: "anna", bootID: 1,
      entropy: .seeded(1), seed: 1)
    let presence = Presence(bootID: 9, flags: [], name: "x", call: nil, streams: [])
    for number in 0..<Limits.authors {
      var author = Pen(UInt64(10_000 + number))
      setup.entries.append(author.sign(.presence(presence), lamport: Entry.lamportLimit))
    }
    var state = ChannelState(setup)
    _ = state.enter(at: seconds(1))
    for second in 2...4 {
      #expect(!state.entries.contains { $0.entry.author == identity.id })
      #expect(state.deadline == seconds(Double(second)))
      #expect(state.checkInvariants() == [])
      _ = state.tick(at: seconds(Double(second)), lastHeard: { _ in nil }, roundTrip: { _ in nil })
    }
  }
}

import MusterBase
import MusterChannel
import MusterCrypto
import MusterWire
import Testing

/// Small networks of every shape: entries reach all nodes soon, at a bounded cost.
struct GossipNetworkTests {
  enum Shape: CaseIterable {
    case chain, star, ring, mesh, random

    func links(_ count: Int, seed: UInt64) -> [(Int, Int)] {
      var prng = PRNG(seed: seed)
      switch self {
      case .chain: return (1..<count).map { ($0 - 1, $0) }
      case .star: return (1..<count).map { (0, $0) }
      case .ring: return (0..<count).map { ($0, ($0 + 1) % count) }
      case .mesh: return (1..<count).flatMap { a in (0..<a).map { (a, $0) } }
      case .random:
        // A tree, which connects all nodes, and some more links.
        let tree = (1..<count).map { (prng.below($0), $0) }
        let more = (2..<count).filter { _ in prng.chance(0.5) }
          .map { (prng.below($0), $0) }
          .filter { link in !tree.contains { $0 == link } }
        return tree + more
      }
    }
  }

  @Test(arguments: Shape.allCases, [0, 0.2])
  func everyNodeGetsEveryEntry(shape: Shape, loss: Double) {
    for seed in 1...3 as ClosedRange<UInt64> {
      var prng = PRNG(seed: seed)
      var net = GossipNet(8, links: shape.links(8, seed: seed), loss: loss, seed: seed)
      net.introduceAll()
      var sent: [SignedEntry] = []
      for number in 0..<40 {
        sent.append(net.say(prng.below(8), Entries.message("text \(number)")))
        net.say(prng.below(8), Entries.presence("name \(number)"))
        net.run(.milliseconds(Int64(prng.below(100))))
      }
      let took = net.recompute(within: .seconds(30))
      #expect(took != nil, "\(shape), loss \(loss), seed \(seed)")
      #expect(sent.allSatisfy { net.haveAll($0) }, "\(shape), loss \(loss), seed \(seed)")
      if loss == 0, let took { #expect(took < .seconds(1), "\(shape), seed \(seed)") }
    }
  }

  @Test func entriesCrossAChainAtLinkSpeed() {
    var net = GossipNet(5, links: Shape.chain.links(5, seed: 1))
    net.run(.seconds(3))
    let news = net.say(0, Entries.presence("new"))
    net.run(GossipNet.delay * 4)
    #expect(net.haveAll(news))
  }

  @Test func inAFullMeshEachNodeGetsAnEntryOnce() {
    var net = GossipNet(6, links: Shape.mesh.links(6, seed: 1))
    net.introduceAll()
    net.run(.seconds(3))
    #expect(net.agrees)
    let before = net.entriesSent
    let news = net.say(2, Entries.message("news"))
    net.run(.seconds(5))
    #expect(net.haveAll(news) && net.entriesSent - before == 5)
  }

  @Test func aRingSpreadsEntriesInBothDirections() {
    var net = GossipNet(9, links: Shape.ring.links(9, seed: 1))
    net.introduceAll()
    net.run(.seconds(3))
    let before = net.entriesSent
    net.say(0, Entries.message("news"))
    net.run(.seconds(5))
    // The entry goes to eight other nodes; the two directions of the ring meet at the far end.
    #expect(net.agrees && (8...10).contains(net.entriesSent - before))
  }

  @Test func agreementCostsADigestASecond() {
    var net = GossipNet(8, links: Shape.mesh.links(8, seed: 1))
    net.introduceAll()
    net.run(.seconds(5))
    #expect(net.agrees)
    let before = net.bytes
    net.run(.seconds(60))
    #expect(Double(net.bytes - before) / 60 / 8 < 55)
  }

  @Test func twoHalvesHealSoon() throws {
    let half = [(0, 1), (1, 2), (0, 2), (3, 4), (4, 5), (3, 5)]
    var net = GossipNet(6, links: half)
    for number in 0..<30 {
      net.say(0, Entries.message("left \(number)"))
      net.say(3, Entries.message("right \(number)"))
      net.run(.milliseconds(100))
    }
    #expect(!net.agrees)
    net.connect(2, 3)
    let settled = net.recompute(within: .seconds(10))
    let took = try #require(settled)
    #expect(took < .seconds(2))
  }

  /// The entries exceed the capacity of an outbox.
  @Test func aNodeThatWasAwayCatchesUp() throws {
    var net = GossipNet(2, links: [])
    for number in 0..<700 { net.say(0, Entries.message("text \(number)")) }
    for number in 0..<50 { net.say(1, Entries.message("mine \(number)")) }
    net.connect(0, 1)
    let settled = net.recompute(within: .seconds(20))
    let took = try #require(settled)
    #expect(took < .seconds(10))
    // Almost all entries cross the link only once.
    #expect(net.entriesSent <= 800)
  }

  @Test(arguments: [0, 0.2])
  func anEquivocationIsDetectedEverywhere(loss: Double) {
    var net = GossipNet(6, links: Shape.chain.links(6, seed: 1), loss: loss, seed: 4)
    let author = testIdentity(40).id
    let pair = Entries.contradiction(40)
    let newer = Entries.signed(40, sequence: 900, lamport: 900, Entries.presence("newer"))
    net.broadcast(newer, at: 3)
    net.broadcast(pair[0], at: 0)
    net.broadcast(pair[1], at: 5)
    let took = net.recompute(within: .seconds(20))
    #expect(took != nil)
    #expect(net.nodes.allSatisfy { $0.document.quarantined == [author] && $0.document.count == 1 })
  }

  @Test func outdatedProofsReachNodesWithNewerEntries() {
    var net = GossipNet(2, links: [])
    let pair = ["this", "that"].map {
      Entries.signed(40, sequence: 5, lamport: 5, Entries.presence($0))
    }
    for entry in pair { net.broadcast(entry, at: 0) }
    net.broadcast(
      Entries.signed(40, sequence: 6, lamport: 6, Entries.presence("newer")), at: 1)
    net.connect(0, 1)
    #expect(net.recompute(within: .seconds(5)) != nil)
    #expect(net.nodes.allSatisfy { $0.document.quarantined == [testIdentity(40).id] })
  }

  @Test func entriesTakeAnotherPathWhenALinkIsLost() {
    var net = GossipNet(5, links: Shape.ring.links(5, seed: 1))
    net.introduceAll()
    net.run(.seconds(3))
    net.disconnect(0, 1)
    let news = net.say(0, Entries.message("news"))
    net.run(.seconds(3))
    #expect(net.haveAll(news))
  }
}

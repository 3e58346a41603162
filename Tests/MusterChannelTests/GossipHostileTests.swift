import MusterBase
import MusterChannel
import MusterCrypto
import MusterWire
import Testing

/// A neighbour that sends nonsense costs little and does not hold up the others.
struct GossipHostileTests {
  private let peer = testIdentity(2).id
  private let other = testIdentity(3).id

  private func filled(_ count: Int, links: [UInt64] = [2, 3]) -> Gossip {
    var gossip = Gossip.linked(1, to: [])
    gossip.restore(
      (0..<count).map {
        Entries.signed(
          8, sequence: UInt64($0), lamport: UInt64($0 + 1), Entries.message("text \($0)"))
      })
    for link in links { _ = gossip.linkUp(testIdentity(link).id, at: seconds(1)) }
    return gossip
  }

  private func list(_ ids: [UInt64], depth: UInt8 = 0, prefix: UInt64 = 0) -> RangeSummary {
    RangeSummary(depth: depth, prefix: prefix, content: .ids(ids))
  }

  @Test func entriesFromOthersThanNeighboursAreIgnored() {
    var gossip = filled(3)
    let outsider = testIdentity(50).id
    let entry = Entries.signed(50, sequence: 1, lamport: 1, Entries.message("hello"))
    let digest = gossip.document.digest
    for message in [
      .entry(entry.bytes), .digest(DocumentDigest(count: 0, sum: .zero)), .ranges([list([])]),
      .want([1]), .entriesReceived([1]),
    ] as [Control] {
      #expect(gossip.receive(message, from: outsider, at: seconds(1)).isEmpty)
    }
    #expect(gossip.document.digest == digest)
  }

  @Test func badEntriesAreCountedAndNotAcknowledged() {
    var gossip = filled(0, links: [2])
    let good = Entries.signed(5, sequence: 1, lamport: 1, Entries.message("hello"))
    var forged = good.bytes
    forged[forged.count - 1] ^= 1
    _ = gossip.receive(.entry(forged), from: peer, at: seconds(1))
    _ = gossip.receive(.entry([1, 2, 3]), from: peer, at: seconds(1))
    #expect(gossip.counters.forged == 1 && gossip.counters.malformed == 1)
    #expect(gossip.document.count == 0)
    let later = gossip.tick(at: seconds(3)).sends.map(\.message)
    #expect(later == [.digest(gossip.document.digest)])
  }

  @Test func aFloodOfEntriesIsCutOff() {
    var gossip = filled(0)
    for number in 0..<5000 {
      let junk = [UInt8](repeating: UInt8(number & 255), count: 100 + number % 100)
      #expect(gossip.receive(.entry(junk), from: peer, at: seconds(1)).isEmpty)
    }
    #expect(gossip.counters.overBudget >= 2000)
    // Entries from other neighbours are still accepted.
    let good = Entries.signed(5, sequence: 1, lamport: 1, Entries.message("hello"))
    let out = gossip.receive(.entry(good.bytes), from: other, at: seconds(1))
    #expect(out.contains(.inserted(good, removed: [])))
  }

  @Test func comparisonsAreBounded() {
    let wrong = [UInt8](repeating: 9, count: RangeSummary.fingerprintBytes)
    let everywhere = (0..<40).map {
      RangeSummary(depth: 0, prefix: UInt64($0), content: .fingerprint(wrong))
    }
    let floods: [Control] = [
      .digest(DocumentDigest(count: 7, sum: .zero)), .ranges(everywhere),
      .ranges((0..<40).map { list([], prefix: UInt64($0)) }),
    ]
    for flood in floods {
      var gossip = filled(1000)
      var (ranges, entries) = (0, 0)
      for _ in 0..<500 {
        let out = gossip.receive(flood, from: peer, at: seconds(1))
        ranges += out.ranges.reduce(0) { $0 + $1.size }
        entries += out.entries(to: peer).count
      }
      #expect(ranges <= 24_000 && entries <= 4)
      #expect(gossip.counters.overBudget > 0)
    }
  }

  @Test func requestsAreBoundedAndUnknownIdsSkipped() {
    var gossip = filled(200)
    #expect(gossip.receive(.want([1, 2, 3]), from: peer, at: seconds(1)).isEmpty)
    let held = gossip.document.all(.message).map(\.id.prefix)
    var sent = 0
    for round in 0..<100 {
      let ids = (0..<Control.idLimit).map { held[(round + $0) % held.count] }
      sent += bytes(of: .want(ids), &gossip, at: seconds(1))
    }
    #expect((255_000...256_000).contains(sent))
  }

  /// The bytes of the entries that a message brings its sender, which acknowledges them at once, so
  /// that the budget and not the window is the limit.
  private func bytes(
    of message: Control, _ gossip: inout Gossip, from sender: NodeID? = nil, at now: Instant
  ) -> Int {
    let sender = sender ?? peer
    var out = gossip.receive(message, from: sender, at: now).entries(to: sender)
    var sent = 0
    while !out.isEmpty {
      sent += out.reduce(0) { $0 + $1.count }
      let ids = out.map { SignedEntry.id(of: $0).prefix }
      out = gossip.receive(.entriesReceived(ids), from: sender, at: now).entries(to: sender)
    }
    return sent
  }

  /// A neighbour that claims to have nothing gets the document again and again, as fast as one that
  /// wants all of it.
  @Test func emptyListsBringNoMoreThanRequests() {
    var gossip = filled(1000)
    var sent = 0
    for tick in 0..<40 {
      sent += bytes(of: .ranges([list([])]), &gossip, at: seconds(1 + Double(tick) * 0.1))
    }
    #expect((600_000...780_000).contains(sent))
  }

  /// In a call the uplink is for audio and video, however many neighbours ask.
  @Test func inACallDeliveriesTakeAShareOfTheUplink() {
    var gossip = filled(1000)
    let rate = 20_000.0
    gossip.limitDeliveries(toBytesPerSecond: rate, at: seconds(1))
    var sent = [0, 0]
    for tick in 0..<80 {
      for (index, sender) in [peer, other].enumerated() {
        let now = seconds(1 + Double(tick) * 0.25)
        gossip.limitDeliveries(toBytesPerSecond: rate, at: now)
        sent[index] += bytes(of: .ranges([list([])]), &gossip, from: sender, at: now)
      }
    }
    // 20 s, and what is there at the beginning. The first to ask gets more, the other its part of
    // the half that is divided.
    #expect(sent[0] + sent[1] <= 20 * 20_000 + 64_000)
    #expect(sent.allSatisfy { $0 >= 20 * 20_000 / 4 })
    gossip.limitDeliveries(toBytesPerSecond: nil, at: seconds(100))
    #expect(bytes(of: .ranges([list([])]), &gossip, at: seconds(102)) > 60_000)
  }

  /// What one member writes without end does not keep the budget from what another wrote last,
  /// whether or not both came by one invite.
  @Test(arguments: [false, true]) func thoseWhoWriteTakeTurns(byOneInvite: Bool) {
    var gossip = filled(500)
    let last = Entries.signed(9, sequence: 1, lamport: 600, Entries.message("I am back"))
    gossip.restore([last])
    if byOneInvite {
      let admission = Admission(principal: testIdentity(60).id, role: .consumer)
      var admissions = PeerTable<NodeID, Admission>()
      for author in [8, 9] as [UInt64] { admissions[testIdentity(author).id] = admission }
      _ = gossip.settle(admissions) { _ in true }
    }
    gossip.limitDeliveries(toBytesPerSecond: 2000, at: seconds(1))
    // The neighbour has used the budget up.
    let first = Control.want([gossip.document.all(.message)[0].id.prefix])
    while bytes(of: first, &gossip, at: seconds(1)) > 0 {}
    let ranges = Control.ranges([list([])])
    let out = gossip.receive(ranges, from: peer, at: seconds(2)).entries(to: peer)
    #expect(!out.isEmpty && out.count < 20 && out.contains(last.bytes))
  }

  /// The budget covers what the first ranges show to be lacking, which a flood fills again and
  /// again. Each comparison begins elsewhere, so that it reaches all entries in time.
  @Test func comparisonsBeginAnywhere() {
    // Some 20 entries in each of 16 ranges, whose lists do not fit into one message.
    var gossip = filled(320)
    let different = (0..<16).map { branch in
      RangeSummary(
        depth: 4, prefix: UInt64(branch) << 60,
        content: .fingerprint([UInt8](repeating: 1, count: RangeSummary.fingerprintBytes)))
    }
    let starts = (0..<20).compactMap { round in
      gossip.receive(.ranges(different), from: peer, at: seconds(Double(round + 1)))
        .ranges.first?.prefix
    }
    #expect(starts.count == 20)
    #expect((0..<16).count { branch in starts.contains(UInt64(branch) << 60) } > 5)
  }

  @Test func aNeighbourThatListsMissingEntriesBlocksNoOther() {
    var gossip = filled(0)
    var prng = PRNG(seed: 5)
    var asked = 0
    for _ in 0..<20 {
      let ranges = (0..<16).map { branch in
        list((0..<32).map { _ in prng.next() }, depth: 4, prefix: UInt64(branch) << 60)
      }
      asked += gossip.receive(.ranges(ranges), from: peer, at: seconds(1)).wants(of: peer).count
    }
    #expect(asked == 512)
    let out = gossip.receive(.ranges([list([77])]), from: other, at: seconds(1))
    #expect(out.wants(of: other) == [77])
  }

  @Test func oneIsAskedAtATimeAndThenAnother() {
    var gossip = filled(0)
    func wants(_ from: NodeID, at time: Double) -> [UInt64] {
      gossip.receive(.ranges([list([77, 77])]), from: from, at: seconds(time)).wants(of: from)
    }
    #expect(wants(peer, at: 1) == [77])
    #expect(wants(other, at: 1.5).isEmpty)
    // The first neighbour did not deliver, so the entry is requested from another one first.
    #expect(wants(peer, at: 2.1).isEmpty)
    #expect(wants(other, at: 2.2) == [77])
    #expect(wants(peer, at: 4.2) == [77])
  }

  @Test(arguments: 1...10 as ClosedRange<UInt64>)
  func nonsenseOfEveryKindHarmsNothing(seed: UInt64) {
    var prng = PRNG(seed: seed)
    var gossip = filled(100)
    let digest = gossip.document.digest
    var now = seconds(1)
    for _ in 0..<500 {
      now = now + .milliseconds(Int64(prng.below(20)))
      let out = gossip.receive(nonsense(&prng), from: peer, at: now)
      #expect(out.bytes < 60_000, "seed \(seed)")
      #expect(
        out.sends.allSatisfy { Control.encode([$0.message]).count <= Limits.datagramBytes },
        "seed \(seed)")
      if let deadline = gossip.deadline, deadline <= now { _ = gossip.tick(at: now) }
    }
    #expect(gossip.document.digest == digest, "seed \(seed)")
  }

  private func nonsense(_ prng: inout PRNG) -> Control {
    let ids = (0..<prng.below(Control.idLimit + 1)).map { _ in prng.next() }
    switch prng.below(5) {
    case 0: return .entry(prng.bytes(prng.below(300)))
    case 1: return .entriesReceived(ids)
    case 2:
      return .digest(DocumentDigest(count: UInt32(prng.below(200)), sum: testIdentity(7).id.key))
    case 3: return .want(ids)
    default:
      let ranges = (0..<(1 + prng.below(40))).map { _ in
        RangeSummary(
          depth: UInt8(prng.below(256)), prefix: prng.next(),
          content: prng.chance(0.5)
            ? .fingerprint(prng.bytes(16)) : .ids((0..<prng.below(33)).map { _ in prng.next() }))
      }
      return .ranges(ranges)
    }
  }
}

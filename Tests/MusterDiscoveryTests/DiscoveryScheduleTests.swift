import MusterBase
import MusterCrypto
import MusterDiscovery
import MusterWire
import Testing

/// The schedule of announcements to networks and configured peers.
struct DiscoveryScheduleTests {
  private func gaps(_ times: [Instant]) -> [Double] {
    zip(times, times.dropFirst()).map { ($1 - $0).inSeconds }
  }

  private func isNear(_ gap: Double, _ expected: Double) -> Bool {
    gap >= expected * 0.799 && gap <= expected * 1.201
  }

  @Test(arguments: [1, 2, 3, 4, 5] as [UInt64])
  func broadcastsBackOffToEveryFiveSeconds(seed: UInt64) {
    var a = testDiscovery(seed)
    var times: [Instant] = []
    if a.open(testKey, at: seconds(1)).broadcasts.count == 1 { times.append(seconds(1)) }
    drive(&a, until: seconds(60)) { now, outputs in
      times += outputs.broadcasts.map { _ in now }
    }
    let expected = [0.25, 0.5, 1, 2] + [Double](repeating: 5, count: 6)
    let measured = gaps(times)
    #expect(measured.count >= expected.count, "seed \(seed)")
    for (gap, wanted) in zip(measured, expected) {
      #expect(isNear(gap, wanted), "seed \(seed): \(gap) for \(wanted)")
    }
  }

  @Test func configuredPeersAreRetriedForEver() {
    var a = testDiscovery(1)
    let peer = testAddress(5)
    #expect(a.setPeers([Contact(peer)], at: .zero).isEmpty)
    #expect(a.deadline == nil)
    var times = a.open(testKey, at: .zero).sends.map { _ in Instant.zero }
    drive(&a, until: seconds(3600)) { now, outputs in
      times += outputs.sends.filter { $0.address == peer }.map { _ in now }
    }
    let measured = gaps(times)
    #expect(measured.count > 3600 / 6)
    let expected = [0.25, 0.5, 1, 2, 4] + [Double](repeating: 5, count: measured.count)
    for (gap, wanted) in zip(measured, expected) { #expect(isNear(gap, wanted)) }
  }

  @Test func linkedPeersAreAnnouncedToEveryThirtySeconds() throws {
    var a = testDiscovery(1)
    let peer = testAddress(5)
    _ = a.setPeers([Contact(peer)], at: .zero)
    _ = a.open(testKey, at: .zero)
    a.setLinked([(SessionLinkID(key: testKey.keyID, peer: testIdentity(2).id), peer)])
    var times: [Instant] = []
    drive(&a, until: seconds(200)) { now, outputs in
      times += outputs.sends.map { _ in now }
    }
    #expect(times.first == seconds(30))
    for gap in gaps(times) { #expect(isNear(gap, 30)) }

    a.setLinked([])
    let deadline = try #require(a.deadline)
    #expect(deadline <= seconds(201))
    #expect(a.tick(at: seconds(201)).sends.map(\.address) == [peer])
    let next = try #require(a.deadline)
    #expect(next <= seconds(201.3))
  }

  @Test func aLinkedPeerHearsOfANewChannelQuickly() {
    var a = testDiscovery(1)
    let peer = testAddress(5)
    _ = a.setPeers([Contact(peer)], at: .zero)
    _ = a.open(testKey, at: .zero)
    a.setLinked([(SessionLinkID(key: testKey.keyID, peer: testIdentity(2).id), peer)])
    let opened = a.open(otherKey, at: seconds(2)).sends
    #expect(opened.contains { openedAnnouncement($0.datagram, key: otherKey) != nil })
    var early = 0
    drive(&a, until: seconds(4)) { _, outputs in early += outputs.sends.count }
    #expect(early >= 4)
  }

  @Test func onlyNewPeersAreAnnouncedToAtOnce() {
    var a = testDiscovery(1)
    _ = a.open(testKey, at: .zero)
    let first = a.setPeers([Contact(testAddress(5))], at: .zero)
    #expect(first.sends.map(\.address) == [testAddress(5)])
    #expect(a.setPeers([Contact(testAddress(5))], at: seconds(0.01)).sends.isEmpty)
    let both = a.setPeers([5, 6].map { Contact(testAddress($0)) }, at: seconds(0.1))
    #expect(both.sends.map(\.address) == [testAddress(6)])
    let none = a.setPeers([], at: seconds(0.15))
    #expect(none.sends.isEmpty)
    var sent = 0
    drive(&a, until: seconds(30)) { _, outputs in sent += outputs.sends.count }
    #expect(sent == 0)
  }

  /// The maker of an invite chose its addresses, and must not learn of other channels.
  @Test func aPeerOfOneChannelHearsOfNoOther() {
    var a = testDiscovery(1)
    let (own, other) = (testAddress(5), testAddress(6))
    _ = a.open(testKey, at: .zero)
    let contacts = [Contact(own), Contact(other, for: [testKey.channelID])]
    var heard: [Address: Set<KeyID>] = [:]
    func note(_ outputs: [Discovery.Output]) {
      for sent in outputs.sends {
        for key in [testKey, otherKey] where openedAnnouncement(sent.datagram, key: key) != nil {
          heard[sent.address, default: []].insert(key.keyID)
        }
      }
    }
    note(a.setPeers(contacts, at: .zero))
    note(a.open(otherKey, at: seconds(1)))
    drive(&a, until: seconds(60)) { _, outputs in note(outputs) }
    #expect(heard == [own: [testKey.keyID, otherKey.keyID], other: [testKey.keyID]])
    // Named for the other one, too, it is told at once.
    heard = [:]
    note(a.setPeers(contacts + [Contact(other, for: [otherKey.channelID])], at: seconds(60)))
    #expect(heard == [other: [testKey.keyID, otherKey.keyID]])
  }

  @Test func configuredPeersAreBoundedAndUnicast() throws {
    var a = testDiscovery(1)
    _ = a.open(testKey, at: .zero)
    let multicast = try #require(Address("239.1.2.3:4000"))
    let many = [multicast] + (1...200).map(testAddress) + (1...200).map(testAddress)
    let sends = a.setPeers(many.map { Contact($0) }, at: .zero).sends
    #expect(sends.count == Limits.configuredPeers)
    #expect(sends.allSatisfy { $0.address.isUnicast })
  }

  @Test func aChangeOfAddressIsAnnouncedAtOnceAndStartsOver() throws {
    var a = testDiscovery(1)
    _ = a.open(testKey, at: .zero)
    drive(&a, until: seconds(30)) { _, _ in }
    let addresses = (1...20).map(testAddress)
    let changed = a.setOwnAddresses([testAddress(1)] + addresses, at: seconds(30))
    #expect(changed.broadcasts.count == 1)
    let announcement = try #require(openedAnnouncement(changed.broadcasts.first))
    #expect(announcement.addresses == Array(addresses.prefix(Limits.addresses)))
    let deadline = try #require(a.deadline)
    #expect(deadline <= seconds(30.3))
    let same = a.setOwnAddresses([testAddress(1)] + addresses, at: seconds(31))
    #expect(same.isEmpty)
  }

  @Test func countersGrowWithEveryRound() {
    var a = testDiscovery(1)
    var counters = a.open(testKey, at: .zero).broadcasts.compactMap {
      openedAnnouncement($0)?.counter
    }
    drive(&a, until: seconds(20)) { _, outputs in
      counters += outputs.broadcasts.compactMap { openedAnnouncement($0)?.counter }
    }
    #expect(counters == (1...UInt64(counters.count)).map { $0 })
  }

  @Test func openChannelsAreBounded() {
    var a = testDiscovery(1)
    for number in 0..<Limits.channelKeys {
      #expect(!a.open(ChannelKey.fromName("channel \(number)"), at: .zero).isEmpty)
    }
    #expect(a.open(testKey, at: .zero).isEmpty)
  }

  @Test func theSameSeedGivesTheSameDatagrams() {
    func run() -> [Discovery.Output] {
      var a = testDiscovery(1)
      var all = a.open(testKey, at: .zero)
      drive(&a, until: seconds(30)) { _, outputs in all += outputs }
      return all
    }
    #expect(run() == run())
  }

  /// At 30 % loss one of two nodes soon finds the other, which suffices for a link.
  @Test(arguments: [1, 2, 3, 4, 5, 6, 7, 8, 9, 10] as [UInt64])
  func twoNodesFindEachOtherThroughLoss(seed: UInt64) throws {
    var prng = PRNG(seed: seed)
    var nodes = [testDiscovery(seed &* 2), testDiscovery(seed &* 2 &+ 1)]
    var waiting: [(to: Int, datagram: [UInt8])] = []
    var isFound = false
    func post(_ outputs: [Discovery.Output], from node: Int) {
      for datagram in outputs.broadcasts + outputs.sends.map(\.datagram)
      where !prng.chance(0.3) {
        waiting.append((1 - node, datagram))
      }
      isFound = isFound || outputs.isFound
    }
    for node in 0...1 { post(nodes[node].open(testKey, at: .zero), from: node) }
    var now = Instant.zero
    while !isFound {
      if let next = waiting.popLast() {
        let from = testAddress(1 + (1 - next.to))
        post(nodes[next.to].receive(next.datagram, from: from, at: now), from: next.to)
        continue
      }
      let deadline = try #require(nodes.compactMap(\.deadline).min())
      now = max(now, deadline)
      for node in 0...1 { post(nodes[node].tick(at: now), from: node) }
      guard now < seconds(60) else { break }
    }
    #expect(isFound, "seed \(seed)")
  }
}

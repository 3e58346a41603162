import MusterBase
import MusterCrypto
import MusterDiscovery
import MusterWire
import Testing

private let day: UInt64 = 19_675

/// A node with one channel and one address.
private func poster(_ number: UInt64, bootID: UInt64 = 1, at now: Instant = .zero) -> Discovery {
  var discovery = testDiscovery(number, bootID: bootID)
  _ = discovery.setOwnAddresses([testAddress(Int(number))], at: now)
  _ = discovery.open(testKey, at: now)
  // The first announcements to the LAN are discarded, so that later output concerns other nodes.
  _ = discovery.tick(at: now)
  return discovery
}

/// The unicast datagrams that a node sends because of a record that it found.
private func candidateProbes(_ outputs: [Discovery.Output]) -> [Address] {
  outputs.sends.map(\.address)
}

/// The schedule and the keys of the records that a node stores in a DHT.
struct DHTScheduleTests {
  @Test func tagsChangeDailyAndWithTheKey() {
    let tags = (day...day + 2).map { testKey.dhtTag(day: $0) }
    #expect(tags.allSatisfy { $0.count == ChannelKey.dhtTagBytes })
    #expect(Set(tags).count == 3)
    #expect(testKey.dhtTag(day: day) == tags[0])
    #expect(otherKey.dhtTag(day: day) != tags[0])
  }

  @Test func othersAreLookedForADayEitherSide() {
    var discovery = poster(1)
    let tags = discovery.dhtKeys(day: day).map(\.tag)
    #expect(tags == [day - 1, day, day + 1].map { testKey.dhtTag(day: $0) })
    // A node whose clock is a day ahead or behind stores its records under one of these keys.
    for other in [day - 1, day, day + 1] {
      var peer = poster(2)
      let left = peer.takeDHTRecords(day: other, at: .zero)
      #expect(left.count == 1)
      #expect(left.allSatisfy { tags.contains($0.tag) })
    }
    for other in [day - 2, day + 2] { #expect(!tags.contains(testKey.dhtTag(day: other))) }
    _ = discovery.open(otherKey, isPassive: true, at: .zero)
    #expect(discovery.dhtKeys(day: day).count == 3)
  }

  @Test func aClockAtItsEndsTrapsNowhere() {
    var discovery = poster(1)
    for edge in [0, UInt64.max] {
      #expect(discovery.dhtKeys(day: edge).count == 3)
      _ = discovery.takeDHTRecords(day: edge, at: .zero)
    }
  }

  @Test func theAnnounceIsTheOneThatRendezvousGet() throws {
    var discovery = poster(1)
    let record = try #require(discovery.takeDHTRecords(day: day, at: .zero).first)
    #expect(record.tag == testKey.dhtTag(day: day))
    #expect(record.announcement.count <= RendezvousRegistration.announcementLimit)
    let announcement = try #require(openedAnnouncement(record.announcement))
    #expect(announcement.author == testIdentity(1).id)
    #expect(announcement.addresses == [testAddress(1)])
    #expect(announcement.echo == nil)
  }

  @Test func announcesAreLeftAgainBeforeTheyAreForgotten() {
    var discovery = poster(1)
    var times: [Instant] = []
    var counters: [UInt64] = []
    for second in 0..<3600 {
      let now = seconds(Double(second))
      for record in discovery.takeDHTRecords(day: day, at: now) {
        times.append(now)
        counters.append(openedAnnouncement(record.announcement)?.counter ?? 0)
      }
    }
    // Records are due at 0, 20 and 60 s and then every five minutes, ±20 %.
    #expect((12...18).contains(times.count))
    #expect(zip(times, times.dropFirst()).allSatisfy { $1 - $0 <= .seconds(361) })
    #expect(times.dropFirst(3).allSatisfy { $0 >= seconds(240) })
    #expect(zip(counters, counters.dropFirst()).allSatisfy { $0 < $1 })
  }

  @Test func aNewDayHasANewKeyAtOnce() {
    var discovery = poster(1)
    _ = discovery.takeDHTRecords(day: day, at: .zero)
    #expect(discovery.takeDHTRecords(day: day, at: seconds(10)).isEmpty)
    let next = discovery.takeDHTRecords(day: day + 1, at: seconds(11))
    #expect(next.map(\.tag) == [testKey.dhtTag(day: day + 1)])
  }

  @Test func newAddressesAreLeftAtOnceButNotInAFlood() {
    var discovery = poster(1)
    var count = 0
    for second in 0..<60 {
      let now = seconds(Double(second))
      _ = discovery.setOwnAddresses([testAddress(100 + second)], at: now)
      count += discovery.takeDHTRecords(day: day, at: now).count
    }
    #expect((10...13).contains(count))
  }

  @Test func aRejectedRecordIsStoredAgainSoon() {
    var discovery = poster(1)
    _ = discovery.takeDHTRecords(day: day, at: .zero)
    discovery.dhtRecordFailed(testKey.keyID, at: seconds(1))
    #expect(discovery.takeDHTRecords(day: day, at: seconds(5)).isEmpty)
    #expect(discovery.takeDHTRecords(day: day, at: seconds(6)).count == 1)
  }

  @Test func anAddressSeenByTheDHTIsReportedOnce() throws {
    var discovery = poster(1)
    _ = discovery.takeDHTRecords(day: day, at: .zero)
    let nowhere = Address(host: .v4(0), port: 1)
    let seen = [nowhere, testAddress(1), testAddress(50)]
    discovery.setSeenAddresses(seen)
    #expect(discovery.takeDHTRecords(day: day, at: seconds(6)).isEmpty)
    discovery.setSeenAddresses([testAddress(50)] + seen)
    let record = try #require(discovery.takeDHTRecords(day: day, at: seconds(6)).first)
    #expect(
      openedAnnouncement(record.announcement)?.addresses == [testAddress(1), testAddress(50)])
    discovery.setSeenAddresses([testAddress(50)])
    #expect(discovery.takeDHTRecords(day: day, at: seconds(12)).isEmpty)
  }

  @Test func channelsThatAreOnlyHeardAreNotPosted() {
    var discovery = poster(1)
    discovery.setPassive(testKey.keyID)
    #expect(discovery.takeDHTRecords(day: day, at: .zero).isEmpty)
    #expect(discovery.dhtKeys(day: day).isEmpty)
  }
}

/// Announcements found in a DHT.
struct DHTRecordFoundTests {
  private let channel = testKey.keyID

  @Test func aPeerThatIsFoundIsProbedAndThenProvesItself() throws {
    var (a, b) = (poster(1), poster(2))
    let left = try #require(a.takeDHTRecords(day: day, at: .zero).first)
    let outputs = b.found(left.announcement, in: channel, at: seconds(0.1))
    #expect(!outputs.isFound)
    #expect(candidateProbes(outputs) == [testAddress(1)])
    #expect(b.counters.learned == 1)
    let probe = try #require(outputs.sends.first)
    let asked = a.receive(probe.datagram, from: testAddress(2), at: seconds(0.2))
    let challenge = try #require(asked.sends.first { $0.kind == .challenge })
    let answer = b.receive(challenge.datagram, from: testAddress(1), at: seconds(0.3))
    let echo = try #require(answer.sends.first)
    #expect(a.receive(echo.datagram, from: testAddress(2), at: seconds(0.4)).isFound)
  }

  @Test func aClockThatIsADayOffFindsAndIsFound() throws {
    for (one, other) in [(day, day + 1), (day + 1, day)] {
      var (a, b) = (poster(1), poster(2))
      let left = try #require(a.takeDHTRecords(day: one, at: .zero).first)
      let index = b.dhtKeys(day: other).first { $0.tag == left.tag }
      let found = try #require(index)
      #expect(
        candidateProbes(b.found(left.announcement, in: found.key, at: .zero)) == [
          testAddress(1)
        ])
    }
  }

  @Test func itsOwnIsIgnored() throws {
    var a = poster(1)
    let left = try #require(a.takeDHTRecords(day: day, at: .zero).first)
    #expect(candidateProbes(a.found(left.announcement, in: channel, at: .zero)).isEmpty)
    #expect(a.counters.ownAnnouncement == 1)
  }

  @Test func aLinkedPeerIsNotProbed() throws {
    var (a, b) = (poster(1), poster(2))
    let left = try #require(a.takeDHTRecords(day: day, at: .zero).first)
    let link = SessionLinkID(key: channel, peer: testIdentity(1).id)
    b.setLinked([(link, testAddress(1))])
    #expect(candidateProbes(b.found(left.announcement, in: channel, at: .zero)).isEmpty)
    // After the link has gone, the same announcement counts again.
    b.setLinked([])
    #expect(
      candidateProbes(b.found(left.announcement, in: channel, at: seconds(1))) == [testAddress(1)])
  }

  @Test func oldAnnouncesAreIgnored() {
    var b = poster(2)
    var author = Author(1)
    let first = author.announcement(addresses: [testAddress(1)])
    let second = author.announcement(addresses: [testAddress(7)])
    #expect(candidateProbes(b.found(second, in: channel, at: .zero)) == [testAddress(7)])
    // Neither an older announcement nor the same one counts, even when the member is probed again.
    for old in [first, second] {
      drive(&b, until: seconds(60)) { _, _ in }
      #expect(candidateProbes(b.found(old, in: channel, at: seconds(60))).isEmpty)
    }
    #expect(b.counters.replayed == 2)
    // Another boot has counters of its own.
    var later = Author(1, bootID: 2)
    let moved = later.announcement(addresses: [testAddress(8)])
    #expect(candidateProbes(b.found(moved, in: channel, at: seconds(60))).contains(testAddress(8)))
  }

  @Test func forgedAndForeignOnesAreIgnored() {
    var b = poster(2)
    var entropy = Entropy.seeded(5)
    let announcement = Announcement(
      author: testIdentity(1).id, bootID: 1, counter: 1, echo: nil, addresses: [testAddress(1)])
    let forged = SignedAnnouncement(announcement, by: testIdentity(3), in: channel)
      .datagram(sealedBy: testKey, entropy: &entropy)
    #expect(candidateProbes(b.found(forged, in: channel, at: .zero)).isEmpty)
    #expect(b.counters.forged == 1)
    let foreign = SignedAnnouncement(announcement, by: testIdentity(1), in: otherKey.keyID)
      .datagram(sealedBy: otherKey, entropy: &entropy)
    #expect(candidateProbes(b.found(foreign, in: channel, at: .zero)).isEmpty)
    #expect(b.counters.unreadable == 1)
    #expect(candidateProbes(b.found(foreign, in: otherKey.keyID, at: .zero)).isEmpty)
    #expect(b.counters.learned == 0)
  }

  @Test func otherBytesAreIgnored() {
    var b = poster(2)
    var author = Author(1)
    let good = author.announcement(addresses: [testAddress(1)])
    let oversized = good + [UInt8](repeating: 0, count: RendezvousRegistration.announcementLimit)
    var otherKind = good
    otherKind[0] = DatagramKind.challenge.rawValue
    for bad in [[], [0xFF], oversized, otherKind, Array(good.prefix(1)), Array(good.dropLast())] {
      #expect(candidateProbes(b.found(bad, in: channel, at: .zero)).isEmpty)
    }
    #expect(b.counters.malformed + b.counters.unreadable == 6)
    var chance = PRNG(seed: 3)
    for _ in 0..<1000 {
      var junk = good
      let index = Int(chance.next() % UInt64(junk.count))
      junk[index] ^= UInt8(1 + chance.next() % 255)
      #expect(candidateProbes(b.found(junk, in: channel, at: seconds(100))).isEmpty)
    }
  }

  @Test func aFloodOfJunkIsNotRead() throws {
    var (a, b) = (poster(1), poster(2))
    let left = try #require(a.takeDHTRecords(day: day, at: .zero).first)
    for _ in 0..<10_000 { _ = b.found([0xFF], in: channel, at: .zero) }
    #expect(b.counters.malformed == 640)
    #expect(b.counters.unread == 9_360)
    #expect(candidateProbes(b.found(left.announcement, in: channel, at: .zero)).isEmpty)
    // After a second the budget admits some again.
    #expect(
      candidateProbes(b.found(left.announcement, in: channel, at: seconds(1))) == [testAddress(1)])
  }

  @Test func theTableOfAuthorsIsBounded() {
    var b = poster(2)
    var now = Instant.zero
    for number in 10..<400 {
      var author = Author(UInt64(number))
      now = now + .seconds(1)
      _ = b.found(author.announcement(addresses: [testAddress(number)]), in: channel, at: now)
    }
    #expect(b.counters.learned == 390)
    // The first authors have been evicted and count as news again; the last ones do not.
    var (first, last) = (Author(10), Author(399))
    _ = b.found(first.announcement(addresses: [testAddress(10)]), in: channel, at: now)
    _ = b.found(last.announcement(addresses: [testAddress(399)]), in: channel, at: now)
    #expect(b.counters.learned == 391)
    #expect(b.counters.replayed == 1)
  }
}

import MusterBase
import MusterCrypto
import MusterDiscovery
import MusterWire
import Testing

/// Replays, floods, forgeries and noise: they get no answer, or at most a bounded one.
struct DiscoverySilenceTests {
  @Test func aReplayGetsNoAnswerWhereverItComesFrom() throws {
    var (a, b) = (testDiscovery(1), testDiscovery(2))
    let announcement = try #require(a.open(testKey, at: .zero).broadcasts.first)
    _ = b.open(testKey, at: .zero)
    let challenge = try #require(
      b.receive(announcement, from: testAddress(1), at: .zero).sends.first)
    let answer = try #require(
      a.receive(challenge.datagram, from: testAddress(2), at: .zero).sends.first)
    #expect(b.receive(answer.datagram, from: testAddress(1), at: .zero).isFound)

    for datagram in [announcement, answer.datagram] {
      for host in [1, 3, 4] {
        #expect(b.receive(datagram, from: testAddress(host), at: seconds(1)).isEmpty)
      }
    }
    #expect(b.counters.replayed == 6)
    #expect(a.receive(challenge.datagram, from: testAddress(3), at: seconds(1)).isEmpty)
    #expect(a.counters.repeatedChallenge == 1)
  }

  @Test func anAnswerThatIsLostIsGivenAgainForTheNextAnnounce() throws {
    var (a, b) = (testDiscovery(1), testDiscovery(2))
    _ = b.open(testKey, at: .zero)
    var echoes: [[UInt8]] = []
    for now in [Instant.zero, seconds(1)] {
      let announcements = now == .zero ? a.open(testKey, at: now) : a.restart(at: now)
      let announcement = try #require(announcements.broadcasts.first)
      let challenge = try #require(
        b.receive(announcement, from: testAddress(1), at: now).sends.first)
      echoes.append(try #require(challenge.challenge).echo)
      let answers = a.receive(challenge.datagram, from: testAddress(2), at: now)
      #expect(answers.sends.count == 1)
    }
    // Both within one time slot of the challenger.
    #expect(echoes[0] == echoes[1])
  }

  /// Closing a channel discards what is known of its authors, so that an answer from before then
  /// does not prove a later run.
  @Test func anAnswerFromBeforeAChannelWasLeftProvesNothing() throws {
    var (a, b) = (testDiscovery(1), testDiscovery(2))
    let announcement = try #require(a.open(testKey, at: .zero).broadcasts.first)
    _ = b.open(testKey, at: .zero)
    let challenge = try #require(
      b.receive(announcement, from: testAddress(1), at: .zero).sends.first)
    let answer = try #require(
      a.receive(challenge.datagram, from: testAddress(2), at: .zero).sends.first)
    _ = b.close(key: testKey.keyID, at: seconds(1))
    _ = b.open(testKey, at: seconds(1))
    #expect(!b.receive(answer.datagram, from: testAddress(1), at: seconds(1)).isFound)
    #expect(b.counters.found == 0)
  }

  @Test func afterARestartAReplayGetsAtMostOneChallengeSmallerThanItself() throws {
    var a = testDiscovery(1)
    let announcement = try #require(a.open(testKey, at: .zero).broadcasts.first)
    var restarted = testDiscovery(2, bootID: 2)
    _ = restarted.open(testKey, at: .zero)
    var sent: [Sent] = []
    for second in 0..<100 {
      let now = seconds(Double(second))
      sent += restarted.receive(announcement, from: testAddress(66), at: now).sends
    }
    #expect(sent.count == 1)
    #expect(sent.allSatisfy { $0.datagram.count < announcement.count })
    #expect(restarted.counters.found == 0)
  }

  @Test func oneAnnounceIsAskedAboutAtFewAddresses() {
    var b = testDiscovery(2)
    _ = b.open(testKey, at: .zero)
    var author = Author(1)
    let announcement = author.announcement()
    var sent = 0
    for host in 1...200 {
      let now = seconds(Double(host))
      sent += b.receive(announcement, from: testAddress(host), at: now).sends.count
    }
    #expect(sent <= 4)
  }

  @Test func oneAuthorCannotUseUpTheBudget() {
    var b = testDiscovery(2)
    _ = b.open(testKey, at: .zero)
    var author = Author(1)
    var sent = 0
    for _ in 0..<100 {
      sent += b.receive(author.announcement(), from: testAddress(1), at: .zero).sends.count
    }
    #expect(sent == 6)
    var other = Author(3)
    #expect(b.receive(other.announcement(), from: testAddress(3), at: .zero).sends.count == 1)
  }

  /// A recorded announcement can be sent from any address; 100 us for each would take a call's
  /// picture.
  @Test func aFloodOfReplaysIsNotVerified() {
    var b = testDiscovery(2)
    _ = b.open(testKey, at: .zero)
    var author = Author(1)
    let announcement = author.announcement()
    for number in 0..<20 { _ = b.receive(announcement, from: testAddress(number), at: .zero) }
    #expect(b.counters.challenged == 4)
    // A wrong signature shows whether it is verified.
    let replay = forged(by: Author(2), inTheNameOf: author.identity.id)
    for number in 0..<20_000 { _ = b.receive(replay, from: testAddress(number), at: .zero) }
    #expect(b.counters.alreadyChallenged == 20_016)
    #expect(b.counters.forged == 0)
  }

  /// Those who know the channel's key can sign in any name; it costs this node a bounded time, and
  /// members that are known the least.
  @Test func aFloodOfForgeriesIsHardlyVerified() throws {
    var b = testDiscovery(2)
    _ = b.open(testKey, at: .zero)
    var member = Author(5)
    #expect(try member.prove(to: &b, from: testAddress(5), at: .zero).isFound)
    for number in 0..<10_000 {
      let forger = Author(1000 + UInt64(number % 300), bootID: UInt64(number))
      let datagram = forged(by: forger, inTheNameOf: testIdentity(900 + UInt64(number)).id)
      _ = b.receive(datagram, from: testAddress(number % 200), at: seconds(1))
    }
    #expect(b.counters.forged <= 128)
    #expect(b.counters.unverified >= 9_800)
    #expect(b.receive(member.announcement(), from: testAddress(5), at: seconds(1)).isFound)
  }

  private func forged(by author: Author, inTheNameOf victim: NodeID) -> [UInt8] {
    let announcement = Announcement(
      author: victim, bootID: author.bootID, counter: 1, echo: nil, addresses: [])
    var entropy = author.entropy
    return SignedAnnouncement(announcement, by: author.identity, in: testKey.keyID)
      .datagram(sealedBy: testKey, entropy: &entropy)
  }

  @Test func aFloodOfUnknownAuthorsExhaustsTheBudgetOnly() {
    var b = testDiscovery(2)
    _ = b.open(testKey, at: .zero)
    var sent = 0
    for number in 0..<150 {
      var author = Author(1000 + UInt64(number))
      sent += b.receive(author.announcement(), from: testAddress(number), at: .zero).sends.count
    }
    #expect(sent == 64)
    #expect(b.counters.overBudget == 86)
    for number in 0..<150 {
      var author = Author(2000 + UInt64(number))
      sent +=
        b.receive(author.announcement(), from: testAddress(number), at: seconds(1)).sends.count
    }
    #expect(sent == 64 + 32)
  }

  @Test func aFloodDoesNotTouchThoseAlreadyProven() throws {
    var b = testDiscovery(2)
    _ = b.open(testKey, at: .zero)
    var known = Author(1)
    _ = try known.prove(to: &b, from: testAddress(1), at: .zero)
    for number in 0..<100 {
      var author = Author(1000 + UInt64(number))
      _ = b.receive(author.announcement(), from: testAddress(number), at: .zero)
    }
    #expect(b.receive(known.announcement(), from: testAddress(1), at: .zero).isFound)
  }

  @Test func anotherKeyGetsSilence() throws {
    var (a, b) = (testDiscovery(1), testDiscovery(2))
    let announcement = try #require(a.open(otherKey, at: .zero).broadcasts.first)
    _ = b.open(testKey, at: .zero)
    #expect(b.receive(announcement, from: testAddress(1), at: .zero).isEmpty)
    #expect(b.counters.unreadable == 1)
  }

  @Test func theKindOfADatagramIsSealed() {
    var b = testDiscovery(2)
    _ = b.open(testKey, at: .zero)
    var author = Author(1)
    var datagram = author.announcement()
    datagram[0] = DatagramKind.challenge.rawValue
    #expect(b.receive(datagram, from: testAddress(1), at: .zero).isEmpty)
    #expect(b.counters.unreadable == 1)
  }

  @Test func aMemberCannotAnnounceAnother() {
    var b = testDiscovery(2)
    _ = b.open(testKey, at: .zero)
    var entropy = Entropy.seeded(5)
    let forged = Announcement(
      author: testIdentity(1).id, bootID: 1, counter: 1, echo: nil, addresses: [])
    let datagram = SignedAnnouncement(forged, by: testIdentity(3), in: testKey.keyID)
      .datagram(sealedBy: testKey, entropy: &entropy)
    #expect(b.receive(datagram, from: testAddress(3), at: .zero).isEmpty)
    #expect(b.counters.forged == 1)
  }

  @Test func aSignatureCountsInItsOwnChannelOnly() {
    var b = testDiscovery(2)
    _ = b.open(testKey, at: .zero)
    var entropy = Entropy.seeded(5)
    let announcement = Announcement(
      author: testIdentity(1).id, bootID: 1, counter: 1, echo: nil, addresses: [])
    let datagram = SignedAnnouncement(announcement, by: testIdentity(1), in: otherKey.keyID)
      .datagram(sealedBy: testKey, entropy: &entropy)
    #expect(b.receive(datagram, from: testAddress(1), at: .zero).isEmpty)
    #expect(b.counters.forged == 1)
  }

  @Test func aForgedCounterRaisesNoMark() throws {
    var b = testDiscovery(2)
    _ = b.open(testKey, at: .zero)
    var author = Author(1)
    _ = try author.prove(to: &b, from: testAddress(1), at: .zero)
    var entropy = Entropy.seeded(5)
    let forged = Announcement(
      author: author.identity.id, bootID: 1, counter: .max, echo: nil, addresses: [])
    let datagram = SignedAnnouncement(forged, by: testIdentity(3), in: testKey.keyID)
      .datagram(sealedBy: testKey, entropy: &entropy)
    #expect(b.receive(datagram, from: testAddress(1), at: .zero).isEmpty)
    #expect(b.receive(author.announcement(), from: testAddress(1), at: .zero).isFound)
  }

  @Test(arguments: ["224.0.0.1:4000", "255.255.255.255:4000", "[ff02::1]:4000", "10.0.0.1:0"])
  func nothingIsSentWhereMoreThanOneWouldHear(text: String) throws {
    var b = testDiscovery(2)
    _ = b.open(testKey, at: .zero)
    var author = Author(1)
    let source = try #require(Address(text))
    #expect(b.receive(author.announcement(), from: source, at: .zero).isEmpty)
    #expect(b.counters.badSource == 1)
  }

  @Test func ownAnnouncesAreIgnored() throws {
    var a = testDiscovery(1)
    let announcement = try #require(a.open(testKey, at: .zero).broadcasts.first)
    #expect(a.receive(announcement, from: testAddress(1), at: .zero).isEmpty)
    #expect(a.counters.ownAnnouncement == 1)
  }

  @Test func malformedSealedRecordsAreCounted() {
    var b = testDiscovery(2)
    _ = b.open(testKey, at: .zero)
    var (entropy, prng) = (Entropy.seeded(5), PRNG(seed: 5))
    for kind in [DatagramKind.announcement, .challenge] {
      for count in 0..<130 where !(kind == .challenge && count == 64) {
        let datagram = DiscoveryDatagram.seal(
          prng.bytes(count), as: kind, with: testKey, entropy: &entropy)
        #expect(b.receive(datagram, from: testAddress(1), at: .zero).isEmpty)
      }
    }
    #expect(b.counters.found == 0 && b.counters.challenged == 0 && b.counters.answered == 0)
  }

  @Test(arguments: [1, 2, 3] as [UInt64])
  func alteredTruncatedAndRandomDatagramsGetNoAnswer(seed: UInt64) {
    var prng = PRNG(seed: seed)
    var b = testDiscovery(2)
    _ = b.open(testKey, at: .zero)
    var author = Author(1)
    for _ in 0..<1000 {
      var datagram = author.announcement(addresses: [testAddress(1)])
      switch prng.below(3) {
      case 0: datagram[prng.below(datagram.count)] ^= UInt8(1 << prng.below(8))
      case 1: datagram.removeLast(1 + prng.below(datagram.count))
      default: datagram = [UInt8(1 + prng.below(2))] + prng.bytes(prng.below(1500))
      }
      let outputs = b.receive(datagram, from: testAddress(1), at: .zero)
      #expect(outputs.isEmpty, "seed \(seed)")
    }
  }
}

/// The answers to challenges.
struct ChallengeAnswerTests {
  private func challenge(
    _ target: UInt64, bootID: UInt64 = 1, counter: UInt64 = 1, echo: UInt8 = 7
  ) -> [UInt8] {
    var entropy = Entropy.seeded(UInt64(echo))
    let challenge = Challenge(
      target: testIdentity(target).id, bootID: bootID, counter: counter,
      echo: [UInt8](repeating: echo, count: Announcement.echoBytes))
    return DiscoveryDatagram.seal(
      challenge.encoded(), as: .challenge, with: testKey, entropy: &entropy)
  }

  @Test func aChallengeIsAnsweredOnce() throws {
    var a = testDiscovery(1)
    _ = a.open(testKey, at: .zero)
    let asked = challenge(1)
    let answer = try #require(a.receive(asked, from: testAddress(2), at: .zero).sends.first)
    let announcement = try #require(openedAnnouncement(answer.datagram))
    #expect(announcement.echo == [UInt8](repeating: 7, count: Announcement.echoBytes))
    #expect(announcement.counter == 2)
    #expect(a.receive(asked, from: testAddress(2), at: .zero).isEmpty)
    #expect(a.receive(asked, from: testAddress(3), at: seconds(10)).isEmpty)
    #expect(a.receive(asked, from: testAddress(3), at: seconds(100)).isEmpty)
  }

  @Test func challengesToOthersAreNotAnswered() {
    var a = testDiscovery(1)
    _ = a.open(testKey, at: .zero)
    let wrong = [
      challenge(2), challenge(1, bootID: 9), challenge(1, counter: 0), challenge(1, counter: 2),
    ]
    for datagram in wrong {
      #expect(a.receive(datagram, from: testAddress(2), at: .zero).isEmpty)
    }
    #expect(a.counters.foreignChallenge == 4)
  }

  @Test func anOldAnnounceIsNoLongerAnsweredFor() {
    var a = testDiscovery(1)
    _ = a.open(testKey, at: .zero)
    #expect(a.receive(challenge(1), from: testAddress(2), at: seconds(21)).isEmpty)
  }

  @Test func answersAreBounded() {
    var a = testDiscovery(1)
    _ = a.open(testKey, at: .zero)
    var sent = 0
    for echo in UInt8(0)...UInt8(200) {
      sent += a.receive(challenge(1, echo: echo), from: testAddress(2), at: .zero).sends.count
    }
    #expect(sent == 64)
  }

  @Test func answersCarryNoAddresses() throws {
    var a = testDiscovery(1)
    _ = a.setOwnAddresses([testAddress(1)], at: .zero)
    let announcement = try #require(a.open(testKey, at: .zero).broadcasts.first)
    #expect(openedAnnouncement(announcement)?.addresses == [testAddress(1)])
    let answer = try #require(
      a.receive(challenge(1), from: testAddress(2), at: .zero).sends.first)
    #expect(openedAnnouncement(answer.datagram)?.addresses == [])
  }
}

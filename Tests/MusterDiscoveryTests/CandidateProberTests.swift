import MusterBase
import MusterCrypto
import MusterDiscovery
import MusterWire
import Testing

/// How two nodes find each other, and what counts as proof.
struct CandidateProberTests {
  @Test func firstContactTakesAChallengeAndItsEcho() throws {
    var (a, b) = (testDiscovery(1), testDiscovery(2))
    let (atA, atB) = (testAddress(1), testAddress(2))
    let announcement = try #require(a.open(testKey, at: .zero).broadcasts.first)
    _ = b.open(testKey, at: .zero)

    let asked = b.receive(announcement, from: atA, at: .zero)
    #expect(asked.count == 1)
    let challenge = try #require(asked.sends.first)
    #expect(challenge.kind == .challenge)
    #expect(challenge.address == atA)

    let answered = a.receive(challenge.datagram, from: atB, at: .zero)
    #expect(answered.count == 1)
    let answer = try #require(answered.sends.first)
    #expect(answer.kind == .announcement)
    #expect(answer.address == atB)

    let found = b.receive(answer.datagram, from: atA, at: .zero)
    let expected = Discovery.Output.found(
      testIdentity(1).id, bootID: 1, key: testKey.keyID, at: atA)
    #expect(found == [expected])
  }

  @Test func aKnownPeerAtAKnownAddressNeedsNoChallenge() throws {
    var b = testDiscovery(2)
    _ = b.open(testKey, at: .zero)
    var author = Author(1)
    let proof = try author.prove(to: &b, from: testAddress(1), at: .zero)
    #expect(proof.isFound)

    let later = b.receive(author.announcement(), from: testAddress(1), at: seconds(5))
    let expected = Discovery.Output.found(
      author.identity.id, bootID: 1, key: testKey.keyID, at: testAddress(1))
    #expect(later == [expected])
    #expect(b.counters.challenged == 1)
  }

  @Test func aKnownPeerAtANewAddressIsAskedAgain() throws {
    var b = testDiscovery(2)
    _ = b.open(testKey, at: .zero)
    var author = Author(1)
    _ = try author.prove(to: &b, from: testAddress(1), at: .zero)

    let moved = try author.prove(to: &b, from: testAddress(9), at: seconds(1))
    #expect(moved.isFound)
    let old = b.receive(author.announcement(), from: testAddress(1), at: seconds(2))
    #expect(old.isFound)
  }

  @Test func anEchoCountsOnlyAtTheAddressItWasGivenTo() throws {
    var b = testDiscovery(2)
    _ = b.open(testKey, at: .zero)
    var author = Author(1)
    let asked = b.receive(author.announcement(), from: testAddress(1), at: .zero)
    let challenge = try #require(asked.sends.first?.challenge)

    let elsewhere = author.announcement(echo: challenge.echo)
    #expect(!b.receive(elsewhere, from: testAddress(3), at: .zero).isFound)
    #expect(b.counters.badEcho == 1)
    let here = author.announcement(echo: challenge.echo)
    #expect(b.receive(here, from: testAddress(1), at: .zero).isFound)
  }

  @Test(arguments: [(0.0, true), (9.0, true), (19.5, true), (20.5, false), (60.0, false)])
  func anEchoIsGoodForThisSlotAndTheNext(after: Double, isGood: Bool) throws {
    var b = testDiscovery(2)
    _ = b.open(testKey, at: .zero)
    var author = Author(1)
    let asked = b.receive(author.announcement(), from: testAddress(1), at: .zero)
    let challenge = try #require(asked.sends.first?.challenge)
    let answer = author.announcement(echo: challenge.echo)
    #expect(b.receive(answer, from: testAddress(1), at: seconds(after)).isFound == isGood)
  }

  @Test func anEchoOfAnotherBootIsNoProof() throws {
    var b = testDiscovery(2)
    _ = b.open(testKey, at: .zero)
    var before = Author(1, bootID: 1)
    let asked = b.receive(before.announcement(), from: testAddress(1), at: .zero)
    let challenge = try #require(asked.sends.first?.challenge)
    var after = Author(1, bootID: 2)
    let answer = after.announcement(echo: challenge.echo)
    #expect(!b.receive(answer, from: testAddress(1), at: .zero).isFound)
  }

  @Test func aRestartedPeerProvesItselfAndItsFormerBootFallsSilent() throws {
    var b = testDiscovery(2)
    _ = b.open(testKey, at: .zero)
    var before = Author(1, bootID: 1)
    _ = try before.prove(to: &b, from: testAddress(1), at: .zero)
    var after = Author(1, bootID: 2)
    let proof = try after.prove(to: &b, from: testAddress(1), at: seconds(1))
    #expect(
      proof == [
        .found(after.identity.id, bootID: 2, key: testKey.keyID, at: testAddress(1))
      ])

    #expect(b.receive(before.announcement(), from: testAddress(1), at: seconds(2)).isEmpty)
    #expect(b.receive(before.announcement(), from: testAddress(7), at: seconds(2)).isEmpty)
    #expect(b.counters.replayed == 2)
  }

  @Test func addressesRememberedForOnePeerAreBounded() throws {
    var b = testDiscovery(2)
    _ = b.open(testKey, at: .zero)
    var author = Author(1)
    for host in 1...12 {
      let proof = try author.prove(
        to: &b, from: testAddress(host), at: seconds(Double(host)))
      #expect(proof.isFound)
    }
    // 5 to 12 are the latest `Limits.addresses`.
    let forgotten = b.receive(author.announcement(), from: testAddress(1), at: seconds(20))
    #expect(forgotten.sends.first?.kind == .challenge)
    #expect(b.receive(author.announcement(), from: testAddress(5), at: seconds(20)).isFound)
    #expect(b.receive(author.announcement(), from: testAddress(12), at: seconds(20)).isFound)
  }

  @Test func twoChannelsAreProvenApart() throws {
    var (a, b) = (testDiscovery(1), testDiscovery(2))
    var announcements: [[UInt8]] = []
    for key in [testKey, otherKey] {
      announcements += a.open(key, at: .zero).broadcasts
      _ = b.open(key, at: .zero)
    }
    #expect(announcements.count == 2)
    for (announcement, key) in zip(announcements, [testKey, otherKey]) {
      let challenge = try #require(
        b.receive(announcement, from: testAddress(1), at: .zero).sends.first)
      let answer = try #require(
        a.receive(challenge.datagram, from: testAddress(2), at: .zero).sends.first)
      let found = b.receive(answer.datagram, from: testAddress(1), at: .zero)
      #expect(
        found == [
          .found(testIdentity(1).id, bootID: 1, key: key.keyID, at: testAddress(1))
        ])
    }
  }

  @Test func aClosedChannelIsForgotten() throws {
    var b = testDiscovery(2)
    _ = b.open(testKey, at: .zero)
    var author = Author(1)
    _ = try author.prove(to: &b, from: testAddress(1), at: .zero)
    #expect(b.close(key: testKey.keyID, at: .zero).isEmpty)
    #expect(b.receive(author.announcement(), from: testAddress(1), at: .zero).isEmpty)
    #expect(b.deadline == nil)
    _ = b.open(testKey, at: .zero)
    let again = b.receive(author.announcement(), from: testAddress(1), at: seconds(1))
    #expect(again.sends.first?.kind == .challenge)
  }

  /// Copies of one announcement to several addresses carry one counter, and arrive in any order.
  @Test func copiesOfOneAnnouncementFindEveryProvenAddress() throws {
    var b = testDiscovery(2)
    _ = b.open(testKey, at: .zero)
    var author = Author(1)
    for address in [testAddress(1), testAddress(2)] {
      #expect(try author.prove(to: &b, from: address, at: .zero).isFound)
    }
    let copies = author.announcement()
    #expect(b.receive(copies, from: testAddress(2), at: seconds(1)).isFound)
    #expect(b.receive(copies, from: testAddress(1), at: seconds(1)).isFound)
    #expect(b.receive(copies, from: testAddress(1), at: seconds(1)).isEmpty)
    #expect(b.receive(copies, from: testAddress(3), at: seconds(1)).isEmpty)
    #expect(b.counters.replayed == 2)
  }
}

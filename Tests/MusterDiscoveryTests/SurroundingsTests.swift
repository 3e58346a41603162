import MusterBase
import MusterCrypto
import MusterDiscovery
import MusterWire
import Testing

/// What a node hears without finding anybody: other channels, members that do not answer, itself.
struct SurroundingsTests {
  /// Hands each announcement of `speaker` within 12 s to `listener`.
  private func announce(
    _ speaker: inout Discovery, to listener: inout Discovery
  ) -> [Discovery.Output] {
    var outputs: [Discovery.Output] = []
    drive(&speaker, until: seconds(12)) { now, out in
      for datagram in out.broadcasts {
        outputs += listener.receive(datagram, from: testAddress(1), at: now)
      }
    }
    return outputs
  }

  @Test func anotherChannelIsHeard() {
    var (a, b) = (testDiscovery(1), testDiscovery(2))
    _ = a.open(otherKey, at: .zero)
    _ = b.open(testKey, at: .zero)
    #expect(b.surroundings.isNothing && b.surroundings.otherChannel == nil)
    #expect(announce(&a, to: &b).isEmpty)
    #expect(b.surroundings.otherChannel == testAddress(1))
    #expect(b.surroundings.unanswered == nil && !b.surroundings.isNothing)
  }

  @Test func aMemberThatDoesNotAnswerIsHeard() throws {
    var (a, b) = (testDiscovery(1), testDiscovery(2))
    _ = a.open(testKey, at: .zero)
    _ = b.open(testKey, at: .zero)
    let challenges = announce(&a, to: &b).sends
    #expect(b.surroundings.unanswered == testAddress(1) && b.surroundings.otherChannel == nil)
    let last = try #require(challenges.last)
    let answer = try #require(
      a.receive(last.datagram, from: testAddress(2), at: seconds(12)).sends.first)
    #expect(b.receive(answer.datagram, from: testAddress(1), at: seconds(12)).isFound)
    #expect(b.surroundings.unanswered == nil)
  }

  /// Two machines with one identity notice each other, and are no peers.
  @Test func aTwinIsFound() throws {
    var (a, b) = (testDiscovery(1, bootID: 1), testDiscovery(1, bootID: 2))
    _ = b.open(testKey, at: .zero)
    let announcement = try #require(a.open(testKey, at: .zero).broadcasts.first)
    let challenge = try #require(
      b.receive(announcement, from: testAddress(1), at: .zero).sends.first)
    let answer = try #require(
      a.receive(challenge.datagram, from: testAddress(2), at: .zero).sends.first)
    let found = b.receive(answer.datagram, from: testAddress(1), at: .zero)
    #expect(found == [.twin(key: testKey.keyID, at: testAddress(1))])
    #expect(b.surroundings.isNothing)
  }

  /// An announcement of an earlier run, recorded by somebody, is answered by nobody.
  @Test func anEarlierRunIsNoTwin() {
    var (earlier, now) = (testDiscovery(1, bootID: 1), testDiscovery(1, bootID: 2))
    _ = earlier.open(testKey, at: .zero)
    _ = now.open(testKey, at: .zero)
    let outputs = announce(&earlier, to: &now)
    #expect(!outputs.isEmpty && outputs.sends.count == outputs.count)
    #expect(now.surroundings.unanswered == nil)
  }
}

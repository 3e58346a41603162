import MusterBase
import MusterChannel
import MusterCrypto
import MusterSimulator
import MusterWire
import Testing

private func nodeID(_ seed: UInt64) -> NodeID {
  var entropy = Entropy.seeded(seed)
  return Identity(generating: &entropy).id
}

/// Every checker finds a planted fault, and reports none in correct traces.
struct CheckerTests {
  private func data(index: UInt32, counter: UInt64) -> [UInt8] {
    var writer = Writer()
    writer.u8(DatagramKind.data.rawValue)
    writer.u32(index)
    writer.u64(counter)
    writer.append([UInt8](repeating: 0, count: 16))
    return writer.bytes
  }

  @Test func aNonceUsedTwiceIsFound() {
    var checker = NonceChecker()
    // Counters may arrive out of order, because outputs of one instant have no fixed order.
    for counter in [1, 0, 2, 70, 64, 3] as [UInt64] {
      #expect(checker.sent(data(index: 5, counter: counter)) == nil)
    }
    #expect(checker.sent(data(index: 6, counter: 70)) == nil)
    #expect(checker.sent(data(index: 5, counter: 70)) != nil)
    #expect(checker.sent(data(index: 5, counter: .max)) != nil)
    #expect(checker.sent([DatagramKind.data.rawValue, 1]) != nil)
  }

  @Test func aNetworkThatDoublesIsNoNonceUsedTwice() {
    let options = SimulationOptions(seed: 3, nodes: 3, seconds: 6, faults: .only([.duplication]))
    let result = Simulation.run(options)
    #expect(result.network.duplicated > 0)
    #expect(result.violation == nil)
  }

  @Test func plaintextIsFoundWhereverItStands() {
    let id = nodeID(1)
    var checker = PlaintextChecker()
    checker.add(id)
    let noise = [UInt8](repeating: 0xA5, count: 100)
    #expect(checker.sent(noise) == nil)
    #expect(checker.sent([]) == nil)
    for position in [0, 1, 50, 100] {
      func planted(_ bytes: [UInt8]) -> String? {
        checker.sent(Array(noise.prefix(position)) + bytes + Array(noise.dropFirst(position)))
      }
      #expect(planted(Array("name-\(Marker.text)".utf8)) != nil)
      #expect(planted(id.key.bytes) != nil)
      #expect(planted(Array(id.key.bytes.prefix(7))) == nil)
      #expect(planted(nodeID(2).key.bytes) == nil)
    }
  }

  @Test func aKeyInTheClearIsFound() throws {
    let secret = (0..<32).map { UInt8($0 * 7) }
    var checker = PlaintextChecker()
    checker.add(key: try #require(ChannelKey(secret: secret)))
    #expect(checker.sent([1, 2, 3] + secret) != nil)
    #expect(checker.sent(Array(secret.dropFirst())) == nil)
  }

  @Test func mediaInTheClearIsFound() {
    let checker = PlaintextChecker()
    let token = FrameToken(
      sender: 1, run: 1, stream: 0, layer: 0, temporalLayer: 0, serial: 9, base: 8, golden: 0)
    let frame = token.frame(size: VideoSize(width: 160, height: 90), bytes: 900)
    #expect(checker.sent(frame) != nil)
    #expect(checker.sent(Array(frame[450..<500])) != nil)
    #expect(checker.sent(AudioToken(sender: 1, run: 1, serial: 3).packet) != nil)
  }

  @Test func boundsAreKept() {
    var checker = BoundsChecker()
    checker.identities = 3
    #expect(checker.sent([UInt8](repeating: 0, count: Limits.datagramBytes)) == nil)
    #expect(checker.sent([UInt8](repeating: 0, count: Limits.datagramBytes + 1)) != nil)
    #expect(checker.sent([]) != nil)
    #expect(checker.kept(members: 2, peers: 2, participants: 3) == nil)
    #expect(checker.kept(members: 3, peers: 2, participants: 3) != nil)
    #expect(checker.kept(members: 2, peers: 3, participants: 3) != nil)
    #expect(checker.kept(members: 2, peers: 2, participants: 4) != nil)
    #expect(checker.shown(after: .milliseconds(100)) == nil)
    #expect(checker.shown(after: .seconds(2)) != nil)
    checker.entries = 10
    #expect(checker.kept(entries: 16) == nil)
    #expect(checker.kept(entries: 17) != nil)
  }

  @Test func entriesThatCirculateWithoutEndAreFound() {
    var checker = BoundsChecker()
    #expect(checker.secondPassed(sent: 800, nodes: 3, hasMedia: false) == nil)
    #expect(checker.secondPassed(sent: 1600, nodes: 3, hasMedia: false) == nil)
    #expect(checker.secondPassed(sent: 5000, nodes: 3, hasMedia: true) != nil)
    #expect(checker.secondPassed(sent: 6000, nodes: 3, hasMedia: false) != nil)
  }

  @Test func anAnswerToAnOutsiderIsFound() {
    let member = Address(host: .v4(1 << 24 | 1), port: 1)
    let outsider = Address(host: .v4(1 << 24 | 2), port: 1)
    var checker = SilenceChecker(members: [member])
    let challenge = [DatagramKind.challenge.rawValue] + [UInt8](repeating: 0, count: 50)
    let announcement = [DatagramKind.announcement.rawValue] + [UInt8](repeating: 0, count: 100)
    #expect(checker.sent(data(index: 1, counter: 1), to: member) == nil)
    #expect(checker.sent(data(index: 1, counter: 1), to: outsider) != nil)
    checker.injected(announcement, from: outsider)
    // One announcement permits one challenge.
    #expect(checker.sent(challenge, to: outsider) == nil)
    #expect(checker.sent(challenge, to: outsider) != nil)
    // The challenge to an announcement under a forged address goes to that address.
    var other = SilenceChecker(members: [member])
    other.injected(announcement, from: member)
    #expect(other.sent(challenge, to: outsider) != nil)
  }

  @Test func audioPlayedTwiceAlteredOrMisplacedIsFound() {
    var checker = DeliveryChecker()
    let packet = AudioToken(sender: 1, run: 1, serial: 7).packet
    #expect(packet.count == AudioToken.packetBytes)
    #expect(checker.played(packet, from: 1, at: 0) == nil)
    #expect(checker.played(packet, from: 1, at: 2) == nil)
    #expect(checker.played(packet, from: 1, at: 0) != nil)
    #expect(checker.played(packet, from: 2, at: 0) != nil)
    let next = AudioToken(sender: 1, run: 1, serial: 8).packet
    for position in next.indices {
      var altered = next
      altered[position] ^= 1
      // Byte 7 is the run number; with another value, the packet looks like audio of another run.
      guard position != 7 else { continue }
      #expect(checker.played(altered, from: 1, at: 0) != nil, "byte \(position)")
    }
    #expect(checker.played(next, from: 1, at: 0) == nil)
  }
}

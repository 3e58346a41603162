import MusterBase
import MusterCrypto
import MusterDiscovery
import MusterWire
import Testing

/// The key of the channel that most tests use, and the key of a second channel.
let testKey = ChannelKey.fromName("mesh tests")
let otherKey = ChannelKey.fromName("another channel")

func testIdentity(_ number: UInt64) -> Identity {
  var entropy = Entropy.seeded(number)
  return Identity(generating: &entropy)
}

/// 10.0.0.`host`:4000.
func testAddress(_ host: Int) -> Address {
  Address(host: .v4(0x0A00_0000 | UInt32(host)), port: 4000)
}

func seconds(_ seconds: Double) -> Instant {
  Instant(nanoseconds: Int64(seconds * 1_000_000_000))
}

func testDiscovery(_ number: UInt64, bootID: UInt64 = 1) -> Discovery {
  Discovery(
    identity: testIdentity(number), bootID: bootID,
    entropy: .seeded(number &* 1000 &+ bootID), seed: number)
}

/// Builds announcements directly, with any counter, echo and signer.
struct Author {
  let identity: Identity
  var bootID: UInt64 = 1
  var counter: UInt64 = 0
  var entropy = Entropy.seeded(77)

  init(_ number: UInt64, bootID: UInt64 = 1) {
    identity = testIdentity(number)
    self.bootID = bootID
    entropy = .seeded(number &* 31 &+ bootID)
  }

  mutating func announcement(echo: [UInt8]? = nil, addresses: [Address] = []) -> [UInt8] {
    counter += 1
    let announcement = Announcement(
      author: identity.id, bootID: bootID, counter: counter, echo: echo, addresses: addresses)
    return SignedAnnouncement(announcement, by: identity, in: testKey.keyID)
      .datagram(sealedBy: testKey, entropy: &entropy)
  }

  /// Announces from `source`, answers the challenge from there, and returns the resulting outputs.
  mutating func prove(
    to discovery: inout Discovery, from source: Address, at now: Instant
  ) throws -> [Discovery.Output] {
    let asked = discovery.receive(announcement(), from: source, at: now)
    let challenge = try #require(asked.sends.first?.challenge)
    return discovery.receive(announcement(echo: challenge.echo), from: source, at: now)
  }
}

/// A unicast datagram in discovery's output.
struct Sent: Equatable {
  var datagram: [UInt8]
  var address: Address

  var kind: DatagramKind? { DatagramKind(of: datagram) }

  var challenge: Challenge? {
    guard kind == .challenge, let plaintext = DiscoveryDatagram.open(datagram, with: testKey)
    else { return nil }
    return try? Challenge(decoding: plaintext)
  }
}

func openedAnnouncement(_ datagram: [UInt8]?, key: ChannelKey = testKey) -> Announcement? {
  guard let datagram, let plaintext = DiscoveryDatagram.open(datagram, with: key) else {
    return nil
  }
  return try? SignedAnnouncement(decoding: plaintext).announcement
}

extension Array where Element == Discovery.Output {
  var broadcasts: [[UInt8]] {
    compactMap { if case .broadcast(let datagram) = $0 { datagram } else { nil } }
  }

  var sends: [Sent] {
    compactMap {
      if case .send(let datagram, let address) = $0 {
        Sent(datagram: datagram, address: address)
      } else {
        nil
      }
    }
  }

  var isFound: Bool { contains { if case .found = $0 { true } else { false } } }
}

/// Ticks at every deadline up to and including `end`.
func drive(
  _ discovery: inout Discovery, until end: Instant,
  _ body: (Instant, [Discovery.Output]) -> Void
) {
  while let deadline = discovery.deadline, deadline <= end {
    body(deadline, discovery.tick(at: deadline))
  }
}

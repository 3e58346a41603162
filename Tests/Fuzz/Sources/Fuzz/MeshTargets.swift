import MusterBase
import MusterChannel
import MusterCrypto
import MusterDiscovery
import MusterWire

private let key = ChannelKey.fromName("fuzz")

private func identity(_ seed: UInt8) -> Identity {
  guard let identity = Identity(seed: [UInt8](repeating: seed, count: 32)) else {
    fatalError("32 bytes are a seed")
  }
  return identity
}

private let own = identity(1)
private let other = identity(2)

/// Discovery, fed with datagrams sealed under the channel key, signed or not.
///
/// Promises: no burst, no oversized reply, none to a multicast address or port 0.
enum DiscoveryTarget {
  static func run(_ bytes: [UInt8]) {
    var program = Program(bytes)
    var now = Instant(nanoseconds: 1_000_000_000)
    var discovery = Discovery(identity: own, bootID: 1, entropy: .seeded(1), seed: 1)
    var sealing = Entropy.seeded(2)
    var received = 0
    var sent = 0
    _ = discovery.open(key, at: now)
    while !program.isAtEnd {
      let source = Address(host: .v4(program.u32()), port: program.u16())
      switch program.u8() % 5 {
      case 0:
        now = now + program.duration()
        count(discovery.tick(at: now), in: &sent)
      case 1: count(discovery.receive(program.bytes(), from: source, at: now), in: &sent)
      case 2:
        let sealed = key.sealAnnouncement(program.bytes(), kind: 2, entropy: &sealing)
        received += 1
        count(discovery.receive([0x02] + sealed, from: source, at: now), in: &sent)
      case 3:
        let announcement = announcement(&program)
        let sealed = key.sealAnnouncement(announcement, kind: 1, entropy: &sealing)
        received += 1
        count(discovery.receive([0x01] + sealed, from: source, at: now), in: &sent)
      default:
        let isSealed = program.bit()
        let left = isSealed ? announcement(&program) : program.bytes()
        let sealed = [0x01] + key.sealAnnouncement(left, kind: 1, entropy: &sealing)
        count(discovery.found(isSealed ? sealed : left, in: key.keyID, at: now), in: &sent)
        check(discovery.takeDHTRecords(day: program.u64(), at: now).count <= 1, "one at a time")
      }
    }
  }

  /// A signed announcement of the other node, with fields from the input.
  private static func announcement(_ program: inout Program) -> [UInt8] {
    let bytes = Announcement(
      author: other.id, bootID: UInt64(program.u8()), counter: UInt64(program.u8()),
      echo: program.bit() ? (0..<16).map { _ in program.u8() } : nil,
      addresses: (0..<program.below(Limits.addresses + 1)).map { _ in
        Address(host: .v4(program.u32()), port: program.u16())
      }
    ).encoded()
    let signed = Array("muster/1 announce".utf8) + key.keyID.hash.bytes + bytes
    return bytes + other.sign(signed)
  }

  private static func count(_ outputs: [Discovery.Output], in sent: inout Int) {
    check(outputs.count <= 256, "one event causes no burst")
    for output in outputs {
      guard case .send(let bytes, to: let address) = output else { continue }
      sent += 1
      check(bytes.count <= Limits.datagramBytes, "a datagram fits")
      check(address.isUnicast, "replies go to one host")
    }
  }
}

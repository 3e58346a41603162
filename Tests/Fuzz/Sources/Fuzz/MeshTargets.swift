import MusterBase
import MusterCrypto
import MusterMesh
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

/// Discovery fed with what a member may send: sealed under the channel key, signed or not.
///
/// Promises: no burst, no reply larger than a datagram, none towards a group or a port 0.
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
        let sealed = key.sealAnnounce(program.bytes(), kind: 2, entropy: &sealing)
        received += 1
        count(discovery.receive([0x02] + sealed, from: source, at: now), in: &sent)
      default:
        let announce = announce(&program)
        let sealed = key.sealAnnounce(announce, kind: 1, entropy: &sealing)
        received += 1
        count(discovery.receive([0x01] + sealed, from: source, at: now), in: &sent)
      }
    }
  }

  /// A signed announce of the other node, with fields of the program's choice.
  private static func announce(_ program: inout Program) -> [UInt8] {
    let bytes = Announce(
      author: other.id, bootID: UInt64(program.u8()), counter: UInt64(program.u8()),
      echo: program.bit() ? (0..<16).map { _ in program.u8() } : nil,
      addresses: (0..<program.below(Limits.addresses + 1)).map { _ in
        Address(host: .v4(program.u32()), port: program.u16())
      }
    ).encoded()
    let signed = Array("muster/1 announce".utf8) + key.channelID.key.bytes + bytes
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

/// A created channel fed with entries that a member signed, and with control messages of any kind.
///
/// Promises: whatever one member says, there is at most that one other member and one call, it does
/// no more than its role allows, and the document stays within its bounds.
enum ChannelTarget {
  private static let genesis = SignedGenesis.sign(
    Genesis(
      owner: own.id, nonce: [UInt8](repeating: 7, count: Genesis.nonceBytes), createdAt: 1,
      settings: ChannelSettings(), name: "fuzz"), by: own)

  static func run(_ bytes: [UInt8]) {
    var program = Program(bytes)
    var now = Instant(nanoseconds: 1_000_000_000)
    let isCreated = program.bit()
    let channel = isCreated ? genesis.channelID : key.channelID
    var state = ChannelState(
      ChannelState.Setup(
        identity: own, channel: channel, genesis: isCreated ? genesis : nil, name: "fuzz",
        bootID: 1, entropy: .seeded(3), seed: 4))
    _ = state.enter(at: now)
    _ = state.linkUp(other.id, bootID: 2, at: now)
    while !program.isAtEnd {
      switch program.u8() % 10 {
      case 0:
        now = now + program.duration()
        _ = state.tick(at: now, lastHeard: { _ in now }, roundTrip: { _ in .seconds(1) })
      case 1:
        for message in (try? Control.decode([1] + program.bytes())) ?? [] {
          _ = state.receive(message, from: other.id, at: now)
        }
      case 2:
        let id = CallID(high: program.u64(), low: program.u64())
        _ = state.startOrJoinCall(proposing: id, startedAt: program.u64(), at: now)
      case 3: _ = state.leaveCall(at: now)
      case 4: _ = state.linkDown(other.id, reason: .crashed, at: now)
      case 5: _ = state.linkUp(other.id, bootID: UInt64(program.u8() & 3), at: now)
      case 6: _ = state.say("word", to: program.bit() ? other.id : nil, at: now)
      case 7:
        let role = Role(rawValue: program.u8() % 5) ?? .none
        _ = state.grant(role, to: other.id, expiresAt: program.u64(), at: now)
      default:
        let bytes = entry(&program, in: channel)
        _ = state.receive(.entry(bytes), from: other.id, at: now)
      }
      promise(state)
    }
  }

  private static func promise(_ state: ChannelState) {
    check(state.members.count <= 1, "one link brings one member")
    if let call = state.call {
      check(!call.participants.isEmpty, "a call has someone in it")
      check(call.participants == call.participants.sorted(), "participants are sorted")
    }
    check(!state.isInCall || state.call != nil, "who is in a call knows of it")
    check(state.digest.count < 20_000, "the document is bounded")
  }

  /// A signed entry of any kind with fields of the program's choice.
  private static func entry(_ program: inout Program, in channel: ChannelID) -> [UInt8] {
    var bytes = (program.u8() == 0 ? own.id : other.id).key.bytes
    bytes += big(UInt64(program.u8()))
    bytes += big(program.bit() ? UInt64(program.u16()) : program.u64())
    bytes += [program.u8() % 10] + program.bytes() + program.bytes()
    return bytes
      + other.sign(Array("muster/1 entry".utf8) + channel.key.bytes + bytes)
  }

  private static func big(_ word: UInt64) -> [UInt8] {
    (0..<8).map { UInt8(truncatingIfNeeded: word >> UInt64(56 - 8 * $0)) }
  }
}

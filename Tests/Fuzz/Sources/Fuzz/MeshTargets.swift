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

/// The roster and call of a channel fed with hellos that a member signed.
///
/// Promises: whatever one member says, there is at most that one other member and one call.
enum ChannelTarget {
  static func run(_ bytes: [UInt8]) {
    var program = Program(bytes)
    var now = Instant(nanoseconds: 1_000_000_000)
    var state = ChannelState(
      identity: own, channel: key.channelID, name: "fuzz", bootID: 1)
    _ = state.linkUp(other.id, at: now)
    while !program.isAtEnd {
      switch program.u8() % 8 {
      case 0:
        now = now + program.duration()
        _ = state.tick(at: now)
      case 1: _ = state.receiveHello(program.bytes(), from: other.id, at: now)
      case 2:
        let id = CallID(high: program.u64(), low: program.u64())
        _ = state.startOrJoinCall(proposing: id, startedAt: program.u64(), at: now)
      case 3: _ = state.leaveCall(at: now)
      case 4: _ = state.linkUp(other.id, at: now)
      case 5:
        _ = state.receiveAcknowledgement(
          bootID: UInt64(program.u8()), sequence: program.u64(), from: other.id, at: now)
      default: _ = state.receiveHello(hello(&program), from: other.id, at: now)
      }
      check(state.members.count <= 1, "one link brings one member")
      if let call = state.call {
        check(!call.participants.isEmpty, "a call has someone in it")
        check(call.participants == call.participants.sorted(), "participants are sorted")
      }
      check(!state.isInCall || state.call != nil, "who is in a call knows of it")
    }
  }

  private static func hello(_ program: inout Program) -> [UInt8] {
    func call(_ program: inout Program) -> CallID {
      CallID(high: UInt64(program.u8() & 3), low: UInt64(program.u8() & 3))
    }
    let bytes = Hello(
      author: program.u8() == 0 ? own.id : other.id, bootID: UInt64(program.u8() & 3),
      sequence: UInt64(program.u16()),
      name: DisplayText.sanitized(
        String(decoding: program.bytes(), as: UTF8.self), limit: Limits.nameBytes),
      flags: MemberFlags(rawValue: program.u16()),
      call: program.bit()
        ? CallInfo(
          id: call(&program), initiator: program.bit() ? own.id : other.id,
          startedAt: UInt64(program.u8())) : nil,
      endedCall: program.bit() ? call(&program) : nil, layers: []
    ).encoded()
    let signed = Array("muster/1 hello".utf8) + key.channelID.key.bytes + bytes
    return bytes + other.sign(signed)
  }
}

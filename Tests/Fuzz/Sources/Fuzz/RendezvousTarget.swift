import MusterBase
import MusterChannel
import MusterCrypto
import MusterDiscovery
import MusterWire

/// A rendezvous and a client, fed with unauthenticated datagrams.
///
/// Promises: no amplification towards unproven addresses; all state is bounded
/// and expires; decoding and encoding are inverse.
struct RendezvousTarget {
  private var server = RendezvousServer(entropy: .seeded(1))
  private var discovery = Discovery(identity: Cast.own, bootID: 1, entropy: .seeded(2), seed: 2)
  private var now = Instant(nanoseconds: 1_000_000_000)
  private var clock: UInt64 = 1_700_000_000
  private let index = Address(host: .v4(0x0A00_0001), port: 1)
  private var cookie: RendezvousCookie?

  static func run(_ bytes: [UInt8]) {
    read(bytes)
    var program = Program(bytes)
    var target = RendezvousTarget()
    while !program.isAtEnd { target.step(&program) }
    target.finish()
  }

  private static func read(_ bytes: [UInt8]) {
    if let value = try? RendezvousCookie(decoding: bytes) {
      check(value.encoded() == bytes, "a cookie comes back")
    }
    if let value = try? RendezvousRegistration(decoding: bytes) {
      check((try? RendezvousRegistration(decoding: value.encoded())) == value, "as does this")
    }
    if let value = try? RendezvousRecords(decoding: bytes) {
      check(value.encoded() == bytes, "records come back")
    }
  }

  private init() {
    _ = discovery.open(Cast.key, at: now)
    _ = discovery.setRendezvous([Contact(index)], at: now)
  }

  private mutating func step(_ program: inout Program) {
    // Few sources, so that some have cookies.
    let source = Address(host: .v4(0x0A00_0002 + UInt32(program.u8() & 3)), port: 9)
    switch program.u8() % 7 {
    case 0:
      now = now + program.duration()
      clock &+= UInt64(program.u16())
      server.tick(at: now)
      _ = discovery.tick(at: now)
    case 1: receive(RendezvousHello(token: program.u64()).encoded(), from: source, isProven: false)
    case 2: receive(program.bytes(), from: source, isProven: false)
    case 3: register(&program, from: source)
    case 4: count(discovery.receive([0x31] + program.bytes(), from: index, at: now))
    case 5: count(discovery.receive([0x33] + program.bytes(), from: index, at: now))
    default: ask(source)
    }
    check(server.count <= RendezvousServer.recordLimit, "records are bounded")
  }

  private mutating func ask(_ source: Address) {
    let hello = RendezvousHello(token: 1).encoded()
    for case .send(let answer, _) in server.receive(hello, from: source, seconds: clock, at: now) {
      cookie = try? RendezvousCookie(decoding: answer)
    }
  }

  private mutating func register(_ program: inout Program, from source: Address) {
    guard let cookie else { return }
    let tag = Cast.key.rendezvousTag(period: cookie.period)
    let announcement = Array(program.bytes().prefix(RendezvousRegistration.announcementLimit))
    let slot = UInt64(program.u8())
    let bytes = RendezvousRegistration(
      token: slot, cookie: cookie.cookie, period: cookie.period, tag: tag.id.key, slot: slot,
      wantsRecords: program.bit(), announcement: announcement
    ).encoded()
    let signed = bytes + tag.sign(Array("muster/1 rendezvous".utf8) + bytes)
    receive(signed, from: source, isProven: cookie.seen == source)
  }

  private mutating func receive(_ datagram: [UInt8], from source: Address, isProven: Bool) {
    var sent = 0
    for case .send(let answer, to: let address) in server.receive(
      datagram, from: source, seconds: clock, at: now)
    {
      sent += answer.count
      check(answer.count <= Limits.datagramBytes, "a datagram fits")
      check(isProven || address == source, "nobody else hears of it")
    }
    check(isProven || sent <= datagram.count, "no more than was heard")
  }

  private func count(_ outputs: [Discovery.Output]) {
    check(outputs.count <= 256, "one event causes no burst")
  }

  private mutating func finish() {
    for _ in 0..<8 {
      now = now + .seconds(30)
      server.tick(at: now)
    }
    check(server.count == 0, "nothing is kept for ever")
  }
}

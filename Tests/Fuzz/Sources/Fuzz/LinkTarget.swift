import MusterBase
import MusterCrypto
import MusterLink
import MusterWire

/// Two link engines and a network controlled by the input.
///
/// Promises: only payloads that the other engine sealed are delivered, and once; one datagram never
/// causes a burst; datagrams respect the size limit; deadlines do not accumulate.
struct LinkTarget: ~Copyable {
  /// A reference, because arrays hold nothing that cannot be copied.
  private final class End {
    var engine: LinkEngine

    init(_ engine: consuming LinkEngine) { self.engine = engine }
  }

  private let ends: [End]
  private var now = Instant(nanoseconds: 1_000_000_000)
  private var mail: [Letter] = []
  private var archive: [Letter] = []
  private var serial: UInt64 = 0
  /// Serial numbers in flight to engine 0 and to engine 1.
  private var inFlight: [[UInt64]] = [[], []]

  private struct Letter {
    var to: Int
    var bytes: [UInt8]
    var from: Address
  }

  private static let key = ChannelKey.fromName("fuzz")
  private static let identities = ([1, 2] as [UInt8]).map { seed in
    guard let identity = Identity(seed: [UInt8](repeating: seed, count: 32)) else {
      fatalError("32 bytes are a seed")
    }
    return identity
  }
  private static let addresses = (1...3).map {
    Address(host: .v4(0xC000_0200 + UInt32($0)), port: 4000)
  }
  private static let letters = 64

  /// The state that half of the inputs start from: a link that is up in both directions. It is made
  /// anew for each of them, because an engine cannot be copied.
  private static func linked() -> LinkTarget {
    var pair = LinkTarget()
    pair.connect(from: 0)
    for _ in 0..<16 { pair.deliver(changed: { $0 }) }
    return pair
  }

  static func run(_ bytes: [UInt8]) {
    var program = Program(bytes)
    // Half of the inputs begin without a link, so that the handshake is fuzzed too.
    var pair = program.bit() ? linked() : LinkTarget()
    while !program.isAtEnd { pair.step(&program) }
  }

  private init() {
    ends = (0..<2).map { index in
      var engine = LinkEngine(
        identity: Self.identities[index], bootID: UInt64(index + 1),
        entropy: .seeded(UInt64(index + 1)), seed: UInt64(index + 1))
      engine.open(Self.key)
      return End(engine)
    }
  }

  private func link(of index: Int) -> SessionLinkID {
    SessionLinkID(key: Self.key.keyID, peer: Self.identities[1 - index].id)
  }

  private mutating func step(_ program: inout Program) {
    switch program.u8() % 16 {
    case 0, 1, 2: deliver { $0 }
    case 3:
      let position = Int(program.u16())
      let flip = program.u8() | 1
      deliver { bytes in
        var bytes = bytes
        if !bytes.isEmpty { bytes[position % bytes.count] ^= flip }
        return bytes
      }
    case 4:
      let count = Int(program.u16())
      deliver { Array($0.prefix(count)) }
    case 5: if !mail.isEmpty { mail.removeFirst() }
    case 6: if !mail.isEmpty { mail.append(mail.removeFirst()) }
    case 7: if !archive.isEmpty { post(archive[program.below(archive.count)]) }
    case 8:
      // From another address: roaming, or a replay by an on-path attacker.
      if !mail.isEmpty { mail[0].from = Self.addresses[program.below(3)] }
    case 9, 10: seal(from: program.below(2), body: program.bytes())
    case 11: wait(program.duration())
    case 12: connect(from: program.below(2))
    case 13:
      let index = program.below(2)
      let outputs = ends[index].engine.close(link(of: index), reason: .local, at: now)
      perform(outputs, of: index)
    case 14: hand(program.bytes(), to: program.below(2), from: Self.addresses[program.below(3)])
    default:
      // The header of a real datagram before invented bytes.
      let head = Int(program.u8())
      let tail = program.bytes()
      deliver { Array($0.prefix(head)) + tail }
    }
  }

  private mutating func connect(from index: Int) {
    let outputs = ends[index].engine.connect(
      to: Self.identities[1 - index].id, bootID: UInt64(2 - index), in: Self.key.keyID,
      over: .direct(Self.addresses[1 - index]), now: now)
    perform(outputs, of: index)
  }

  private mutating func seal(from index: Int, body: [UInt8]) {
    serial += 1
    var header = Writer()
    header.u8(PayloadKind.controlByte)
    header.u64(serial)
    let payload = OutgoingPayload(.bytes(header.bytes), body[...])
    guard let sealed = ends[index].engine.seal(payload, on: link(of: index), at: now)
    else { return }
    inFlight[1 - index].append(serial)
    post(Letter(to: 1 - index, bytes: sealed.datagram, from: Self.addresses[index]))
  }

  private mutating func wait(_ duration: Duration) {
    now = now + duration
    for index in ends.indices {
      perform(ends[index].engine.tick(at: now), of: index)
      // All due work is done in one call; otherwise a shell would spin.
      if let deadline = ends[index].engine.deadline {
        check(deadline > now, "a tick does all that was due")
      }
    }
  }

  private mutating func deliver(changed change: ([UInt8]) -> [UInt8]) {
    guard !mail.isEmpty else { return }
    let letter = mail.removeFirst()
    hand(change(letter.bytes), to: letter.to, from: letter.from)
  }

  private mutating func hand(_ bytes: [UInt8], to index: Int, from source: Address) {
    let outputs = ends[index].engine.receive(bytes, from: .direct(source), at: now)
    check(outputs.count <= 8, "one datagram causes no burst")
    perform(outputs, of: index)
  }

  private mutating func perform(_ outputs: [LinkEngine.Output], of index: Int) {
    for output in outputs {
      switch output {
      case .send(let bytes, over: let destination):
        check(bytes.count <= Limits.datagramBytes, "a datagram fits")
        check(destination.isUnicast, "links are between two")
        post(Letter(to: 1 - index, bytes: bytes, from: Self.addresses[index]))
      case .delivered(let link, let payload, _, _):
        check(link == self.link(of: index), "payloads come by their own link")
        // Keepalives and path messages come from the engines themselves.
        if PayloadKind(of: payload) == .control { received(payload, by: index) }
      case .established, .moved, .closed: break
      }
    }
  }

  private mutating func received(_ payload: [UInt8], by index: Int) {
    var reader = Reader(payload)
    guard (try? reader.u8()) == PayloadKind.controlByte, let serial = try? reader.u64(),
      let position = inFlight[index].firstIndex(of: serial)
    else { fatalError("delivered what was not sent, or twice") }
    inFlight[index].remove(at: position)
  }

  private mutating func post(_ letter: Letter) {
    if mail.count < Self.letters { mail.append(letter) }
    if archive.count < Self.letters { archive.append(letter) }
  }
}

import Muster
import MusterBase
import MusterCrypto
import MusterLink
import MusterSystem
import MusterWire

/// A benchmark of the CPU time per datagram of a link, compared with libsodium alone.
struct PacketBench {
  var bareMicroseconds: Double
  var linkMicroseconds: Double

  var ratio: Double { linkMicroseconds / bareMicroseconds }

  private static let rounds = 100_000
  /// The payload size in a datagram of 1,200 bytes with a 13-byte header and a 16-byte tag.
  private static let payloadBytes = Limits.datagramBytes - 29

  /// An RTP packet that fills a datagram.
  static var payload: OutgoingPayload {
    let header = RTPHeader(marker: false, payloadType: 96, sequence: 1, timestamp: 1, ssrc: 1)
    let body = [UInt8](repeating: 1, count: payloadBytes - header.encodedBytes)
    return OutgoingPayload(.rtp(header), body[...])
  }

  /// Returns the best of five rounds, because other load on the machine can only add time.
  static func run() throws -> PacketBench {
    var pair = try LinkPair()
    var bare = Double.infinity
    var link = Double.infinity
    for _ in 0..<5 {
      bare = min(bare, bareRound())
      link = min(link, linkRound(&pair))
    }
    return PacketBench(bareMicroseconds: bare, linkMicroseconds: link)
  }

  private static func bareRound() -> Double {
    let key = BareSodium.key()
    var buffer = [UInt8](repeating: 1, count: Limits.datagramBytes)
    var opened = [UInt8](repeating: 0, count: payloadBytes)
    let start = ProcessUsage.cpuSeconds
    for counter in 0..<rounds {
      BareSodium.sealAndOpen(&buffer, into: &opened, counter: UInt64(counter), key: key)
    }
    return (ProcessUsage.cpuSeconds - start) * 1e6 / Double(rounds)
  }

  private static func linkRound(_ pair: inout LinkPair) -> Double {
    let payload = payload
    let start = ProcessUsage.cpuSeconds
    for _ in 0..<rounds { pair.pass(payload) }
    return (ProcessUsage.cpuSeconds - start) * 1e6 / Double(rounds)
  }
}

/// Two link engines with an established link.
struct LinkPair: ~Copyable {
  private var sender: LinkEngine
  private var receiver: LinkEngine
  private let link: SessionLinkID
  private let source = Route.direct(Address(host: .v4(0x7F00_0001), port: 1))
  private let target = Route.direct(Address(host: .v4(0x7F00_0002), port: 2))
  private let now = Instant(nanoseconds: 1_000_000_000)
  /// The output buffer for received datagrams, reused as in `Node` to avoid allocation.
  private var outputs: [LinkEngine.Output] = []

  init() throws {
    var entropy = Entropy.system
    let first = Identity(generating: &entropy)
    let second = Identity(generating: &entropy)
    let key = ChannelKey.fromName("bench")
    link = SessionLinkID(key: key.keyID, peer: second.id)
    sender = LinkEngine(identity: first, bootID: 1, entropy: .system, seed: 1)
    receiver = LinkEngine(identity: second, bootID: 2, entropy: .system, seed: 2)
    sender.open(key)
    receiver.open(key)
    var toReceiver = Self.datagrams(
      sender.connect(to: second.id, bootID: 2, in: key.keyID, over: target, now: now))
    while !toReceiver.isEmpty {
      var answers: [[UInt8]] = []
      for datagram in toReceiver {
        answers += Self.datagrams(receiver.receive(datagram, from: source, at: now))
      }
      toReceiver = []
      for datagram in answers {
        toReceiver += Self.datagrams(sender.receive(datagram, from: target, at: now))
      }
    }
    guard sender.establishedLinks == [link] else {
      throw MusterError("the link does not come up", hint: "this is a defect: please report it")
    }
  }

  /// Encrypts one payload on one side and decrypts it on the other.
  mutating func pass(_ payload: OutgoingPayload) {
    guard let sealed = sender.seal(payload, on: link, at: now) else { return }
    receiver.receive(sealed.datagram, from: source, arrivedAt: now, at: now, into: &outputs)
    precondition(!outputs.isEmpty)
    outputs.removeAll(keepingCapacity: true)
  }

  private static func datagrams(_ outputs: [LinkEngine.Output]) -> [[UInt8]] {
    outputs.compactMap { if case .send(let datagram, _) = $0 { datagram } else { nil } }
  }
}

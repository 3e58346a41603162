import Glibc
import Muster
import MusterBase
import MusterChannel
import MusterCore
import MusterCrypto
import MusterDiscovery
import MusterWire

/// Allocations on the hot paths, against their budgets.
///
/// Counted by a small library that `make bench` builds and loads in front of the C library's
/// malloc.
struct AllocationBench {
  struct Budget {
    var subject: String
    var measured: Double
    var allowed: Double

    var isExceeded: Bool { measured > allowed }
  }

  private typealias Counter = @convention(c) () -> UInt64

  /// Nil when the counting library is not loaded.
  static func run() throws -> [Budget]? {
    guard let symbol = dlsym(nil, "muster_malloc_count") else { return nil }
    let count = unsafeBitCast(symbol, to: Counter.self)
    func perRound(_ rounds: Int, _ body: () -> Void) -> Double {
      let before = count()
      for _ in 0..<rounds { body() }
      return Double(count() - before) / Double(rounds)
    }
    var pair = try LinkPair()
    let header = [UInt8](repeating: 0x80, count: 12)
    let body = [UInt8](repeating: 1, count: 1100)
    let packet = perRound(10_000) { pair.pass(header, body) }

    var nodes = try NodePair()
    for _ in 0..<100 { nodes.sendFrame(bytes: 4000) }
    let frame = perRound(1000) { nodes.sendFrame(bytes: 4000) }
    let audio = perRound(1000) { nodes.sendAudio() }
    return [
      Budget(subject: "a packet sealed and opened", measured: packet, allowed: 4),
      Budget(subject: "a picture of 4 packets, both ends", measured: frame, allowed: 56),
      Budget(subject: "a packet of sound, both ends", measured: audio, allowed: 14),
    ]
  }
}

/// Two whole nodes in a call, joined by nothing but function calls.
struct NodePair {
  private var nodes: [Node]
  private var addresses: [Address] = []
  private var now = Instant(nanoseconds: 1_000_000_000)
  private let channel: ChannelID
  private var number = 0

  init() throws {
    let key = ChannelKey.fromName("bench")
    channel = key.channelID
    var entropy = Entropy.system
    nodes = (0..<2).map { index in
      Node(identity: Identity(generating: &entropy), entropy: .system, seed: UInt64(index))
    }
    addresses = (0..<2).map { Address(host: .v4(0x7F00_0001), port: UInt16(1000 + $0)) }
    let layer = VideoLayer(size: VideoSize(width: 640, height: 360), framesPerSecond: 30)
    for index in 0..<2 {
      carry(
        nodes[index].setSources(
          [StreamOffer(.camera, layers: [layer])], hasAudio: true, at: now),
        from: index)
      carry(
        nodes[index].join(ChannelSetup(name: "bench", key: key), call: true, at: now), from: index)
    }
    for _ in 0..<200 { step(.milliseconds(20)) }
    guard nodes.allSatisfy({ $0.call(in: channel)?.participants.count == 2 }) else {
      throw MusterError("the call does not come up", hint: "this is a defect: please report it")
    }
    sendFrame(bytes: 4000, isKeyframe: true)
  }

  mutating func sendFrame(bytes: Int, isKeyframe: Bool = false) {
    // VP8's first bit is 0 in keyframes, which then have a start code and a size.
    var data = [UInt8](repeating: 1, count: bytes)
    if isKeyframe {
      data.replaceSubrange(0..<10, with: [0, 0, 0, 0x9D, 1, 0x2A, 0x80, 2, 0x68, 1])
    }
    now = now + .milliseconds(1)
    carry(
      nodes[0].sendVideo(
        EncodedFrame(
          data: data, isKeyframe: isKeyframe, layer: 0, temporalLayer: 0, isReference: true,
          capturedAt: now), at: now), from: 0)
  }

  mutating func sendAudio() {
    now = now + .milliseconds(1)
    let packet = EncodedAudio(data: [UInt8](repeating: 1, count: 80), level: 30, capturedAt: now)
    carry(nodes[0].sendAudio(packet, at: now), from: 0)
  }

  private mutating func step(_ duration: Duration) {
    now = now + duration
    for index in 0..<2 { carry(nodes[index].tick(at: now), from: index) }
  }

  private mutating func carry(_ outputs: [Node.Output], from index: Int) {
    for output in outputs {
      switch output {
      case .send(let datagram, _), .broadcast(let datagram):
        carry(
          nodes[1 - index].receive(datagram, from: addresses[index], at: now), from: 1 - index)
      default: break
      }
    }
  }
}

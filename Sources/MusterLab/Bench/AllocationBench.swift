import Muster
import MusterBase
import MusterChannel
import MusterCore
import MusterCrypto
import MusterDiscovery
import MusterSystem
import MusterWire

/// A benchmark of heap allocations per operation on the hot paths, compared with budgets.
///
/// A small library that `make bench` builds and preloads counts the calls of malloc.
struct AllocationBench {
  struct Budget {
    var subject: String
    var measured: Double
    var allowed: Double

    var isExceeded: Bool { measured > allowed }
  }

  private typealias Counter = @convention(c) () -> UInt64

  /// Measures the allocations per operation; nil when the counting library is not loaded.
  static func run() throws -> [Budget]? {
    guard let symbol = dlsym(nil, "muster_malloc_count") else { return nil }
    let count = unsafeBitCast(symbol, to: Counter.self)
    func perRound(_ rounds: Int, _ body: () -> Void) -> Double {
      let before = count()
      for _ in 0..<rounds { body() }
      return Double(count() - before) / Double(rounds)
    }
    var pair = try LinkPair()
    let payload = PacketBench.payload
    pair.pass(payload)
    let packet = perRound(10_000) { pair.pass(payload) }

    var nodes = try NodePair()
    let data = [UInt8](repeating: 1, count: 4000)
    for _ in 0..<100 { nodes.sendFrame(data) }
    let frame = perRound(1000) { nodes.sendFrame(data) }
    let opus = [UInt8](repeating: 1, count: 80)
    let audio = perRound(1000) { nodes.sendAudio(opus) }
    return [
      Budget(subject: "a packet sealed and opened", measured: packet, allowed: 2),
      Budget(subject: "a frame of 4 packets, both ends", measured: frame, allowed: 20),
      Budget(subject: "a packet of audio, both ends", measured: audio, allowed: 8),
    ]
  }
}

/// Two complete nodes in a call, connected by function calls alone.
struct NodePair: ~Copyable {
  private var first: Node
  private var second: Node
  private let source = Address(host: .v4(0x7F00_0001), port: 1000)
  private let target = Address(host: .v4(0x7F00_0001), port: 1001)
  private var now = Instant(nanoseconds: 1_000_000_000)
  private let channel: ChannelID
  /// The outputs in transit from the first to the second node, and back; the arrays are reused to
  /// avoid allocations.
  private var there: [Node.Output] = []
  private var back: [Node.Output] = []

  init() throws {
    let key = ChannelKey.fromName("bench")
    channel = key.channelID
    var entropy = Entropy.system
    first = Node(identity: Identity(generating: &entropy), entropy: .system, seed: 0)
    second = Node(identity: Identity(generating: &entropy), entropy: .system, seed: 1)
    let layer = VideoLayer(size: VideoSize(width: 640, height: 360), framesPerSecond: 30)
    let offer = StreamOffer(.camera, layers: [layer])
    there += first.setSources([offer], hasAudio: true, at: now)
    back += second.setSources([offer], hasAudio: true, at: now)
    there += first.join(ChannelSetup(name: "bench", key: key), call: true, at: now)
    back += second.join(ChannelSetup(name: "bench", key: key), call: true, at: now)
    carry()
    for _ in 0..<200 { step(.milliseconds(20)) }
    guard first.call(in: channel)?.participants.count == 2,
      second.call(in: channel)?.participants.count == 2
    else {
      throw MusterError("the call does not come up", hint: "this is a defect: please report it")
    }
    // In a VP8 keyframe (RFC 6386 section 9.1), the lowest bit of the first byte is 0, and a start
    // code and the frame size follow the 3-byte frame tag.
    sendFrame([0, 0, 0, 0x9D, 1, 0x2A, 0x80, 2, 0x68, 1] + [UInt8](repeating: 1, count: 3990))
  }

  mutating func sendFrame(_ data: [UInt8]) {
    now = now + .milliseconds(1)
    let frame = EncodedFrame(
      data: data, isKeyframe: data.first == 0, layer: 0, temporalLayer: 0, isReference: true,
      capturedAt: now)
    there += first.sendVideo(frame, at: now)
    carry()
  }

  mutating func sendAudio(_ data: [UInt8]) {
    now = now + .milliseconds(1)
    there += first.sendAudio(EncodedAudio(data: data, level: 30, capturedAt: now), at: now)
    carry()
  }

  private mutating func step(_ duration: Duration) {
    now = now + duration
    there += first.tick(at: now)
    back += second.tick(at: now)
    carry()
  }

  /// Delivers datagrams until no more are in transit. Like a real host, it queries the next
  /// deadline after each round.
  private mutating func carry() {
    while !there.isEmpty || !back.isEmpty {
      for output in there {
        guard let datagram = output.datagram else { continue }
        second.receive(datagram, from: source, at: now, into: &back)
      }
      there.removeAll(keepingCapacity: true)
      for output in back {
        guard let datagram = output.datagram else { continue }
        first.receive(datagram, from: target, at: now, into: &there)
      }
      back.removeAll(keepingCapacity: true)
      precondition(first.deadline != nil && second.deadline != nil)
    }
  }
}

extension Node.Output {
  /// The datagram of an output that sends one; nil for other outputs.
  fileprivate var datagram: [UInt8]? {
    switch self {
    case .send(let datagram, _, _), .broadcast(let datagram): datagram
    default: nil
    }
  }
}

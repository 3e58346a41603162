import MusterBase
import MusterMedia
import MusterWire

/// What this node sends: one capture, one encoder per layer, one set of payloads for all links.
struct LocalMedia: Sendable {
  /// The layers on offer, smallest first.
  var layers: [VideoLayer] = []
  private(set) var flags: MemberFlags = []
  private var speaking = SpeakingDetector()
  var audioTimestamps = AudioTimestamps()
  /// The layers the host was last told to encode.
  var encoded: [Int] = []

  private var packetizers: [VideoPacketizer]
  private var limiters: [KeyframeLimiter]
  init(prng: inout PRNG) {
    packetizers = []
    for layer in 0..<Limits.spatialLayers {
      packetizers.append(VideoPacketizer(layer: layer, seed: prng.next()))
    }
    limiters = Array(repeating: KeyframeLimiter(), count: Limits.spatialLayers)
  }

  var sendsVideo: Bool { !layers.isEmpty && !flags.contains(.videoMuted) }
  var sendsAudio: Bool { flags.contains(.audio) && !flags.contains(.audioMuted) }

  mutating func set(_ flag: MemberFlags, to value: Bool) {
    if value { flags.insert(flag) } else { flags.remove(flag) }
  }

  mutating func packetize(_ frame: EncodedFrame) -> PacketizedFrame? {
    guard packetizers.indices.contains(frame.layer) else { return nil }
    return packetizers[frame.layer].packetize(frame)
  }

  /// Whether the detector's verdict on this node's own voice changed.
  mutating func heard(level: UInt8, at now: Instant) -> Bool {
    let speaks = speaking.update(level: level, at: now) && sendsAudio
    guard speaks != flags.contains(.speaking) else { return false }
    set(.speaking, to: speaks)
    return true
  }

  // MARK: Keyframes, coalesced over all receivers of a layer

  /// True when the encoder is to be asked right now; else `dueKeyframes` will say when.
  mutating func requestKeyframe(layer: Int, at now: Instant) -> Bool {
    guard limiters.indices.contains(layer) else { return false }
    return limiters[layer].request(at: now)
  }

  mutating func dueKeyframes(at now: Instant) -> [Int] {
    limiters.indices.filter { limiters[$0].tick(at: now) }
  }

  mutating func keyframeSent(layer: Int, at now: Instant) {
    guard limiters.indices.contains(layer) else { return }
    limiters[layer].keyframeMade(at: now)
  }

  var deadline: Instant? { limiters.reduce(nil) { soonest($0, $1.deadline) } }
}

import MusterBase
import MusterMedia
import MusterWire

/// The media that this node sends, in all channels: its audio, its video streams, and their flags
/// in its presence.
struct LocalMedia: Sendable {
  var streams: EncodedStreams
  private(set) var flags: MemberFlags = []
  private var speaking = SpeakingDetector()
  var audioTimestamps = AudioTimestamps()

  /// From boot time to the media clock, so that timestamps and sender reports do not show how long
  /// this machine has been running. One for all streams, which receivers compare.
  private let clockOffset: Duration

  /// 36 years: with it, seconds of boot time fit into the 32 bits that an NTP timestamp has.
  private static let clockRange = 1 << 60

  init(prng: inout PRNG) {
    var draws = PRNG(seed: prng.next())
    streams = EncodedStreams(seed: draws.next())
    clockOffset = .nanoseconds(draws.below(Self.clockRange))
  }

  /// What the media clock, by which everything that leaves is stamped, shows at this boot time.
  func mediaTime(_ instant: Instant) -> Instant { instant + clockOffset }

  var sendsAudio: Bool { flags.contains(.audio) }

  mutating func set(_ flag: MemberFlags, to value: Bool) {
    if value { flags.insert(flag) } else { flags.remove(flag) }
  }

  mutating func setSources(_ offers: [StreamOffer], hasAudio: Bool) {
    streams.set(offers)
    set(.audio, to: hasAudio)
    set(.sharing, to: !streams.layers(of: .screen).isEmpty)
  }

  /// Updates the speaking detector with this node's own audio level; true if its result changed.
  mutating func detectSpeech(level: UInt8, at now: Instant) -> Bool {
    let speaks = speaking.update(level: level, at: now) && sendsAudio
    guard speaks != flags.contains(.speaking) else { return false }
    set(.speaking, to: speaks)
    return true
  }
}

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

  init(prng: inout PRNG) { streams = EncodedStreams(seed: prng.next()) }

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

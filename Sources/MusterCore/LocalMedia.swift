import MusterBase
import MusterChannel
import MusterMedia
import MusterWire

/// Media that a node sends and its user can mute.
public struct OwnMedia: OptionSet, Sendable {
  public let rawValue: UInt8

  public init(rawValue: UInt8) { self.rawValue = rawValue }

  /// The microphone, or another source of audio.
  public static let audio = OwnMedia(rawValue: 1 << 0)
  /// The camera.
  public static let video = OwnMedia(rawValue: 1 << 1)
  /// The second video stream, `screen`.
  public static let share = OwnMedia(rawValue: 1 << 2)

  /// What a role permits of it, in a channel with `settings`.
  init(permittedTo role: Role, in settings: ChannelSettings) {
    self = []
    if Capability.sendAudio.isAllowed(to: role, in: settings) { insert(.audio) }
    if Capability.sendVideo.isAllowed(to: role, in: settings) { insert(.video) }
    if Capability.share.isAllowed(to: role, in: settings) { insert(.share) }
  }
}

/// The media that this node sends, in all channels: its audio, its video streams, and the flags of
/// its presence.
struct LocalMedia: Sendable {
  var streams: EncodedStreams
  private(set) var flags: MemberFlags = []
  private var speaking = SpeakingDetector()
  var audioTimestamps = AudioTimestamps()
  /// Whether the host encodes long packets of audio.
  var encodesLongPackets = false

  /// The random offset of the media clock from boot time, which hides this machine's uptime from
  /// receivers of timestamps and sender reports. All streams share the offset, for lip sync.
  private let clockOffset: Duration
  private let cameraBitrate: Int?

  /// The range of the offset: 36 years in nanoseconds. Boot time plus offset, in seconds, fits into
  /// the 32 bits of an NTP timestamp (RFC 3550 section 4).
  private static let clockRange = 1 << 60

  init(cameraBitrate: Int?, prng: inout PRNG) {
    self.cameraBitrate = cameraBitrate
    var draws = PRNG(seed: prng.next())
    streams = EncodedStreams(seed: draws.next())
    clockOffset = .nanoseconds(draws.below(Self.clockRange))
  }

  /// Converts boot time to media time, in which all outgoing timestamps are expressed.
  func mediaTime(_ instant: Instant) -> Instant { instant + clockOffset }

  var sendsAudio: Bool { flags.contains(.audio) }

  /// The media for which there is a source.
  var sources: OwnMedia {
    var found: OwnMedia = sendsAudio ? .audio : []
    if !streams.layers(of: .camera).isEmpty { found.insert(.video) }
    if !streams.layers(of: .screen).isEmpty { found.insert(.share) }
    return found
  }

  mutating func set(_ flag: MemberFlags, to value: Bool) {
    if value { flags.insert(flag) } else { flags.remove(flag) }
  }

  mutating func setSources(_ offers: [StreamOffer], hasAudio: Bool) {
    streams.set(offers, cameraBitrate: cameraBitrate)
    set(.audio, to: hasAudio)
    set(.sharing, to: !streams.layers(of: .screen).isEmpty)
  }

  /// Updates the speaking detector with this node's own audio level in -dBov; true if the flag
  /// `speaking` changed.
  mutating func detectSpeech(level: UInt8, at now: Instant) -> Bool {
    let speaks = speaking.update(level: level, at: now) && sendsAudio
    guard speaks != flags.contains(.speaking) else { return false }
    set(.speaking, to: speaks)
    return true
  }
}

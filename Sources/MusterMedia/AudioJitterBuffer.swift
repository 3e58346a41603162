import MusterBase

/// One remote speaker's Opus packets, from the network's pace to the sound card's.
///
/// The delay is reckoned, not counted in packets: when a packet is played, how long after the
/// moment at which the fastest path would have brought it. So one figure covers jitter, drifting
/// clocks (the fastest path drifts along) and pauses of the source (its timestamps pause along).
public struct AudioJitterBuffer: Sendable {
  public enum Playout: Equatable, Sendable {
    /// Nothing to hear.
    case silence
    case decode([UInt8], level: UInt8?)
    /// A lost frame, from the in-band redundancy of the packet after it (RFC 6716 2.1.7).
    case recover(from: [UInt8])
    /// A frame for the decoder to make up.
    case conceal
  }

  static let frame = Duration.milliseconds(20)
  static let frameSamples: UInt32 = 960
  /// Until enough has been seen.
  static let startDelay = Duration.milliseconds(60)
  /// A frame and a half: less would make every hiccup of a playout thread audible.
  static let minimumDelay = Duration.milliseconds(30)
  static let maximumDelay = Duration.milliseconds(400)
  /// The delay is corrected by whole frames, so it must be off by more than half of one. Being
  /// short is the worse of the two: the next late packet is missed.
  static let excess = Duration.milliseconds(20)
  static let shortage = Duration.milliseconds(10)
  /// Off by this much, corrections no longer wait for a quiet moment.
  static let urgentExcess = Duration.milliseconds(30)
  static let urgentShortage = Duration.milliseconds(20)
  /// Further behind than this, catching up frame by frame would be heard for longer than a cut.
  static let hopelessExcess = Duration.milliseconds(200)
  /// At or above this many -dBov nobody hears a frame too many or too few.
  static let quietLevel: UInt8 = 50
  /// Frames between two corrections, in quiet and in speech: 20 % faster or slower at most.
  static let quietPause = 2
  static let loudPause = 5
  /// Concealment fades to nothing in about 100 ms; after that, silence is honest.
  static let concealedFrames = 5
  /// After 1 s without packets the next one begins afresh (NetEq `decision_logic.cc`).
  static let starvedFrames = 50
  /// A step back of more than 1 s is a sender that started afresh; a hole that long is skipped.
  static let restartDistance: Int64 = 50
  /// Timestamps that jump by this much more or less than the clock are a new clock.
  static let clockJump = Duration.milliseconds(100)

  struct Packet: Sendable {
    var sequence: Int64
    var timestamp: UInt32
    /// The timestamp unwrapped, in nanoseconds.
    var mediaTime: Int64
    var payload: [UInt8]
    var level: UInt8?
  }

  public internal(set) var statistics = AudioStatistics()
  /// Of the packet last handed out, or of the frame made up in its place.
  public internal(set) var playingTimestamp: UInt32?

  /// By sequence, at most `Limits.audioPackets`.
  var packets: [Packet] = []
  var arrival = ArrivalDelay()
  var isPlaying = false
  var nextSequence: Int64?
  /// Frames made up while there was nothing at all, which later turn out lost or only late.
  var starved = 0
  var concealedInARow = 0
  var framesSinceCorrection = 0
  /// Smoothed, in nanoseconds.
  var delay: Int64 = 0

  private var sequences = SequenceUnwrapper()
  private var newest: (sequence: Int64, timestamp: UInt32, samples: Int64, at: Instant)?

  public init() {}

  /// How long packets should wait, beyond the fastest one's way.
  public var targetDelay: Duration {
    guard let percentile = arrival.percentile else { return Self.startDelay }
    return min(max(percentile + Self.frame, Self.minimumDelay), Self.maximumDelay)
  }

  /// How long they do wait; zero while nothing plays.
  public var currentDelay: Duration { isPlaying ? .nanoseconds(delay) : .zero }

  public var packetsHeld: Int { packets.count }

  /// Takes a packet as it arrives, in any order.
  public mutating func insert(
    sequence: UInt16, timestamp: UInt32, payload: [UInt8], level: UInt8?, at now: Instant
  ) {
    statistics.received &+= 1
    guard !payload.isEmpty else {
      statistics.discarded &+= 1
      return
    }
    if isFarBehind(sequence) { startAfresh() }
    let isNewest = sequences.highest.map { sequences.extended(sequence) > $0 } ?? true
    let extended = sequences.unwrap(sequence)
    let samples = unwrapped(timestamp)
    // 62,500 / 3 nanoseconds to a sample at 48 kHz.
    let mediaTime = samples &* 62_500 / 3
    if isNewest {
      if isClockJump(sequence: extended, samples: samples, at: now) {
        restartClock(at: extended)
      }
      newest = (extended, timestamp, samples, now)
    }
    arrival.add(transit: now.nanoseconds &- mediaTime, at: now)
    store(
      Packet(
        sequence: extended, timestamp: timestamp, mediaTime: mediaTime, payload: payload,
        level: level))
  }

  private mutating func store(_ packet: Packet) {
    if let nextSequence, packet.sequence < nextSequence {
      statistics.late &+= 1
      return
    }
    var index = packets.count
    while index > 0, packets[index - 1].sequence >= packet.sequence { index -= 1 }
    if index < packets.count, packets[index].sequence == packet.sequence {
      statistics.late &+= 1
      return
    }
    packets.insert(packet, at: index)
    guard packets.count > Limits.audioPackets else { return }
    packets.removeFirst()
    statistics.discarded &+= 1
    nextSequence = packets.first?.sequence
  }

  private func unwrapped(_ timestamp: UInt32) -> Int64 {
    guard let newest else { return Int64(timestamp) }
    return newest.samples &+ Int64(Int32(bitPattern: timestamp &- newest.timestamp))
  }

  /// Forwards, a hole of any length is only a loss, and the timestamps tell whether the clock goes
  /// on; so far backwards no packet is merely late.
  private func isFarBehind(_ sequence: UInt16) -> Bool {
    guard let highest = sequences.highest else { return false }
    return highest - sequences.extended(sequence) > Self.restartDistance
  }

  /// Whether the newest timestamp has nothing to do with the one before. After a burst or a loss it
  /// fits the sequence, after a pause of the source it fits the clock.
  private func isClockJump(sequence: Int64, samples: Int64, at now: Instant) -> Bool {
    guard let newest else { return false }
    let step = samples &- newest.samples
    if step == (sequence &- newest.sequence) &* Int64(Self.frameSamples) { return false }
    let media = RTPTime.distance(
      from: 0, to: UInt32(truncatingIfNeeded: step), clockRate: RTPTime.audioClockRate)
    let difference = media - (now - newest.at)
    return difference > Self.clockJump || difference < .zero - Self.clockJump
  }

  private mutating func startAfresh() {
    sequences = SequenceUnwrapper()
    newest = nil
    restartClock(at: nil)
  }

  /// What is held belongs to a time that cannot be compared with what comes now.
  private mutating func restartClock(at sequence: Int64?) {
    statistics.discarded &+= UInt64(packets.count)
    packets.removeAll(keepingCapacity: true)
    arrival.restartClock()
    stopPlaying()
    nextSequence = sequence
  }
}

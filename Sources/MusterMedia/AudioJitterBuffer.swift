import MusterBase

/// An adaptive jitter buffer for the Opus packets of one sender.
///
/// The delay is controlled as a time, not as a number of packets: the time from the moment at which
/// a packet would have arrived with the fastest transit time until its playout. This definition
/// covers network jitter, clock drift (which shifts the fastest transit time as well) and pauses of
/// the source (whose timestamps pause as well).
public struct AudioJitterBuffer: Sendable {
  /// The playout action for one frame.
  public enum Playout: Equatable, Sendable {
    /// Play silence.
    case silence
    /// Decode this packet.
    case decode([UInt8], level: UInt8?)
    /// Recover a lost frame from the in-band FEC of the next packet (RFC 6716 section 2.1.7).
    case recover(from: [UInt8])
    /// Let the decoder conceal a frame.
    case conceal
  }

  static let frame = Duration.milliseconds(20)
  static let frameSamples: UInt32 = 960
  /// The target delay until an estimate is available.
  static let startDelay = Duration.milliseconds(60)
  /// The minimum delay of one and a half frames: with less, scheduling jitter of the playout thread
  /// would be audible.
  static let minimumDelay = Duration.milliseconds(30)
  static let maximumDelay = Duration.milliseconds(400)
  /// The thresholds for a correction by one frame: a frame too much delay, or half a frame too
  /// little. The latter is worse, because the next late packet is missed.
  static let excess = Duration.milliseconds(20)
  static let shortage = Duration.milliseconds(10)
  /// The thresholds above which a correction no longer waits for a quiet frame.
  static let urgentExcess = Duration.milliseconds(30)
  static let urgentShortage = Duration.milliseconds(20)
  /// The excess above which frames are discarded, because catching up frame by frame would be
  /// audible for longer than a cut.
  static let hopelessExcess = Duration.milliseconds(200)
  /// The level in -dBov (higher is quieter) from which a skipped or inserted frame is inaudible.
  static let quietLevel: UInt8 = 50
  /// The minimum numbers of frames between two corrections, in quiet and in speech; speech is
  /// played at most 20 % faster or slower.
  static let quietPause = 2
  static let loudPause = 5
  /// The number of concealed frames, 100 ms, over which concealment fades out; silence follows.
  static let concealedFrames = 5
  /// The number of frames without packets, 1 s, after which the next packet starts a new stream
  /// (NetEq `decision_logic.cc`).
  static let starvedFrames = 50
  /// The number of 20 ms packets in 1 s: a larger step back means that the sender restarted, and a
  /// larger gap is skipped.
  static let restartDistance: Int64 = 50
  /// The deviation of a timestamp from the arrival time above which the sender's clock is
  /// considered to have restarted.
  static let clockJump = Duration.milliseconds(100)

  struct Packet: Sendable {
    var sequence: Int64
    var timestamp: UInt32
    /// The unwrapped timestamp in nanoseconds.
    var mediaTime: Int64
    var payload: [UInt8]
    var level: UInt8?
  }

  /// The counters of the packets so far, by outcome.
  public internal(set) var statistics = AudioStatistics()
  /// The RTP timestamp of the latest frame for playout, received or concealed.
  public internal(set) var playingTimestamp: UInt32?

  /// The packets in order of sequence number; at most `Limits.audioPackets`.
  var packets: [Packet] = []
  var arrival = ArrivalDelay()
  var isPlaying = false
  var nextSequence: Int64?
  /// The number of frames concealed since the last playable packet; the packets of these frames may
  /// be lost or late.
  var starved = 0
  var concealedInARow = 0
  var framesSinceCorrection = 0
  /// The smoothed delay in nanoseconds.
  var delay: Int64 = 0

  private var sequences = SequenceUnwrapper()
  private var newest: (sequence: Int64, timestamp: UInt32, samples: Int64, at: Instant)?

  /// Creates an empty buffer that plays silence.
  public init() {}

  /// The delay to aim for, in addition to the fastest transit time.
  public var targetDelay: Duration {
    guard let percentile = arrival.percentile else { return Self.startDelay }
    return min(max(percentile + Self.frame, Self.minimumDelay), Self.maximumDelay)
  }

  /// The smoothed current delay; zero before playout starts.
  public var currentDelay: Duration { isPlaying ? .nanoseconds(delay) : .zero }

  /// The number of packets in the buffer.
  public var packetsHeld: Int { packets.count }

  /// Inserts a packet, in any order of arrival; duplicates and late packets are counted and
  /// dropped.
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
    // A sample at 48 kHz lasts 62,500 / 3 nanoseconds.
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

  /// Whether a sequence number is so far back that reordering cannot explain it. Steps forward need
  /// no limit: the timestamps show whether packets were lost or the sender restarted.
  private func isFarBehind(_ sequence: UInt16) -> Bool {
    guard let highest = sequences.highest else { return false }
    return highest - sequences.extended(sequence) > Self.restartDistance
  }

  /// Whether the newest timestamp continues neither the sequence, as after a burst or a loss, nor
  /// the clock, as after a pause of the source.
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

  /// Empties the buffer after a restart of the sender's clock, because timestamps from before and
  /// after the restart cannot be compared.
  private mutating func restartClock(at sequence: Int64?) {
    statistics.discarded &+= UInt64(packets.count)
    packets.removeAll(keepingCapacity: true)
    arrival.restartClock()
    stopPlaying()
    nextSequence = sequence
  }
}

import MusterBase

/// An adaptive jitter buffer for the Opus frames of one sender.
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
    /// Decode this frame.
    case decode([UInt8], level: UInt8?)
    /// Recover a lost frame from the in-band FEC of the next one (RFC 6716 section 2.1.7).
    case recover(from: [UInt8])
    /// Let the decoder conceal a frame.
    case conceal
  }

  static let frame = Duration.milliseconds(20)
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
  /// audible for longer than a cut. It is more than a lower target alone can leave.
  static let hopelessExcess = maximumDelay
  /// The level in -dBov (higher is quieter) from which a skipped or inserted frame is inaudible.
  static let quietLevel: UInt8 = 50
  /// The minimum numbers of frames between two corrections, in quiet and in speech; speech is
  /// played at most 20 % faster or slower.
  static let quietPause = 2
  static let loudPause = 5
  /// The number of concealed frames, 100 ms, over which concealment fades out; silence follows.
  static let concealedFrames = 5
  /// The number of missing frames in a row, 1 s, after which the next packet starts a new stream
  /// (NetEq `decision_logic.cc`).
  static let starvedFrames = 50
  /// The number of frames in 1 s: a step back by more packets means that the sender restarted, and
  /// a larger gap is skipped.
  static let restartDistance: Int64 = 50
  /// The deviation of a timestamp from the arrival time above which the sender's clock is
  /// considered to have restarted.
  static let clockJump = Duration.milliseconds(100)

  /// One frame of 20 ms. A packet has one, or several in a row.
  struct Frame: Sendable {
    /// The position in the stream.
    var number: Int64
    var timestamp: UInt32
    /// The unwrapped timestamp in nanoseconds.
    var mediaTime: Int64
    var payload: [UInt8]
    var level: UInt8?
    var arrivedAt: Instant
  }

  /// The packet with the highest sequence number.
  private struct Newest: Sendable {
    var sequence: Int64
    var timestamp: UInt32
    /// The unwrapped timestamp.
    var samples: Int64
    /// The number of its first frame, and the count of its frames.
    var frame: Int64
    var count: Int
    var arrivedAt: Instant
  }

  /// The counters of the frames so far, by outcome.
  public internal(set) var statistics = AudioStatistics()
  /// The RTP timestamp of the latest frame for playout, received or concealed.
  public internal(set) var playingTimestamp: UInt32?

  /// The time from noticing a loss within which retransmissions arrive; nil if there are none.
  /// Playout waits for that long before it goes on without a frame, since audio that is late by
  /// that time is better than audio that is missing.
  public var repairTime: Duration?
  /// The least delay to aim for: what the sender's video needs in order to stay in sync.
  public var leastDelay = Duration.zero

  /// The frames in order; at most `Limits.audioFrames`.
  var frames: [Frame] = []
  var arrival = ArrivalDelay()
  var isPlaying = false
  /// The number of the next frame to play.
  var nextFrame: Int64?
  /// The number of frames concealed since the last playable one; the packets of these frames may be
  /// lost or late.
  var starved = 0
  var concealedInARow = 0
  var framesSinceCorrection = 0
  /// Whether playout waits for a retransmission.
  var awaitsRepair = false
  /// Whether waiting for a retransmission has a point: false from one that did not arrive until one
  /// that did.
  var isRepaired = true
  /// The smoothed delay in nanoseconds.
  var delay: Int64 = 0

  private var sequences = SequenceUnwrapper()
  private var newest: Newest?

  /// Creates an empty buffer that plays silence.
  public init() {}

  /// The delay to aim for, in addition to the fastest transit time.
  public var targetDelay: Duration {
    let needed = arrival.percentile.map { $0 + Self.frame } ?? Self.startDelay
    return min(max(needed, leastDelay, Self.minimumDelay), Self.maximumDelay)
  }

  /// The smoothed current delay; zero before playout starts.
  public var currentDelay: Duration { isPlaying ? .nanoseconds(delay) : .zero }

  /// The audio level in -dBov of the loudest frame in the buffer; nil if no frame has a level.
  public var loudestLevel: UInt8? { frames.lazy.compactMap(\.level).min() }

  /// The number of frames in the buffer.
  public var framesHeld: Int { frames.count }

  /// Inserts the frames of a packet, in any order of arrival; duplicates and late frames are
  /// counted and dropped.
  public mutating func insert(
    sequence: UInt16, timestamp: UInt32, frames payloads: [[UInt8]], level: UInt8?, at now: Instant
  ) {
    statistics.received &+= UInt64(payloads.count)
    guard !payloads.isEmpty, payloads.allSatisfy({ !$0.isEmpty }) else {
      statistics.discarded &+= UInt64(payloads.count)
      return
    }
    if isFarBehind(sequence) { startAfresh() }
    let isNewest = sequences.highest.map { sequences.extended(sequence) > $0 } ?? true
    let extended = sequences.unwrap(sequence)
    let samples = unwrapped(timestamp)
    let (first, isContinued) = number(of: extended, samples: samples, count: payloads.count)
    if isNewest {
      if !isContinued, isClockJump(samples: samples, at: now) {
        // The numbers before and after may be unrelated.
        skip(to: newest.map { $0.frame + Int64($0.count) } ?? first)
        restartClock(at: first)
      }
      newest = Newest(
        sequence: extended, timestamp: timestamp, samples: samples, frame: first,
        count: payloads.count, arrivedAt: now)
    } else {
      isRepaired = true
    }
    for (offset, payload) in payloads.enumerated() {
      let advance = UInt32(offset) * AudioTimestamps.samplesPerFrame
      // A sample at 48 kHz lasts 62,500 / 3 nanoseconds.
      let mediaTime = (samples &+ Int64(advance)) &* 62_500 / 3
      // The first frame has waited for the others of its packet, so its transit time counts.
      if offset == 0 { arrival.add(transit: now.nanoseconds &- mediaTime, at: now) }
      store(
        Frame(
          number: first + Int64(offset), timestamp: timestamp &+ advance, mediaTime: mediaTime,
          payload: payload, level: level, arrivedAt: now))
    }
  }

  private mutating func store(_ frame: Frame) {
    if let nextFrame, frame.number < nextFrame {
      statistics.late &+= 1
      return
    }
    var index = frames.count
    while index > 0, frames[index - 1].number >= frame.number { index -= 1 }
    if index < frames.count, frames[index].number == frame.number {
      statistics.late &+= 1
      return
    }
    frames.insert(frame, at: index)
    guard frames.count > Limits.audioFrames else { return }
    frames.removeFirst()
    statistics.discarded &+= 1
    if let first = frames.first { skip(to: first.number) }
  }

  /// Goes on with this frame; all before it that have not been played never will be.
  mutating func skip(to frame: Int64) {
    if let nextFrame, frame > nextFrame { statistics.lost &+= UInt64(frame - nextFrame) }
    nextFrame = frame
  }

  private func unwrapped(_ timestamp: UInt32) -> Int64 {
    guard let newest else { return Int64(timestamp) }
    return newest.samples &+ Int64(Int32(bitPattern: timestamp &- newest.timestamp))
  }

  /// The number of a packet's first frame, and whether its timestamp continues that of the newest
  /// packet. The number of frames in packets that are missing follows from the timestamps; where
  /// these jump, each counts as one.
  private func number(
    of sequence: Int64, samples: Int64, count: Int
  ) -> (frame: Int64, isContinued: Bool) {
    guard let newest else { return (0, true) }
    let packets = sequence - newest.sequence
    let (frames, rest) = (samples &- newest.samples).quotientAndRemainder(
      dividingBy: Int64(AudioTimestamps.samplesPerFrame))
    let between = max(abs(packets) - 1, 0)
    let first = Int64(packets > 0 ? newest.count : packets < 0 ? count : 0)
    let distance = first + between...first + between * Int64(EncodedAudio.framesPerLongPacket)
    let isContinued = rest == 0 && distance.contains(packets < 0 ? 0 - frames : frames)
    let assumed = packets < 0 ? 0 - distance.lowerBound : distance.lowerBound
    return (newest.frame + (isContinued ? frames : assumed), isContinued)
  }

  /// Whether a sequence number is so far back that reordering cannot explain it. Steps forward need
  /// no limit: the timestamps show whether packets were lost or the sender restarted.
  private func isFarBehind(_ sequence: UInt16) -> Bool {
    guard let highest = sequences.highest else { return false }
    return highest - sequences.extended(sequence) > Self.restartDistance
  }

  /// Whether the newest timestamp, which does not continue the one before, does not continue the
  /// clock either, as after a pause of the source.
  private func isClockJump(samples: Int64, at now: Instant) -> Bool {
    guard let newest else { return false }
    let media = RTPTime.distance(
      from: 0, to: UInt32(truncatingIfNeeded: samples &- newest.samples),
      clockRate: RTPTime.audioClockRate)
    let difference = media - (now - newest.arrivedAt)
    return difference > Self.clockJump || difference < .zero - Self.clockJump
  }

  private mutating func startAfresh() {
    sequences = SequenceUnwrapper()
    newest = nil
    statistics.lost &+= UInt64(frames.count)
    nextFrame = nil
    restartClock(at: nil)
  }

  /// Empties the buffer after a restart of the sender's clock, because timestamps from before and
  /// after the restart cannot be compared.
  private mutating func restartClock(at frame: Int64?) {
    statistics.discarded &+= UInt64(frames.count)
    frames.removeAll(keepingCapacity: true)
    arrival.restartClock()
    stopPlaying()
    nextFrame = frame
  }
}

import MusterBase
import MusterWire

/// The audio to one receiver: its RTP state, and the repair of what the network loses.
///
/// Lost packets are retransmitted on request. Where that is not enough, or would take too long,
/// each packet has a copy of an earlier one (RFC 2198).
public struct AudioSender: Sendable {
  /// The packets from one to the one with its copy. The packet right after it has a copy of less
  /// quality already: the in-band FEC of Opus.
  static let copyDistance = 2
  /// The rate that copies add, in kbit/s: 85 bytes every 20 ms.
  static let copyRate = 34
  /// The loss in percent from which on there are copies, and below which there are none any more:
  /// where a lost packet can be requested twice in time, and elsewhere. Retransmissions cost a
  /// tenth of the rate where a tenth is lost, and copies half of it.
  static let lossWithRetransmissions = (on: 8.0, off: 4.0)
  static let lossWithout = (on: 2.0, off: 1.0)
  /// The queueing delay above which it may be a full queue that loses the packets, which all repair
  /// would only fill further, and the time for which there are no copies after it.
  static let longestQueue = Duration.milliseconds(50)
  static let queueMemory = Duration.seconds(10)
  /// The number of packets kept for retransmission: more than those of the time for which a
  /// receiver waits for one.
  private static let history = 32

  /// The RTP state of the audio.
  public private(set) var rtp: RTPSender
  /// Whether packets have copies of earlier ones.
  private var hasCopies = false
  /// The time of the last queueing delay of more than `longestQueue`.
  private var queuedAt: Instant?
  /// Whether it is so long now.
  private var isQueueing = false
  private var recent = RingBuffer<(timestamp: UInt32, data: [UInt8])>(capacity: copyDistance)
  private var budget = RetransmissionBudget()

  /// Creates the audio of one SSRC; `firstSequence` should be random (RFC 3550 section 5.1).
  public init(ssrc: UInt32, firstSequence: UInt16) {
    rtp = RTPSender(
      payloadType: PayloadType.opus, ssrc: ssrc, firstSequence: firstSequence,
      historyCapacity: Self.history)
  }

  /// The state of the link and of its path.
  public struct Conditions: Equatable, Sendable {
    /// The smoothed round trip of the link.
    public var roundTrip: Duration
    /// The queueing delay of the last reported packets.
    public var queueDelay: Duration
    /// The rate in kbit/s that the path has for more than the audio; nil if unlimited. Copies that
    /// are sent already are not part of it.
    public var room: Int?
    /// Whether the receiver knows copies.
    public var takesCopies: Bool

    public init(roundTrip: Duration, queueDelay: Duration, room: Int?, takesCopies: Bool) {
      self.roundTrip = roundTrip
      self.queueDelay = queueDelay
      self.room = room
      self.takesCopies = takesCopies
    }

    /// Whether it may be a full queue that loses the packets.
    fileprivate var isQueueing: Bool { queueDelay > AudioSender.longestQueue }

    /// The loss from which on, and below which no more, there are copies.
    fileprivate var loss: (on: Double, off: Double) {
      let twoRequests =
        NackList.reorderedTime + NackList.interval(roundTrip: roundTrip) + roundTrip
      return twoRequests <= AudioReceiver.patience
        ? AudioSender.lossWithRetransmissions : AudioSender.lossWithout
    }
  }

  /// Adapts the repair to the conditions, and to the loss that the receiver reports.
  public mutating func adapt(to conditions: Conditions, at now: Instant) {
    isQueueing = conditions.isQueueing
    if isQueueing { queuedAt = now }
    let isAfterQueue = queuedAt.map { now - $0 < Self.queueMemory } ?? false
    let room = conditions.room ?? .max
    hasCopies =
      conditions.takesCopies && !isAfterQueue
      && (hasCopies
        ? rtp.lossPercent >= conditions.loss.off && room >= Self.copyRate
        : rtp.lossPercent >= conditions.loss.on && room >= 2 * Self.copyRate)
  }

  /// Returns the next packet, with a copy of an earlier one if there are copies and the source did
  /// not pause in between.
  public mutating func send(
    _ audio: EncodedAudio, timestamp: UInt32, at now: Instant
  ) -> (header: RTPHeader, payload: ArraySlice<UInt8>) {
    let payload = payload(of: audio, timestamp: timestamp)
    recent.append((timestamp, audio.data))
    budget.sent(payload?.count ?? audio.data.count, at: now)
    let sent = payload ?? audio.data[...]
    let header = rtp.send(
      sent, marker: false, timestamp: timestamp, audioLevel: audio.level,
      payloadType: payload == nil ? nil : PayloadType.redundantAudio, at: now)
    return (header, sent)
  }

  /// The payload with a copy; nil without one.
  private func payload(of audio: EncodedAudio, timestamp: UInt32) -> ArraySlice<UInt8>? {
    let offset = UInt32(Self.copyDistance) * AudioTimestamps.samplesPerPacket
    guard hasCopies, recent.isFull, let earlier = recent.first,
      timestamp &- earlier.timestamp == offset,
      earlier.data.count <= RedundantAudio.largestCopy
    else { return nil }
    let copy = RedundantAudio.Copy(timestampOffset: UInt16(offset), payload: earlier.data[...])
    return RedundantAudio(copies: [copy], primary: audio.data[...]).encoded()[...]
  }

  /// Returns the packets to retransmit in response to a NACK; none while there is a queue.
  public mutating func retransmissions(
    of sequences: [UInt16], roundTrip: Duration, at now: Instant
  ) -> [(header: RTPHeader, payload: ArraySlice<UInt8>)] {
    guard !isQueueing else { return [] }
    return rtp.retransmissions(of: sequences, roundTrip: roundTrip, within: &budget, at: now)
  }

  /// Handles a report block; ignores blocks about other streams.
  public mutating func receive(_ block: ReportBlock, at now: Instant) {
    rtp.receive(block, at: now)
  }
}

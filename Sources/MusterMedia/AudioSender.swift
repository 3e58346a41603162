import MusterBase
import MusterWire

/// The audio to one receiver: its RTP state, and the repair of what the network loses.
///
/// Lost packets are retransmitted on request. Where that is not enough, or would take too long,
/// each packet has a copy of an earlier one (RFC 2198). On a narrow path, packets are long.
public struct AudioSender: Sendable {
  /// The packets from one to the one with its copy. The packet right after it has a copy of less
  /// quality already: the in-band FEC of Opus.
  static let copyDistance = 2
  /// The rate that copies add, in kbit/s: 85 bytes every 20 ms.
  static let copyRate = 34
  /// The loss in percent from which on there are copies, and below which there are none any more:
  /// where a lost packet can be requested twice in time, once, and not at all. Retransmissions
  /// cost a tenth of the rate where a tenth is lost, and copies half of it. The loss of a single
  /// packet is reported as 2 %.
  static let lossWithTwoRequests = (on: 8.0, off: 4.0)
  static let lossWithOneRequest = (on: 2.0, off: 1.0)
  static let lossWithoutRequests = (on: 0.5, off: 0.25)
  /// The queueing delay above which it may be a full queue that loses the packets, which all repair
  /// would only fill further, and the time for which there are no copies after it.
  static let longestQueue = Duration.milliseconds(50)
  static let queueMemory = Duration.seconds(10)
  /// The estimate in kbit/s below which packets are long, and from which they no longer are:
  /// packets of one frame take 63 kbit/s, long ones 26.
  static let narrow = (on: 80, off: 100)
  /// The number of packets kept for retransmission: more than those of the time for which a
  /// receiver waits for one.
  private static let history = 32

  /// The RTP state of the audio.
  public private(set) var rtp: RTPSender
  /// Whether packets have copies of earlier ones.
  private var hasCopies = false
  /// Whether packets are to be long, and whether they are: that changes after a long packet, so
  /// that each frame is sent once.
  private var wantsLongPackets = false
  private var sendsLongPackets = false
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
    /// The estimate of the path in kbit/s; nil if there is none.
    public var estimate: Int?
    /// The rate in kbit/s that the path has for more than the audio; nil if unlimited. Copies that
    /// are sent already are not part of it.
    public var spareRate: Int?
    /// Whether the receiver knows copies, and long packets.
    public var takesCopies: Bool
    public var takesLongPackets: Bool
    /// Whether packets are to be long however wide the path is, since fewer packets are less work.
    public var savesPackets: Bool

    public init(
      roundTrip: Duration, queueDelay: Duration, estimate: Int?, spareRate: Int?, takesCopies: Bool,
      takesLongPackets: Bool, savesPackets: Bool = false
    ) {
      self.roundTrip = roundTrip
      self.queueDelay = queueDelay
      self.estimate = estimate
      self.spareRate = spareRate
      self.takesCopies = takesCopies
      self.takesLongPackets = takesLongPackets
      self.savesPackets = savesPackets
    }

    /// Whether it may be a full queue that loses the packets.
    fileprivate var isQueueing: Bool { queueDelay > AudioSender.longestQueue }

    /// The loss from which on, and below which no more, there are copies.
    fileprivate var loss: (on: Double, off: Double) {
      if AudioReceiver.timeOfTwoRequests(roundTrip: roundTrip) <= AudioReceiver.patience {
        return AudioSender.lossWithTwoRequests
      }
      return AudioReceiver.repairTime(roundTrip: roundTrip) == nil
        ? AudioSender.lossWithoutRequests : AudioSender.lossWithOneRequest
    }
  }

  /// Adapts the repair to the conditions, and to the loss that the receiver reports.
  public mutating func adapt(to conditions: Conditions, at now: Instant) {
    isQueueing = conditions.isQueueing
    if isQueueing { queuedAt = now }
    let isAfterQueue = queuedAt.map { now - $0 < Self.queueMemory } ?? false
    let spareRate = conditions.spareRate ?? .max
    let narrow = wantsLongPackets ? Self.narrow.off : Self.narrow.on
    wantsLongPackets =
      conditions.takesLongPackets
      && (conditions.savesPackets || (conditions.estimate ?? .max) < narrow)
    hasCopies =
      conditions.takesCopies && !isAfterQueue && !wantsLongPackets
      && (hasCopies
        ? rtp.lossPercent >= conditions.loss.off && spareRate >= Self.copyRate
        : rtp.lossPercent >= conditions.loss.on && spareRate >= 2 * Self.copyRate)
  }

  /// Whether long packets are to be encoded.
  public var needsLongPackets: Bool { wantsLongPackets || sendsLongPackets }

  /// Returns the next packet, with a copy of an earlier one if there are copies and the source did
  /// not pause in between; nil if the frame goes out in a long packet.
  public mutating func send(
    _ audio: EncodedAudio, timestamp: UInt32, at now: Instant
  ) -> (header: RTPHeader, payload: ArraySlice<UInt8>)? {
    defer { if audio.longPacket != nil { sendsLongPackets = wantsLongPackets } }
    if sendsLongPackets {
      return audio.longPacket.map { send($0, endingWith: timestamp, at: now) }
    }
    let payload = payload(of: audio, timestamp: timestamp)
    recent.append((timestamp, audio.data))
    return send(
      payload ?? audio.data[...], level: audio.level, timestamp: timestamp,
      payloadType: payload == nil ? PayloadType.opus : PayloadType.redundantAudio, at: now)
  }

  /// Returns a long packet, whose last frame has this timestamp.
  private mutating func send(
    _ packet: EncodedAudio.LongPacket, endingWith timestamp: UInt32, at now: Instant
  ) -> (header: RTPHeader, payload: ArraySlice<UInt8>) {
    let earlier = UInt32(EncodedAudio.framesPerLongPacket - 1)
    return send(
      packet.data[...], level: packet.level,
      timestamp: timestamp &- earlier * AudioTimestamps.samplesPerFrame,
      payloadType: PayloadType.opus, at: now)
  }

  private mutating func send(
    _ payload: ArraySlice<UInt8>, level: UInt8, timestamp: UInt32, payloadType: UInt8,
    at now: Instant
  ) -> (header: RTPHeader, payload: ArraySlice<UInt8>) {
    budget.sent(payload.count, at: now)
    let header = rtp.send(
      payload, marker: false, timestamp: timestamp, audioLevel: level, payloadType: payloadType,
      at: now)
    return (header, payload)
  }

  /// The payload with a copy; nil without one.
  private func payload(of audio: EncodedAudio, timestamp: UInt32) -> ArraySlice<UInt8>? {
    let offset = UInt32(Self.copyDistance) * AudioTimestamps.samplesPerFrame
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
  @discardableResult
  public mutating func receive(
    _ block: ReportBlock, at now: Instant
  ) -> (expected: Int, lost: Int)? {
    rtp.receive(block, at: now)
  }
}

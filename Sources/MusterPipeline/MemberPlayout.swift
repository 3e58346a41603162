import MusterBase
import MusterCodecs
import MusterCore
import MusterMedia

/// A decoded frame of 20 ms of one member's audio.
package struct DecodedAudio: Sendable {
  package var pcm: [Int16]
  /// The RTP timestamp of the first sample, at 48 kHz.
  package var timestamp: UInt32
  /// The capture time on the sender's media clock; nil before the first RTCP sender report.
  package var capturedAt: Instant?

  /// Decoded samples; `capturedAt` is nil before the first sender report.
  package init(pcm: [Int16], timestamp: UInt32, capturedAt: Instant?) {
    self.pcm = pcm
    self.timestamp = timestamp
    self.capturedAt = capturedAt
  }
}

/// One member's jitter buffer and decoder.
package struct MemberPlayout {
  /// The decoder; nil while the member's frames are not decoded. A new one begins without the state
  /// of frames long past.
  private var decoder: OpusDecoder?
  private var buffer = AudioJitterBuffer()
  /// The RTP timestamp and capture time of the latest packet whose capture time is known.
  private var anchor: (timestamp: UInt32, capturedAt: Instant)?
  /// The RTP timestamp of the frame that is played, whether or not it is decoded.
  private(set) var playingTimestamp: UInt32?
  /// Whether the last frame was mixed.
  private var isMixed = false
  /// The average by which the member's packets claim to be louder than they are, in dB.
  private var overstatement = 0.0

  /// The number of frames over which the overstatement is averaged, about 1 s.
  private static let averaged = 50.0
  /// The overstatement in dB that is taken for the codec's, and for that of long packets, whose
  /// level is that of their loudest frame.
  private static let tolerance = 10.0
  /// The level in -dBov of the quietest frames that are compared. Of noise, the codec may leave
  /// much less than there was.
  private static let quietest: UInt8 = 50

  package init() {}

  /// The jitter buffer's packet statistics.
  package var statistics: AudioStatistics { buffer.statistics }

  /// The level in -dBov of the loudest frame that waits for playout, less what the member
  /// overstates, so that false levels do not keep others from being heard; nil without one.
  package var loudestLevel: UInt8? {
    let excess = min(max(overstatement - Self.tolerance, 0), 127)
    return buffer.loudestLevel.map { UInt8(min(Double($0) + excess, 127)) }
  }

  package mutating func insert(_ packet: ReceivedAudio, at now: Instant) {
    if let capturedAt = packet.capturedAt { anchor = (packet.timestamp, capturedAt) }
    buffer.repairTime = packet.repairTime
    buffer.leastDelay = packet.leastDelay
    buffer.insert(
      sequence: packet.sequence, timestamp: packet.timestamp,
      frames: OpusPacket.frames(of: packet.payload, limit: EncodedAudio.framesPerLongPacket),
      level: packet.level, at: now)
  }

  /// The audio of the next 20 ms.
  package struct Output {
    /// The decoded frames: usually one, none while the member is silent, two while the buffer
    /// catches up.
    package var decoded: [DecodedAudio] = []
    /// The samples to mix; nil if there are none.
    package var mixed: [Int16]?
  }

  /// Advances by 20 ms. If the audio is neither mixed nor recorded, it is not decoded, except for
  /// the frame in which it fades out.
  package mutating func next(
    at now: Instant, isMixed: Bool, isRecorded: Bool
  ) throws(CodecError) -> Output {
    let wasMixed = self.isMixed
    self.isMixed = isMixed
    let steps = buffer.next(at: now)
    let isDecoded = isMixed || wasMixed || isRecorded
    if !isDecoded {
      decoder = nil
    } else if decoder == nil {
      decoder = try OpusDecoder()
    }
    var output = Output()
    for (position, step) in steps.enumerated() where step != .silence {
      let timestamp = timestamp(of: step, before: steps.count - 1 - position)
      playingTimestamp = timestamp
      guard let pcm = decoder.map({ Self.decode(step, by: $0) }) else { continue }
      if case .decode(_, let level?) = step { compare(level, with: pcm) }
      output.decoded.append(
        DecodedAudio(pcm: pcm, timestamp: timestamp, capturedAt: captureTime(of: timestamp)))
    }
    guard isMixed || wasMixed, !output.decoded.isEmpty else { return output }
    let pcm = Self.joined(output.decoded.map(\.pcm))
    output.mixed = isMixed == wasMixed ? pcm : Self.faded(pcm, isIn: isMixed)
    return output
  }

  private mutating func compare(_ claimed: UInt8, with pcm: [Int16]) {
    guard claimed <= Self.quietest else { return }
    let measured = AudioLevel.dBov(pcm)
    overstatement += (Double(measured) - Double(claimed) - overstatement) / Self.averaged
  }

  private static func decode(
    _ step: AudioJitterBuffer.Playout, by decoder: OpusDecoder
  ) -> [Int16] {
    switch step {
    // A packet that does not decode is concealed like a lost one.
    case .decode(let packet, _): (try? decoder.decode(packet)) ?? decoder.conceal()
    case .recover(let following): (try? decoder.recover(from: following)) ?? decoder.conceal()
    case .conceal, .silence: decoder.conceal()
    }
  }

  /// The RTP timestamp of a playout step. The buffer reports only the timestamp of the last packet
  /// taken, which is `later` packets after this one.
  private func timestamp(of step: AudioJitterBuffer.Playout, before later: Int) -> UInt32 {
    if case .decode = step, let timestamp = buffer.playingTimestamp {
      return timestamp &- UInt32(later * AudioFormat.samplesPerFrame)
    }
    let following = playingTimestamp ?? buffer.playingTimestamp ?? 0
    return following &+ UInt32(AudioFormat.samplesPerFrame)
  }

  private func captureTime(of timestamp: UInt32) -> Instant? {
    guard let anchor else { return nil }
    let samples = Int64(Int32(bitPattern: timestamp &- anchor.timestamp))
    return anchor.capturedAt + .nanoseconds(samples * 1_000_000_000 / 48_000)
  }

  /// Joins the frames of one playout step into one: a cross-fade of two while the buffer catches
  /// up.
  private static func joined(_ frames: [[Int16]]) -> [Int16] {
    guard let last = frames.last, frames.count > 1, let first = frames.first,
      first.count == last.count
    else { return frames.last ?? [] }
    let count = Int32(last.count)
    return last.indices.map { index in
      let weight = Int32(index)
      return Int16((Int32(first[index]) * (count - weight) + Int32(last[index]) * weight) / count)
    }
  }

  /// A frame that begins or ends in silence, so that a member comes and goes without a click.
  private static func faded(_ pcm: [Int16], isIn: Bool) -> [Int16] {
    let count = Int32(pcm.count)
    return pcm.indices.map { index in
      let weight = isIn ? Int32(index) : count - 1 - Int32(index)
      return Int16(Int32(pcm[index]) * weight / count)
    }
  }
}

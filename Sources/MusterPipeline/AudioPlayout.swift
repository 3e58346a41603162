import MusterBase
import MusterCodecs
import MusterCore
import MusterDevices
import MusterMedia

/// The thread that mixes and plays the audio of all members.
///
/// Each member has a jitter buffer and a decoder. Every 20 ms, paced by the sink, one frame of each
/// member is mixed and written. A loudspeaker is open only while there are members to play.
package final class AudioPlayout: Sendable {
  private enum Input: Sendable {
    case packet(ReceivedAudio, LinkID, at: Instant)
    case ended(LinkID)
  }

  /// The playout state of one member, reported every 200 ms (`framesPerReport`).
  package struct Report: Sendable {
    package var link: LinkID
    /// The RTP timestamp, at 48 kHz, of the audio that leaves the loudspeaker at `playedAt`.
    package var timestamp: UInt32
    package var playedAt: Instant
    package var statistics: AudioStatistics
  }

  /// The maximum number of queued packets: two seconds for 17 members at 50 packets per second.
  private static let inputCapacity = 2048
  private static let framesPerReport = 10

  private let specification: String
  /// The sink if it is a file or `none`; nil for a device, which is opened when needed.
  private let held: (any AudioSink)?
  private let echo: EchoControl?
  private let inputs = FrameQueue<Input, LinkID>(encoded: 1, independent: inputCapacity) { input in
    switch input {
    case .packet(_, let link, _): .independent(link)
    case .ended(let link): .control(link)
    }
  }
  private let record: @Sendable (DecodedAudio, LinkID) -> Void
  private let ended: @Sendable (LinkID) -> Void
  private let report: @Sendable ([Report]) -> Void
  private let failed: @Sendable (MusterError) -> Void

  /// Opens the sink to check that it works; a loudspeaker is closed again until it is needed.
  package init(
    _ specification: String, echo: EchoControl?,
    record: @escaping @Sendable (DecodedAudio, LinkID) -> Void,
    ended: @escaping @Sendable (LinkID) -> Void,
    report: @escaping @Sendable ([Report]) -> Void,
    failed: @escaping @Sendable (MusterError) -> Void
  ) throws(DeviceError) {
    self.specification = specification
    let sink = try AudioSinks.open(specification)
    if AudioSinks.isDevice(specification) { sink.close() }
    held = AudioSinks.isDevice(specification) ? nil : sink
    self.echo = echo
    self.record = record
    self.ended = ended
    self.report = report
    self.failed = failed
  }

  package func play(_ packet: ReceivedAudio, from link: LinkID, at now: Instant) {
    inputs.add(.packet(packet, link, at: now))
  }

  package func end(_ link: LinkID) { inputs.add(.ended(link)) }

  package func start() -> WorkerThread { WorkerThread("muster-playout") { self.run() } }

  package func stop() { inputs.close() }

  /// The fill level of the input queue, which holds Opus packets and end-of-media markers.
  package var queueLevel: QueueLevel { inputs.level }

  private func run() {
    var speakers = PeerTable<LinkID, Speaker>()
    var frames = 0
    let mixer = AudioMixer()
    var sink = held
    defer { sink?.close() }
    do {
      while !inputs.isClosed {
        if speakers.isEmpty, held == nil {
          sink?.close()
          sink = nil
        }
        // Without members to play there is nothing to pace, so the thread sleeps until input
        // arrives.
        let arrived = speakers.isEmpty ? inputs.takeAll() ?? [] : inputs.takeWithoutWaiting()
        for input in arrived { try take(input, &speakers) }
        let now = BootClock.now
        var mixed: [[Int16]] = []
        for index in 0..<speakers.count {
          let decoded = try speakers[at: index].next(at: now)
          for audio in decoded { record(audio, speakers.keys[index]) }
          mixed.append(Speaker.joined(decoded.map(\.pcm)))
        }
        guard !speakers.isEmpty else { continue }
        let pcm = mixer.mix(mixed)
        let output = try sink ?? AudioSinks.open(specification)
        sink = output
        echo?.play(pcm)
        try output.write(pcm)
        frames += 1
        if frames % Self.framesPerReport == 0 { report(reports(speakers, output.delay)) }
      }
    } catch let error as DeviceError {
      failed(MusterError(error.what, hint: error.hint))
    } catch {
      failed(MusterError("cannot play audio (\(error))", hint: "try another --speaker"))
    }
  }

  private func take(_ input: Input, _ speakers: inout PeerTable<LinkID, Speaker>) throws {
    switch input {
    case .packet(let packet, let link, let arrival):
      if speakers[link] == nil { speakers[link] = Speaker(decoder: try OpusDecoder()) }
      _ = speakers.update(link) { $0.insert(packet, at: arrival) }
    case .ended(let link):
      speakers[link] = nil
      ended(link)
    }
  }

  private func reports(
    _ speakers: PeerTable<LinkID, Speaker>, _ delay: Duration
  ) -> [Report] {
    let playedAt = BootClock.now + delay
    return speakers.compactMap { link, speaker in
      guard let timestamp = speaker.playingTimestamp else { return nil }
      return Report(
        link: link, timestamp: timestamp, playedAt: playedAt, statistics: speaker.statistics)
    }
  }
}

/// A decoded frame of 20 ms of one member's audio.
package struct DecodedAudio: Sendable {
  package var pcm: [Int16]
  /// The RTP timestamp of the first sample, at 48 kHz.
  package var timestamp: UInt32
  /// The capture time on the sender's media clock; nil before the first RTCP sender report.
  package var capturedAt: Instant?
}

/// One member's jitter buffer and decoder.
package struct Speaker {
  private let decoder: OpusDecoder
  private var buffer = AudioJitterBuffer()
  /// The RTP timestamp and capture time of the latest packet whose capture time is known.
  private var anchor: (timestamp: UInt32, capturedAt: Instant)?
  private(set) var playingTimestamp: UInt32?

  package init(decoder: OpusDecoder) { self.decoder = decoder }

  /// The jitter buffer's packet statistics.
  package var statistics: AudioStatistics { buffer.statistics }

  package mutating func insert(_ packet: ReceivedAudio, at now: Instant) {
    if let capturedAt = packet.capturedAt { anchor = (packet.timestamp, capturedAt) }
    buffer.repairTime = packet.repairTime
    buffer.insert(
      sequence: packet.sequence, timestamp: packet.timestamp,
      frames: OpusPacket.frames(of: packet.payload, limit: EncodedAudio.framesPerLongPacket),
      level: packet.level, at: now)
  }

  /// The frames to play in the next 20 ms: usually one, none while the member is silent, two while
  /// the buffer catches up.
  package mutating func next(at now: Instant) throws -> [DecodedAudio] {
    var frames: [DecodedAudio] = []
    let steps = buffer.next(at: now)
    for (position, step) in steps.enumerated() {
      guard let pcm = try decode(step) else { continue }
      let timestamp = timestamp(of: step, before: steps.count - 1 - position)
      playingTimestamp = timestamp
      frames.append(
        DecodedAudio(pcm: pcm, timestamp: timestamp, capturedAt: captureTime(of: timestamp)))
    }
    return frames
  }

  private func decode(_ step: AudioJitterBuffer.Playout) throws -> [Int16]? {
    switch step {
    case .silence: nil
    // A packet that does not decode is concealed like a lost one.
    case .decode(let packet, _): (try? decoder.decode(packet)) ?? decoder.conceal()
    case .recover(let following): (try? decoder.recover(from: following)) ?? decoder.conceal()
    case .conceal: decoder.conceal()
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

  /// Joins the frames of one playout step into one: silence if there are none, a cross-fade of two
  /// while the buffer catches up.
  package static func joined(_ frames: [[Int16]]) -> [Int16] {
    guard let last = frames.last else {
      return [Int16](repeating: 0, count: AudioFormat.samplesPerFrame)
    }
    guard frames.count > 1, let first = frames.first, first.count == last.count else { return last }
    let count = Int32(last.count)
    return last.indices.map { index in
      let weight = Int32(index)
      return Int16((Int32(first[index]) * (count - weight) + Int32(last[index]) * weight) / count)
    }
  }
}

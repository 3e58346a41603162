import MusterBase
import MusterCodecs
import MusterCore
import MusterDevices
import MusterMedia
import MusterSystem

/// The thread that mixes and plays the audio of all members.
///
/// Each member has a jitter buffer. Every 20 ms, paced by the sink, one frame of the loudest
/// members is decoded, mixed and written; where audio is recorded, that of all members is decoded.
/// A loudspeaker is open only while there are members to play.
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
  private static let silence = [Int16](repeating: 0, count: AudioFormat.samplesPerFrame)

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
  private let record: (@Sendable (DecodedAudio, LinkID) -> Void)?
  private let ended: @Sendable (LinkID) -> Void
  private let report: @Sendable ([Report]) -> Void
  private let failed: @Sendable (MusterError) -> Void

  /// Opens the sink to check that it works; a loudspeaker is closed again until it is needed. If
  /// `record` is nil, nothing is recorded.
  package static func open(
    _ specification: String, echo: EchoControl?,
    record: (@Sendable (DecodedAudio, LinkID) -> Void)?,
    ended: @escaping @Sendable (LinkID) -> Void,
    report: @escaping @Sendable ([Report]) -> Void,
    failed: @escaping @Sendable (MusterError) -> Void
  ) async throws(DeviceError) -> AudioPlayout {
    let held = try await DeviceOpening.onThread { _ throws(DeviceError) -> (any AudioSink)? in
      let sink = try AudioSinks.open(specification)
      guard AudioSinks.isDevice(specification) else { return sink }
      sink.close()
      return nil
    }
    return AudioPlayout(
      specification, held, echo: echo, record: record, ended: ended, report: report, failed: failed)
  }

  private init(
    _ specification: String, _ held: (any AudioSink)?, echo: EchoControl?,
    record: (@Sendable (DecodedAudio, LinkID) -> Void)?,
    ended: @escaping @Sendable (LinkID) -> Void,
    report: @escaping @Sendable ([Report]) -> Void,
    failed: @escaping @Sendable (MusterError) -> Void
  ) {
    self.specification = specification
    self.held = held
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
    var members = PeerTable<LinkID, MemberPlayout>()
    var selection = AudioSelection<LinkID>()
    var frames = 0
    let mixer = AudioMixer()
    var sink = held
    defer { sink?.close() }
    do {
      while !inputs.isClosed {
        if members.isEmpty, held == nil {
          sink?.close()
          sink = nil
        }
        // Without members to play there is nothing to pace, so the thread sleeps until input
        // arrives.
        let arrived = members.isEmpty ? inputs.takeAll() ?? [] : inputs.takeWithoutWaiting()
        for input in arrived { take(input, &members) }
        guard !members.isEmpty else { continue }
        let now = BootClock.now
        let isMixed = selection.update(members.map { ($0.key, $0.value.loudestLevel) })
        var mixed: [[Int16]] = []
        for index in 0..<members.count {
          let output = try members[at: index].next(
            at: now, isMixed: isMixed[index], isRecorded: record != nil)
          for audio in output.decoded { record?(audio, members.keys[index]) }
          if let pcm = output.mixed { mixed.append(pcm) }
        }
        let pcm = mixed.isEmpty ? Self.silence : mixer.mix(mixed)
        let output = try sink ?? AudioSinks.open(specification)
        sink = output
        echo?.play(pcm)
        try output.write(pcm)
        frames += 1
        if frames % Self.framesPerReport == 0 { report(reports(members, output.delay)) }
      }
    } catch let error as DeviceError {
      failed(MusterError(error.what, hint: error.hint))
    } catch {
      failed(MusterError("cannot play audio (\(error))", hint: "try another --speaker"))
    }
  }

  private func take(_ input: Input, _ members: inout PeerTable<LinkID, MemberPlayout>) {
    switch input {
    case .packet(let packet, let link, let arrival):
      if members[link] == nil { members[link] = MemberPlayout() }
      _ = members.update(link) { $0.insert(packet, at: arrival) }
    case .ended(let link):
      members[link] = nil
      ended(link)
    }
  }

  private func reports(
    _ members: PeerTable<LinkID, MemberPlayout>, _ delay: Duration
  ) -> [Report] {
    let playedAt = BootClock.now + delay
    return members.compactMap { link, member in
      guard let timestamp = member.playingTimestamp else { return nil }
      return Report(
        link: link, timestamp: timestamp, playedAt: playedAt, statistics: member.statistics)
    }
  }
}

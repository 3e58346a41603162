import MusterBase
import MusterCodecs
import MusterCore
import MusterDevices
import MusterMedia
import MusterSystem

/// The thread that mixes and plays the audio of all members, to a sink that can be replaced while
/// it runs.
///
/// Each member has a jitter buffer. Every 20 ms, paced by the sink, one frame of the loudest
/// members is decoded, mixed and written; where audio is recorded, that of all members is decoded.
/// A loudspeaker is open only while there are members to play. While there is no sink the audio is
/// paced and discarded, so that recordings and figures go on.
package final class Playout: Sendable {
  private enum Input: Sendable {
    case packet(ReceivedAudio, LinkID, at: Instant)
    case ended(LinkID)
    /// Another sink is to be used.
    case sinkChanged
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

  /// How long members wait for a sink that is being opened, before their audio is discarded.
  private static let patience = Duration.milliseconds(500)

  private let slot: DeviceSlot<any AudioSink>
  private let echo: EchoControl
  private let inputs = FrameQueue<Input, LinkID?>(encoded: 1, independent: inputCapacity) { input in
    switch input {
    case .packet(_, let link, _): .independent(link)
    case .ended(let link): .control(link)
    case .sinkChanged: .control(nil)
    }
  }
  /// Ends the pace of audio that goes nowhere.
  private let cancellation = Cancellation()
  private let record: (@Sendable (DecodedAudio, LinkID) -> Void)?
  private let ended: @Sendable (LinkID) -> Void
  private let report: @Sendable ([Report]) -> Void
  private let failed: @Sendable (MusterError) -> Void

  /// A playout without a sink. `echo` is shared with the microphone; if `record` is nil, nothing is
  /// recorded.
  package init(
    echo: EchoControl, record: (@Sendable (DecodedAudio, LinkID) -> Void)?,
    ended: @escaping @Sendable (LinkID) -> Void,
    report: @escaping @Sendable ([Report]) -> Void,
    failed: @escaping @Sendable (MusterError) -> Void
  ) {
    self.echo = echo
    self.record = record
    self.ended = ended
    self.report = report
    self.failed = failed
    let inputs = inputs
    slot = DeviceSlot { report, _ in
      inputs.add(.sinkChanged)
      if let error = report.error { failed(MusterError(error)) }
    }
  }

  /// Opens the first sink, to check that it works; a loudspeaker is closed again until it is
  /// needed.
  package func open(_ output: AudioOutput) async throws(DeviceError) {
    try await slot.open(output)
  }

  /// Replaces the sink; nil for none. The former one goes on until the new one has been opened.
  package func replace(with output: AudioOutput?) { slot.replace(with: output) }

  package func play(_ packet: ReceivedAudio, from link: LinkID, at now: Instant) {
    inputs.add(.packet(packet, link, at: now))
  }

  package func end(_ link: LinkID) { inputs.add(.ended(link)) }

  /// Starts the thread; call once.
  package func start() -> WorkerThread { WorkerThread("muster-playout") { self.run() } }

  /// Ends the thread and closes the sink.
  package func stop() {
    slot.stop()
    cancellation.cancel()
    inputs.close()
  }

  /// The fill level of the input queue, which holds Opus packets and end-of-media markers.
  package var queueLevel: QueueLevel { inputs.level }

  private func run() {
    var members = PeerTable<LinkID, MemberPlayout>()
    var selection = AudioSelection<LinkID>()
    var output = Output()
    let mixer = AudioMixer()
    do {
      while !inputs.isClosed {
        setWanted(!members.isEmpty, &output)
        // Without members to play there is nothing to pace, so the thread sleeps until input
        // arrives.
        let arrived = members.isEmpty ? inputs.takeAll() ?? [] : inputs.takeWithoutWaiting()
        for input in arrived { take(input, &members) }
        guard !members.isEmpty else {
          // Lets go of a sink that has been replaced.
          _ = next(&output, until: .zero)
          continue
        }
        setWanted(true, &output)
        let now = BootClock.now
        let isMixed = selection.update(members.map { ($0.key, $0.value.loudestLevel) })
        var mixed: [[Int16]] = []
        for index in 0..<members.count {
          let output = try members[at: index].next(
            at: now, isMixed: isMixed[index], isRecorded: record != nil)
          for audio in output.decoded { record?(audio, members.keys[index]) }
          if let pcm = output.mixed { mixed.append(pcm) }
        }
        let delay = write(mixed.isEmpty ? Self.silence : mixer.mix(mixed), &output)
        output.frames += 1
        if output.frames % Self.framesPerReport == 0 { report(reports(members, delay)) }
      }
    } catch {
      failed(MusterError("cannot play audio (\(error))", hint: "try another --speaker"))
      stop()
    }
    slot.leave(&output.turn)
    echo.speaker(isLive: false)
  }

  /// Where the audio goes, as the thread sees it.
  private struct Output {
    var turn: DeviceSlot<any AudioSink>.Turn?
    var isWanted = false
    /// Until when the thread waits for a sink.
    var waitsUntil = Instant.zero
    /// Takes the audio while there is no sink.
    var nowhere: PacedSink?
    var frames = 0
  }

  private func setWanted(_ isWanted: Bool, _ output: inout Output) {
    guard isWanted != output.isWanted else { return }
    output.isWanted = isWanted
    output.waitsUntil = BootClock.now + Self.patience
    slot.want(isWanted)
    // Closes a loudspeaker at once, not when the next member comes.
    if !isWanted { _ = next(&output, until: .zero) }
  }

  /// The sink to write to, waiting for it until an instant; nil if there is none.
  private func next(_ output: inout Output, until limit: Instant) -> (any AudioSink)? {
    guard slot.next(&output.turn, until: limit) else {
      echo.speaker(isLive: false)
      return nil
    }
    return output.turn?.device
  }

  /// Writes one frame and waits until the next one is due; returns the time until it is heard.
  private func write(_ pcm: [Int16], _ output: inout Output) -> Duration {
    if let sink = next(&output, until: output.waitsUntil) {
      if output.turn?.isNew == true { echo.speaker(isLive: sink.isLive) }
      output.nowhere = nil
      echo.play(pcm)
      do throws(DeviceError) {
        try sink.write(pcm)
        slot.works(&output.turn)
        return sink.delay
      } catch { slot.failed(output.turn, error) }
    }
    let nowhere = output.nowhere ?? PacedSink(cancellation: cancellation)
    output.nowhere = nowhere
    try? nowhere.write(pcm)
    return .zero
  }

  private func take(_ input: Input, _ members: inout PeerTable<LinkID, MemberPlayout>) {
    switch input {
    case .packet(let packet, let link, let arrival):
      if members[link] == nil { members[link] = MemberPlayout() }
      _ = members.update(link) { $0.insert(packet, at: arrival) }
    case .ended(let link):
      members[link] = nil
      ended(link)
    case .sinkChanged: break
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

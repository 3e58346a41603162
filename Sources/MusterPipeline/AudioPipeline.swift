import MusterBase
import MusterCodecs
import MusterDevices
import MusterSystem

/// The thread that reads this node's audio source and encodes the frames.
///
/// A microphone is open only while audio is to be sent.
package final class AudioPipeline: Sendable {
  private struct Controls {
    var isWanted = false
    var encodesLongPackets = false
    var isStopped = false
    /// The open source; nil while a device is not in use.
    var source: (any AudioSource)?
  }

  private let specification: String
  /// The canceller of the loudspeaker's echo; nil without an acoustic echo path.
  private let echo: EchoControl?
  private let controls: Monitor<Controls>
  private let deliver: @Sendable (EncodedAudio) -> Void
  private let failed: @Sendable (MusterError) -> Void

  /// Opens the source to check that it works; a microphone is closed again until audio is to be
  /// sent.
  package static func open(
    _ specification: String, echo: EchoControl?,
    deliver: @escaping @Sendable (EncodedAudio) -> Void,
    failed: @escaping @Sendable (MusterError) -> Void
  ) async throws(DeviceError) -> AudioPipeline {
    let source = try await DeviceOpening.onThread { cancellation throws(DeviceError) in
      try AudioSources.open(specification, cancellation: cancellation)
    }
    return AudioPipeline(specification, source, echo: echo, deliver: deliver, failed: failed)
  }

  private init(
    _ specification: String, _ source: any AudioSource, echo: EchoControl?,
    deliver: @escaping @Sendable (EncodedAudio) -> Void,
    failed: @escaping @Sendable (MusterError) -> Void
  ) {
    self.specification = specification
    let held = AudioSources.isDevice(specification) ? nil : source
    controls = Monitor(Controls(source: held))
    self.echo = echo
    self.deliver = deliver
    self.failed = failed
  }

  /// Sets whether audio is to be sent; otherwise the source is not read.
  package func setWanted(_ isWanted: Bool) { controls.withLock { $0.isWanted = isWanted } }

  /// Sets whether to encode long packets beside the others.
  package func encodeLongPackets(_ areNeeded: Bool) {
    controls.withLock { $0.encodesLongPackets = areNeeded }
  }

  package func start() -> WorkerThread {
    WorkerThread("muster-audio") { self.run() }
  }

  package func stop() {
    controls.withLock { controls in
      controls.isStopped = true
      controls.source?.cancel()
    }
  }

  private func run() {
    defer { controls.withLock { $0.source = nil } }
    do {
      let encoder = try OpusEncoder()
      var longPackets: LongPacketEncoder?
      while let source = try sourceWhenWanted() {
        guard let captured = try source.next() else { break }
        let pcm = echo?.cleaned(captured.pcm) ?? captured.pcm
        let level = AudioLevel.dBov(pcm)
        if !controls.withLock({ $0.encodesLongPackets }) {
          longPackets = nil
        } else if longPackets == nil {
          longPackets = try LongPacketEncoder()
        }
        deliver(
          EncodedAudio(
            data: try encoder.encode(pcm), level: level, capturedAt: captured.capturedAt,
            longPacket: try longPackets?.encode(
              pcm, level: level, capturedAt: captured.capturedAt)))
      }
    } catch let error as DeviceError {
      failed(MusterError(error.what, hint: error.hint))
    } catch {
      failed(MusterError("cannot encode audio (\(error))", hint: "try another --audio"))
    }
  }

  /// Waits until audio is to be sent, then returns the audio source, opened if necessary; nil when
  /// the pipeline is stopped. A device stays closed during the wait.
  private func sourceWhenWanted() throws(DeviceError) -> (any AudioSource)? {
    if AudioSources.isDevice(specification) {
      controls.withLock { if !$0.isWanted { $0.source = nil } }
    }
    guard controls.wait({ $0.isStopped || $0.isWanted ? !$0.isStopped : nil }) else { return nil }
    if let source = controls.withLock({ $0.source }) { return source }
    let source = try AudioSources.open(specification)
    controls.withLock { controls in
      controls.source = source
      if controls.isStopped { source.cancel() }
    }
    return source
  }
}

import MusterBase
import MusterCodecs
import MusterDevices

/// The thread that takes this node's sound from its source and encodes it.
package final class AudioPipeline: Sendable {
  private struct Controls {
    package var isWanted = false
    package var isStopped = false
  }

  private let source: any AudioSource
  /// Takes the loudspeaker's sound out of the microphone's; nil where there is no loop to break.
  private let echo: EchoControl?
  private let controls = Monitor(Controls())
  private let deliver: @Sendable (EncodedAudio) -> Void
  private let failed: @Sendable (MusterError) -> Void

  package init(
    source: any AudioSource, echo: EchoControl?,
    deliver: @escaping @Sendable (EncodedAudio) -> Void,
    failed: @escaping @Sendable (MusterError) -> Void
  ) {
    self.source = source
    self.echo = echo
    self.deliver = deliver
    self.failed = failed
  }

  /// Whether anyone is to hear; while not, the source is not read.
  package func setWanted(_ isWanted: Bool) { controls.withLock { $0.isWanted = isWanted } }

  package func start() -> WorkerThread {
    WorkerThread("muster-audio") { self.run() }
  }

  package func stop() {
    controls.withLock { $0.isStopped = true }
    source.cancel()
  }

  private func run() {
    do {
      let encoder = try OpusEncoder()
      while controls.wait({ $0.isStopped || $0.isWanted ? !$0.isStopped : nil }) {
        guard let captured = try source.next() else { break }
        let pcm = echo?.cleaned(captured.pcm) ?? captured.pcm
        deliver(
          EncodedAudio(
            data: try encoder.encode(pcm), level: AudioLevel.dBov(pcm),
            capturedAt: captured.capturedAt))
      }
    } catch let error as DeviceError {
      failed(MusterError(error.what, hint: error.hint))
    } catch {
      failed(MusterError("cannot encode sound (\(error))", hint: "try another --audio"))
    }
  }
}

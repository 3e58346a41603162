import MusterBase
import MusterCodecs
import MusterDevices
import MusterSystem

/// How the audio of this node is encoded.
package struct AudioEncoding: Sendable {
  /// Whether there are long packets beside the others.
  package var hasLongPackets = false
  /// Whether the encoders work fast rather than well.
  package var isQuick = false

  package init() {}
}

/// The audio of this node, whose source can be replaced while it runs, and the thread that captures
/// and encodes it.
///
/// A microphone is open only while audio is to be sent.
package final class LocalAudioStream: Sendable {
  private let slot: DeviceSlot<any AudioSource>
  private let encoding = Monitor(AudioEncoding())
  private let echo: EchoControl
  private let deliver: @Sendable (EncodedAudio) -> Void
  private let failed: @Sendable (MusterError) -> Void

  /// A stream without a source. `echo` is shared with the playout. The functions are called on any
  /// thread.
  package init(
    echo: EchoControl, deliver: @escaping @Sendable (EncodedAudio) -> Void,
    failed: @escaping @Sendable (MusterError) -> Void
  ) {
    self.echo = echo
    self.deliver = deliver
    self.failed = failed
    slot = DeviceSlot { report, _ in
      if let error = report.error { failed(MusterError(error)) }
    }
  }

  /// Opens the first source, to check that it works; a microphone is closed again until audio is to
  /// be sent.
  package func open(_ input: AudioInput) async throws(DeviceError) { try await slot.open(input) }

  /// Replaces the source; nil for none. The former one goes on until the new one has been opened.
  package func replace(with input: AudioInput?) { slot.replace(with: input) }

  /// Sets whether audio is to be sent; otherwise the source is not read.
  package func setWanted(_ isWanted: Bool) { slot.want(isWanted) }

  /// Sets how the next frames are encoded.
  package func set(_ encoding: AudioEncoding) { self.encoding.withLock { $0 = encoding } }

  /// Starts the thread; call once.
  package func start() -> WorkerThread { WorkerThread("muster-audio") { self.run() } }

  /// Ends the thread and closes the source.
  package func stop() { slot.stop() }

  private func run() {
    var capture = Capture()
    do {
      let encoder = try OpusEncoder()
      var longPackets: LongPacketEncoder?
      while slot.next(&capture.turn, idle: { echo.microphone(isLive: false) }) {
        guard let captured = next(&capture) else { continue }
        let pcm = echo.cleaned(captured.pcm)
        let level = AudioLevel.dBov(pcm)
        let encoding = encoding.withLock { $0 }
        if !encoding.hasLongPackets {
          longPackets = nil
        } else if longPackets == nil {
          longPackets = try LongPacketEncoder()
        }
        encoder.setQuick(encoding.isQuick)
        longPackets?.setQuick(encoding.isQuick)
        deliver(
          EncodedAudio(
            data: try encoder.encode(pcm), level: level, capturedAt: captured.capturedAt,
            longPacket: try longPackets?.encode(
              pcm, level: level, capturedAt: captured.capturedAt)))
      }
    } catch {
      failed(MusterError("cannot encode audio (\(error))", hint: "try another --audio"))
      slot.leave(&capture.turn)
      slot.stop()
    }
    echo.microphone(isLive: false)
  }

  /// The source, as the thread sees it.
  private struct Capture {
    var turn: DeviceSlot<any AudioSource>.Turn?
    var splice = AudioSplice()
    /// Whether no frame of the source has been sent yet.
    var isFirst = false
  }

  /// The next frame to send; nil if there is none for now.
  private func next(_ capture: inout Capture) -> CapturedAudio? {
    guard let source = capture.turn?.device else { return nil }
    if capture.turn?.isNew == true {
      capture.splice.begin()
      capture.isFirst = true
    }
    do throws(DeviceError) {
      guard let captured = try source.next() else {
        slot.ended(capture.turn)
        return nil
      }
      slot.works(&capture.turn)
      guard let joined = capture.splice.take(captured) else { return nil }
      // From here on each captured frame is matched with a played one.
      if capture.isFirst { echo.microphone(isLive: source.isLive) }
      capture.isFirst = false
      return joined
    } catch {
      slot.failed(capture.turn, error)
      return nil
    }
  }
}

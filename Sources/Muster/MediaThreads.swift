import MusterBase
import MusterCodecs
import MusterDevices
import MusterPipeline

/// The threads that capture, encode, play and record, opened and ended together.
final class MediaThreads: Sendable {
  let video: VideoPipeline?
  let audio: AudioPipeline?
  let playout: AudioPlayout?
  let recorder: Recorder?
  let meter = PatternMeter()

  var hasAudioSource: Bool { audio != nil }

  private let hooks: Hooks
  private let threads = Monitor<[WorkerThread]>([])

  /// Where the threads deliver to; set before they start.
  private final class Hooks: @unchecked Sendable {
    var video: @Sendable (EncodedFrame) -> Void = { _ in }
    var audio: @Sendable (EncodedAudio) -> Void = { _ in }
    var playout: @Sendable ([AudioPlayout.Report]) -> Void = { _ in }
    var failed: @Sendable (MusterError) -> Void = { _ in }
  }

  /// Opens sources and sinks; the first that cannot be opened is the error.
  static func open(_ configuration: Configuration) throws(MusterError) -> MediaThreads {
    do {
      return try MediaThreads(configuration)
    } catch let error as DeviceError {
      throw MusterError(error.what, hint: error.hint, kind: error.isMisuse ? .usage : .failure)
    } catch let error as MusterError {
      throw error
    } catch {
      throw MusterError("cannot open the media devices (\(error))", hint: "see muster devices")
    }
  }

  private init(_ configuration: Configuration) throws {
    let hooks = Hooks()
    self.hooks = hooks
    // The microphone hears the loudspeaker only where both are live devices.
    let speaker = configuration.speaker
    let isLive =
      configuration.audio?.hasPrefix("mic") == true && speaker != nil
      && speaker?.hasSuffix(".wav") == false
    let echo = isLive ? try EchoControl() : nil
    video = try configuration.video.map { spec in
      VideoPipeline(
        source: try VideoSources.open(spec), bitrateCap: configuration.videoBitrate,
        deliver: { hooks.video($0) }, failed: { hooks.failed($0) })
    }
    audio = try configuration.audio.map { spec in
      AudioPipeline(
        source: try AudioSources.open(spec), echo: echo, deliver: { hooks.audio($0) },
        failed: { hooks.failed($0) })
    }
    let recorder = try configuration.recordDirectory.map { try Recorder(directory: $0) }
    self.recorder = recorder
    if speaker != nil || recorder != nil {
      playout = AudioPlayout(
        sink: try AudioSinks.open(speaker ?? "none"), echo: echo,
        record: { recorder?.add($0, from: $1) }, ended: { recorder?.end($0) },
        report: { hooks.playout($0) },
        failed: { hooks.failed($0) })
    } else {
      playout = nil
    }
  }

  func start(
    video: @escaping @Sendable (EncodedFrame) -> Void,
    audio: @escaping @Sendable (EncodedAudio) -> Void,
    playout: @escaping @Sendable ([AudioPlayout.Report]) -> Void,
    failed: @escaping @Sendable (MusterError) -> Void
  ) {
    hooks.video = video
    hooks.audio = audio
    hooks.playout = playout
    hooks.failed = failed
    let started = [
      self.video?.start(), self.audio?.start(), self.playout?.start(), recorder?.start(failed),
      meter.start(),
    ].compactMap { $0 }
    threads.withLock { $0 = started }
  }

  /// Ends the threads; files are complete when this returns.
  func stop() async {
    video?.stop()
    audio?.stop()
    playout?.stop()
    recorder?.stop()
    meter.stop()
    let running = threads.withLock { threads in
      defer { threads = [] }
      return threads
    }
    // Joining blocks, so it happens on a thread of its own.
    await withCheckedContinuation { (done: CheckedContinuation<Void, Never>) in
      _ = WorkerThread("muster-join") {
        for thread in running { thread.join() }
        done.resume()
      }
    }
  }
}

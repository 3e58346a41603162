import MusterBase
import MusterCodecs
import MusterDevices
import MusterPipeline
import MusterSystem

/// The capture, encoding, playout and recording threads of a node, started and stopped together.
final class MediaThreads: Sendable {
  /// This node's video streams, in ascending order of their ids.
  let videos: [VideoPipeline]
  let audio: AudioPipeline?
  let playout: AudioPlayout?
  let recorder: Recorder?
  let meter = PatternMeter()

  var hasAudioSource: Bool { audio != nil }

  private let hooks: Hooks
  private let threads = Monitor<[WorkerThread]>([])

  /// The callbacks of the threads, set before the threads start.
  private final class Hooks: @unchecked Sendable {
    var video: @Sendable (EncodedFrame, StreamID) -> Void = { _, _ in }
    var audio: @Sendable (EncodedAudio) -> Void = { _ in }
    var playout: @Sendable ([AudioPlayout.Report]) -> Void = { _ in }
    var failed: @Sendable (MusterError) -> Void = { _ in }
  }

  /// Opens all sources and sinks; throws the error of the first device or file that cannot be
  /// opened.
  static func open(_ configuration: Configuration) throws(MusterError) -> MediaThreads {
    do {
      return try MediaThreads(configuration)
    } catch let error as DeviceError {
      throw MusterError(error)
    } catch let error as MusterError {
      throw error
    } catch {
      throw MusterError("cannot open the media devices (\(error))", hint: "see muster devices")
    }
  }

  private init(_ configuration: Configuration) throws {
    let hooks = Hooks()
    self.hooks = hooks
    // An acoustic echo path exists only between a live microphone and a live loudspeaker.
    let speaker = configuration.speaker
    let isLive =
      configuration.audio.map(AudioSources.isDevice) ?? false
      && speaker.map(AudioSinks.isDevice) ?? false
    let echo = isLive ? try EchoControl() : nil
    videos = try configuration.videoSources.map { stream, source in
      try VideoPipeline(
        stream, source, deliver: { hooks.video($0, stream) }, failed: { hooks.failed($0) })
    }
    audio = try configuration.audio.map { source in
      try AudioPipeline(
        source, echo: echo, deliver: { hooks.audio($0) }, failed: { hooks.failed($0) })
    }
    let recorder = try configuration.recordDirectory.map { try Recorder(directory: $0) }
    self.recorder = recorder
    if speaker != nil || recorder != nil {
      let record = recorder.map { recorder in
        { @Sendable (audio: DecodedAudio, link: LinkID) in recorder.add(audio, from: link) }
      }
      playout = try AudioPlayout(
        speaker ?? "none", echo: echo, record: record, ended: { recorder?.end($0) },
        report: { hooks.playout($0) },
        failed: { hooks.failed($0) })
    } else {
      playout = nil
    }
  }

  /// The pipeline of one of this node's video streams; nil without a source.
  func video(_ stream: StreamID) -> VideoPipeline? { videos.first { $0.offer.id == stream } }

  func start(
    video: @escaping @Sendable (EncodedFrame, StreamID) -> Void,
    audio: @escaping @Sendable (EncodedAudio) -> Void,
    playout: @escaping @Sendable ([AudioPlayout.Report]) -> Void,
    failed: @escaping @Sendable (MusterError) -> Void
  ) {
    hooks.video = video
    hooks.audio = audio
    hooks.playout = playout
    hooks.failed = failed
    let others = [
      self.audio?.start(), self.playout?.start(), recorder?.start(failed), meter.start(),
    ]
    let started = videos.map { $0.start() } + others.compactMap { $0 }
    threads.withLock { $0 = started }
  }

  /// Stops the threads and waits until they have ended; recordings are then complete.
  func stop() async {
    for video in videos { video.stop() }
    audio?.stop()
    playout?.stop()
    recorder?.stop()
    meter.stop()
    let running = threads.withLock { threads in
      defer { threads = [] }
      return threads
    }
    // Joining a thread blocks and must not block the event loop.
    await withCheckedContinuation { (done: CheckedContinuation<Void, Never>) in
      WorkerThread("muster-join") {
        for thread in running { thread.join() }
        done.resume()
      }.detach()
    }
  }
}

extension Configuration {
  /// The configured video streams and their sources.
  fileprivate var videoSources: [(stream: StreamID, source: String)] {
    get throws(MusterError) {
      if share == "screen" {
        throw MusterError(
          "this version cannot capture a screen",
          hint: "share a file (.y4m or .ivf), or test", kind: .usage)
      }
      return [(StreamID.camera, video), (StreamID.screen, share)].compactMap { stream, source in
        source.map { (stream, $0) }
      }
    }
  }
}

extension MusterError {
  /// The error of a device or file.
  package init(_ error: DeviceError) {
    self.init(error.what, hint: error.hint, kind: error.isMisuse ? .usage : .failure)
  }
}

import MusterBase
import MusterCodecs
import MusterDevices
import MusterPipeline
import MusterSystem

/// The capture, encoding, playout and recording threads of a node, started and stopped together.
/// They stop with this object, too.
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

  /// Opens all sources and sinks, each on a thread of its own, for as long as that takes; a
  /// cancelled task gives up. Throws the error of the first device or file that cannot be opened.
  static func open(_ configuration: Configuration) async throws(MusterError) -> MediaThreads {
    let opened: Result<MediaThreads, any Error>
    do { opened = .success(try await opening(configuration)) } catch { opened = .failure(error) }
    if Task.isCancelled {
      throw MusterError("the node was not started: its start was cancelled", hint: "start it again")
    }
    do {
      return try opened.get()
    } catch let error as DeviceError {
      throw MusterError(error)
    } catch let error as MusterError {
      throw error
    } catch {
      throw MusterError("cannot open the media devices (\(error))", hint: "see muster devices")
    }
  }

  private static func opening(_ configuration: Configuration) async throws -> MediaThreads {
    let hooks = Hooks()
    // An acoustic echo path exists only between a live microphone and a live loudspeaker.
    let speaker = configuration.speaker
    let isLive =
      configuration.audio.map(AudioSources.isDevice) ?? false
      && speaker.map(AudioSinks.isDevice) ?? false
    let echo = isLive ? try EchoControl() : nil
    var videos: [VideoPipeline] = []
    for (stream, source) in try configuration.videoSources {
      videos.append(
        try await VideoPipeline.open(
          stream, source, deliver: { hooks.video($0, stream) }, failed: { hooks.failed($0) }))
    }
    var audio: AudioPipeline?
    if let source = configuration.audio {
      audio = try await AudioPipeline.open(
        source, echo: echo, deliver: { hooks.audio($0) }, failed: { hooks.failed($0) })
    }
    let recorder = try configuration.recordDirectory.map { try Recorder(directory: $0) }
    var playout: AudioPlayout?
    if speaker != nil || recorder != nil {
      let record = recorder.map { recorder in
        { @Sendable (audio: DecodedAudio, link: LinkID) in recorder.add(audio, from: link) }
      }
      playout = try await AudioPlayout.open(
        speaker ?? "none", echo: echo, record: record, ended: { recorder?.end($0) },
        report: { hooks.playout($0) }, failed: { hooks.failed($0) })
    }
    return MediaThreads(videos, audio, playout, recorder, hooks)
  }

  private init(
    _ videos: [VideoPipeline], _ audio: AudioPipeline?, _ playout: AudioPlayout?,
    _ recorder: Recorder?, _ hooks: Hooks
  ) {
    self.videos = videos
    self.audio = audio
    self.playout = playout
    self.recorder = recorder
    self.hooks = hooks
  }

  deinit { signalStop() }

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
    signalStop()
    let running = threads.withLock { threads in
      defer { threads = [] }
      return threads
    }
    for thread in running { await thread.ended() }
  }

  private func signalStop() {
    for video in videos { video.stop() }
    audio?.stop()
    playout?.stop()
    recorder?.stop()
    meter.stop()
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

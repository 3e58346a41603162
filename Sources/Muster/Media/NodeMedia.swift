import MusterBase
import MusterCodecs
import MusterDevices
import MusterMedia
import MusterPipeline
import MusterSystem
import MusterWire

/// The media of a node: its streams, the playout and recording of others, and their threads.
///
/// Confined to the event loop, but for `open`. Each part can be started and replaced while the node
/// runs; all end with this object.
final class NodeMedia {
  /// A video stream of this node.
  struct LocalVideo {
    let stream: LocalVideoStream
    /// The format of the stream, as last delivered, and its number.
    var format: VideoFormat?
    var revision = 0
    /// The layers that members need, and their bitrates.
    var targets: [EncoderTarget] = []

    /// What the presence says of the stream; nil without a source.
    var offer: StreamOffer? {
      format.map { StreamOffer(stream.id, isPattern: $0.isPattern, layers: $0.layers) }
    }

    /// Passes the targets on, and that of this node's own preview if that is shown.
    func encode(isPreviewed: Bool) {
      var all = targets
      if isPreviewed, all.first?.layer != 0, let preview { all.insert(preview, at: 0) }
      stream.encode(all, revision: revision)
    }

    /// The target of the smallest layer if only this node's own preview shows it.
    private var preview: EncoderTarget? {
      format?.layers.first.map { layer in
        let bitrate = LayerLadder.bitrate(for: layer.size, framesPerSecond: layer.framesPerSecond)
        return EncoderTarget(layer: 0, kilobitsPerSecond: bitrate.target)
      }
    }
  }

  private let node: NodeReference
  private let echo = EchoControl()
  private var threads: [WorkerThread] = []
  /// This node's video streams, in ascending order of their ids.
  private var videos: [LocalVideo] = []
  private(set) var audio: LocalAudioStream?
  private(set) var playout: Playout?
  private(set) var recorder: Recorder?
  let meter = PatternMeter()
  /// What shows frames; nil while nothing does.
  var display: Display?
  /// Whether the viewer shows this node's own camera.
  var showsPreview = false

  /// What the node offers to others.
  var offers: [StreamOffer] { videos.compactMap(\.offer) }
  private(set) var hasAudio = false
  /// How audio is encoded.
  var audioEncoding = AudioEncoding() { didSet { audio?.set(audioEncoding) } }

  private init(for node: NodeReference) { self.node = node }

  deinit { signalStop() }

  // MARK: Start and end

  /// Opens all sources and sinks, each on a thread of its own, for as long as that takes; a
  /// cancelled task gives up. Throws the error of the first device or file that cannot be opened.
  static func open(
    _ configuration: Configuration, for node: NodeReference
  ) async throws(MusterError) -> sending NodeMedia {
    let media = NodeMedia(for: node)
    var problem: MusterError?
    do {
      try await media.open(configuration)
    } catch let error as DeviceError {
      problem = MusterError(error)
    } catch let error as MusterError {
      problem = error
    } catch {
      problem = MusterError("cannot open the media devices (\(error))", hint: "see muster devices")
    }
    if Task.isCancelled {
      problem = MusterError(
        "the node was not started: its start was cancelled", hint: "start it again")
    }
    if let problem { throw problem }
    return media
  }

  private func open(_ configuration: Configuration) async throws {
    let sources = [(StreamID.camera, configuration.video), (.screen, configuration.share)]
    for case (let id, let source?) in sources {
      let index = addVideo(id)
      try await videos[index].stream.open(VideoInput(source))
      (videos[index].format, videos[index].revision) = videos[index].stream.format
    }
    if let source = configuration.audio {
      try await addAudio().open(AudioInput(source))
      hasAudio = true
    }
    recorder = try configuration.recordDirectory.map { try Recorder(directory: $0) }
    if let output = configuration.speaker ?? recorder.map({ _ in "none" }) {
      try await addPlayout().open(AudioOutput(output))
    }
    threads.append(meter.start())
    if let recorder { threads.append(recorder.start(node.warn)) }
  }

  /// Stops all parts and returns their threads; recordings are complete once these have ended.
  func stop() -> [WorkerThread] {
    signalStop()
    defer { threads = [] }
    return threads
  }

  private func signalStop() {
    for video in videos { video.stream.stop() }
    audio?.stop()
    playout?.stop()
    recorder?.stop()
    meter.stop()
  }

  // MARK: Parts

  /// A video stream of this node; nil for one that never had a source.
  subscript(_ id: StreamID) -> LocalVideo? { videos.first { $0.stream.id == id } }

  /// Replaces the source of a video stream; nil for none. The stream's format is delivered later.
  func use(_ input: VideoInput?, for id: StreamID) {
    if self[id] == nil, input != nil { addVideo(id) }
    self[id]?.stream.replace(with: input)
  }

  /// Replaces the source of audio; nil for none.
  func use(_ input: AudioInput?) {
    guard input != nil || audio != nil else { return }
    addAudio().replace(with: input)
    hasAudio = input != nil
  }

  /// Replaces the sink of the audio of others; nil for none.
  func use(_ output: AudioOutput?) {
    guard output != nil || playout != nil else { return }
    addPlayout().replace(with: output)
  }

  @discardableResult private func addVideo(_ id: StreamID) -> Int {
    let node = node
    let stream = LocalVideoStream(id) { output in node.execute { $0.take(output, of: id) } }
    let index = videos.firstIndex { $0.stream.id > id } ?? videos.count
    videos.insert(LocalVideo(stream: stream), at: index)
    threads.append(stream.start())
    return index
  }

  private func addAudio() -> LocalAudioStream {
    if let audio { return audio }
    let node = node
    let added = LocalAudioStream(
      echo: echo, deliver: { audio in node.execute { $0.encoded(audio) } }, failed: node.warn)
    added.set(audioEncoding)
    threads.append(added.start())
    audio = added
    return added
  }

  private func addPlayout() -> Playout {
    if let playout { return playout }
    let (node, recorder) = (node, recorder)
    let record = recorder.map { recorder in
      { @Sendable (audio: DecodedAudio, link: LinkID) in recorder.add(audio, from: link) }
    }
    let added = Playout(
      echo: echo, record: record, ended: { recorder?.end($0) },
      report: { reports in node.execute { $0.played(reports) } }, failed: node.warn)
    threads.append(added.start())
    playout = added
    return added
  }

  // MARK: What the threads deliver

  /// Takes the format that a stream has from its next frame on. Formats come from several threads:
  /// one that has been overtaken by a later one has no effect.
  func take(_ format: VideoFormat?, revision: Int, of id: StreamID) {
    guard let index = videos.firstIndex(where: { $0.stream.id == id }),
      revision > videos[index].revision
    else { return }
    (videos[index].format, videos[index].revision) = (format, revision)
  }

  /// Sets the layers of a stream that members need.
  func setTargets(_ targets: [EncoderTarget], of id: StreamID) {
    guard let index = videos.firstIndex(where: { $0.stream.id == id }) else { return }
    videos[index].targets = targets
  }

  /// Passes the layers to encode to the encoders: those that members need and, if this node's own
  /// video may be seen, that of its preview. The microphone is open only during calls.
  func updateEncoders(isSeen: Bool, isInCall: Bool) {
    for video in videos {
      video.encode(isPreviewed: video.stream.id == .camera && showsPreview && isSeen)
    }
    audio?.setWanted(isInCall)
  }
}

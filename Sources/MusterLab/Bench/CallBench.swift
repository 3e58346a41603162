import Muster
import MusterBase
import MusterCodecs
import MusterCommand
import MusterCrypto
import MusterDevices
import MusterSystem
import Synchronization

/// A benchmark of the CPU time of a whole 1:1 call, compared with the minimum work in `BareCall`.
struct CallBench {
  struct Result {
    var nodeCores: Double
    var bareCores: Double
    var megabytesPerNode: Double
    var framesShown: Int
    var framesExpected: Int

    var ratio: Double { nodeCores / bareCores }
  }

  static let size = VideoSize(width: 640, height: 360)
  static let framesPerSecond = 30
  static let kilobitsPerSecond = 1000
  private static let warmUp = Duration.seconds(2)

  var seconds: Int
  var video: String?
  var audio: String?

  func run() async throws -> Result {
    let directory = try TemporaryDirectory(for: "bench")
    defer {
      directory.remove(files: ["pattern.y4m", "tone.wav", "speaker0.wav", "speaker1.wav"])
    }
    let footage = try video ?? Footage.write(to: directory.file("pattern.y4m"))
    let speech = try audio ?? Footage.writeAudio(to: directory.file("tone.wav"))
    let frames = try Footage.read(footage)
    let call = try await measureCall(footage, speech, directory)
    let bare = try BareCall(frames: frames).run(seconds: seconds)
    return Result(
      nodeCores: call.cores, bareCores: bare, megabytesPerNode: call.megabytes,
      framesShown: call.frames, framesExpected: seconds * Self.framesPerSecond * 2)
  }

  private func measureCall(
    _ footage: String, _ speech: String, _ directory: TemporaryDirectory
  ) async throws -> (cores: Double, megabytes: Double, frames: Int) {
    var entropy = Entropy.system
    guard let key = ChannelKey(secret: entropy.bytes(32)) else {
      throw MusterError("no key could be made", hint: "this is a defect: please report it")
    }
    var nodes: [MusterNode] = []
    let screens = [Screen(), Screen()]
    for index in 0..<2 {
      var configuration = Configuration()
      configuration.name = "bench \(index)"
      configuration.channels = [Configuration.Channel(name: "bench", source: .open(key))]
      configuration.call = true
      configuration.video = footage
      configuration.audio = speech
      configuration.speaker = directory.file("speaker\(index).wav")
      configuration.videoBitrate = Self.kilobitsPerSecond
      configuration.maxVideo = VideoSize(width: 640, height: 360)
      configuration.interfaces = ["lo"]
      configuration.isEphemeral = true
      let node = try await MusterNode.start(configuration)
      let screen = screens[index]
      await node.showFrames { if $0.member != nil { screen.show($0.data) } }
      nodes.append(node)
    }
    try await Task.sleep(for: Self.warmUp)
    let before = (cpu: ProcessUsage.cpuSeconds, frames: screens.map(\.frames).reduce(0, +))
    try await Task.sleep(for: .seconds(seconds))
    let cores = (ProcessUsage.cpuSeconds - before.cpu) / Double(seconds)
    let frames = screens.map(\.frames).reduce(0, +) - before.frames
    let megabytes = ProcessUsage.residentMegabytes
    for node in nodes { await node.stop() }
    return (cores, megabytes, frames)
  }
}

/// A decoder for the frames that a node shows, as a browser would decode them.
private final class Screen: Sendable {
  private struct State {
    var decoder: VP8Decoder?
    var frames = 0
  }

  private let state = Mutex(State())

  var frames: Int { state.withLock { $0.frames } }

  func show(_ data: [UInt8]) {
    state.withLock { state in
      if state.decoder == nil { state.decoder = try? VP8Decoder() }
      guard let decoder = state.decoder, (try? decoder.decode(data)) != nil else { return }
      state.frames += 1
    }
  }
}

/// The test video and audio of the measurement.
enum Footage {
  /// The number of frames in the loop: five seconds at 30 frames per second.
  private static let frameCount = 150

  /// Writes the test pattern as Y4M, so that the node and the baseline encode the same frames.
  static func write(to path: String) throws -> String {
    guard let file = fopen(path, "w") else {
      throw MusterError("cannot write \(path)", hint: "check TMPDIR and its free space")
    }
    defer { fclose(file) }
    fputs("YUV4MPEG2 W640 H360 F30:1 Ip A1:1 C420\n", file)
    let frame = I420Frame(size: CallBench.size)
    for number in 0..<frameCount {
      TestPattern.draw(
        number: UInt32(number), capturedAt: Instant(nanoseconds: Int64(number) * 33_333_333),
        into: frame, flash: false)
      fputs("FRAME\n", file)
      let bytes = frame.packedBytes()
      fwrite(bytes, 1, bytes.count, file)
    }
    return path
  }

  /// Writes five seconds of a tone.
  static func writeAudio(to path: String) throws -> String {
    let writer = try WAVWriter(path: path)
    try writer.append((0..<240_000).map { Int16(8000 * sin(Double($0) * 2 * .pi * 440 / 48_000)) })
    writer.close()
    return path
  }

  static func read(_ path: String) throws -> [I420Frame] {
    let source = try VideoSources.open(path)
    guard source.format.size == CallBench.size else {
      throw MusterError(
        "\(path) is \(source.format.size)", hint: "the measurement needs \(CallBench.size)",
        kind: .usage)
    }
    var frames: [I420Frame] = []
    while frames.count < frameCount, let captured = try source.next() {
      frames.append(captured.frame)
    }
    source.cancel()
    return frames
  }
}

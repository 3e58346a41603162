import Glibc
import Muster
import MusterBase
import MusterCodecs
import MusterDevices
import MusterSystem
import Testing

/// Sources and sinks that are replaced in a call of two nodes.
struct ReplacementTests {
  private static let sizes = ["160x90", "320x180", "240x180"]

  private func start(_ name: String) async throws -> MusterNode {
    var configuration = Configuration()
    configuration.name = name
    configuration.channels = [.init(name: "studio", source: .open(.fromName("studio")))]
    configuration.call = true
    configuration.video = "test:160x90@30"
    configuration.audio = "tone"
    configuration.speaker = "none"
    configuration.maxVideo = VideoSize(width: 320, height: 180)
    configuration.interfaces = ["lo"]
    configuration.isEphemeral = true
    return try await MusterNode.start(configuration)
  }

  /// The other node decodes every frame, of the size that was chosen last.
  @Test(.timeLimit(.minutes(5))) func othersSeeAndHearEveryReplacement() async throws {
    let isAll = getenv("MUSTER_TESTS").map { String(cString: $0) == "all" } ?? false
    let (sender, viewer) = (try await start("sends"), try await start("watches"))
    let (sizes, seen) = AsyncStream.makeStream(of: VideoSize.self)
    let decoder = Monitor(try VP8Decoder())
    await viewer.showFrames { frame in
      guard frame.member == sender.id else { return }
      let image = decoder.withLock { try? $0.decode(frame.data) }
      seen.yield(image?.size ?? VideoSize(width: 0, height: 0))
    }
    var shown = sizes.makeAsyncIterator()
    var size = VideoSize(width: 160, height: 90)
    while await shown.next() != size {}
    let warnings = Task { await Self.warnings(of: sender) }
    let (captured, played) = (Monitor(0), Monitor(0))
    for round in 1...(isAll ? 100 : 20) {
      let next = Self.sizes[round % Self.sizes.count]
      await sender.use(VideoInput("test:\(next)@30"), for: .camera)
      await sender.use(Self.tone(round, captured))
      await viewer.use(Self.nowhere(round, played))
      let wanted = try #require(VideoSize(next[...]))
      // Of the former source until the first keyframe of the new one, and never anything else.
      while let image = await shown.next(), image != wanted { #expect(image == size) }
      size = wanted
      await Self.reached(round, captured)
      await Self.reached(round, played)
    }
    await viewer.showFrames(nil)
    await sender.stop()
    await viewer.stop()
    #expect(await warnings.value.isEmpty)
  }

  /// A tone that notes its number when it is heard.
  private static func tone(_ number: Int, _ heard: Monitor<Int>) -> AudioInput {
    AudioInput("tone \(number)", isDevice: true) { cancellation throws(DeviceError) in
      Noted(try AudioSources.open("tone", cancellation: cancellation)) {
        heard.withLock { $0 = max($0, number) }
      }
    }
  }

  /// A sink that notes its number when it is played to.
  private static func nowhere(_ number: Int, _ played: Monitor<Int>) -> AudioOutput {
    AudioOutput("nowhere \(number)", isDevice: true) { cancellation in
      NotedSink(PacedSink(cancellation: cancellation)) {
        played.withLock { $0 = max($0, number) }
      }
    }
  }

  private static func reached(_ number: Int, _ last: Monitor<Int>) async {
    while last.withLock({ $0 }) < number, !Task.isCancelled { await Task.yield() }
  }

  private static func warnings(of node: MusterNode) async -> [String] {
    var warnings: [String] = []
    for await event in node.events() {
      if case .warning(let error) = event.event, !error.message.contains("passphrase") {
        warnings.append(error.message)
      }
    }
    return warnings
  }
}

/// A source that says when it is read.
private final class Noted: AudioSource {
  private let source: any AudioSource
  private let note: @Sendable () -> Void

  init(_ source: any AudioSource, _ note: @escaping @Sendable () -> Void) {
    self.source = source
    self.note = note
  }

  var isLive: Bool { source.isLive }

  func next() throws(DeviceError) -> CapturedAudio? {
    defer { note() }
    return try source.next()
  }

  func cancel() { source.cancel() }
}

/// A sink that says when it is written to.
private final class NotedSink: AudioSink {
  private let sink: any AudioSink
  private let note: @Sendable () -> Void

  init(_ sink: any AudioSink, _ note: @escaping @Sendable () -> Void) {
    self.sink = sink
    self.note = note
  }

  var isLive: Bool { sink.isLive }
  var delay: Duration { sink.delay }

  func write(_ pcm: [Int16]) throws(DeviceError) {
    note()
    try sink.write(pcm)
  }

  func close() { sink.close() }
}

import MusterBase
import MusterCodecs
import MusterCore
import MusterDevices
import MusterMedia
import MusterPipeline
import MusterSystem
import MusterWire
import Testing

/// Sources and sinks that are replaced while they run.
struct LocalStreamTests {
  private static let sizes = [
    VideoSize(width: 160, height: 90), VideoSize(width: 320, height: 180),
    VideoSize(width: 160, height: 90), VideoSize(width: 640, height: 360),
  ]

  /// The behaviour of the device that replaces another in this round.
  private static func behaviour(_ round: Int) -> SimulatedDevices.Behaviour {
    switch round % 10 {
    case 3: .fails
    case 5: .isExclusive
    case 7: .hangs
    default: .works
    }
  }

  private static func isUsed(_ round: Int) -> Bool {
    [.works, .isExclusive].contains(behaviour(round))
  }

  /// Every frame decodes, has the size of the last format, and comes from the last source or, until
  /// that is open, from the one before it.
  @Test(.timeLimit(.minutes(1))) func aCameraIsReplacedAHundredTimes() async throws {
    let devices = SimulatedDevices()
    let (outputs, delivered) = AsyncStream.makeStream(of: LocalVideoStream.Output.self)
    let stream = LocalVideoStream(.camera) { delivered.yield($0) }
    let thread = stream.start()
    try await stream.open(devices.camera(0, Self.sizes[0]))
    #expect(stream.format.format?.size == Self.sizes[0])
    var viewer = try Viewer(stream)
    var received = outputs.makeAsyncIterator()
    var last = 0
    for round in 1...100 {
      stream.replace(with: devices.camera(round, Self.sizes[round % 4], Self.behaviour(round)))
      if Self.isUsed(round) { last = round }
      // One that does not open is reported; the one before it goes on.
      var isOver = Self.behaviour(round) != .fails
      var shown: Int?
      while shown != last || !isOver {
        let output = try #require(await received.next())
        if case .failed(let error) = output {
          #expect(error.message == SimulatedDevices.failure.what && !isOver)
          isOver = true
        }
        shown = try viewer.take(output) ?? shown
      }
    }
    #expect(viewer.layers == [0, 1] && devices.count.most == 2)
    stream.stop()
    await thread.ended()
    #expect(try await devices.areClosed())
  }

  /// Without waiting for any of them: the last one is used.
  @Test(.timeLimit(.minutes(1))) func theLastOfManyReplacementsIsUsed() async throws {
    let devices = SimulatedDevices()
    let (outputs, delivered) = AsyncStream.makeStream(of: LocalVideoStream.Output.self)
    let stream = LocalVideoStream(.camera) { delivered.yield($0) }
    let thread = stream.start()
    try await stream.open(devices.camera(0, Self.sizes[0]))
    var viewer = try Viewer(stream)
    for round in 1...100 {
      stream.replace(with: devices.camera(round, Self.sizes[round % 4], isDevice: round % 3 > 0))
    }
    for await output in outputs where try viewer.take(output) == 100 { break }
    stream.replace(with: nil)
    for await output in outputs {
      guard case .format(nil, _) = output else { continue }
      break
    }
    stream.stop()
    await thread.ended()
    #expect(try await devices.areClosed())
  }

  @Test(.timeLimit(.minutes(1))) func aMicrophoneIsReplacedAHundredTimes() async throws {
    let devices = SimulatedDevices()
    let (packets, delivered) = AsyncStream.makeStream(of: EncodedAudio.self)
    let (errors, failed) = AsyncStream.makeStream(of: MusterError.self)
    let stream = LocalAudioStream(
      echo: EchoControl(), deliver: { delivered.yield($0) }, failed: { failed.yield($0) })
    let thread = stream.start()
    try await stream.open(devices.microphone(300))
    stream.setWanted(true)
    var received = packets.makeAsyncIterator()
    var reported = errors.makeAsyncIterator()
    let decoder = try OpusDecoder()
    var (hertz, last) = (300, Instant.zero)
    for round in 1...100 {
      let next = 300 + 200 * (round % 4)
      stream.replace(with: devices.microphone(next, Self.behaviour(round)))
      if Self.isUsed(round) { hertz = next }
      if Self.behaviour(round) == .fails { _ = await reported.next() }
      var heard = 0
      while abs(heard - hertz) > 60 {
        let packet = try #require(await received.next())
        #expect(packet.capturedAt > last)
        last = packet.capturedAt
        let pcm = try decoder.decode(packet.data)
        heard = zip(pcm, pcm.dropFirst()).filter { ($0 < 0) != ($1 < 0) }.count * 25
      }
    }
    stream.stop()
    await thread.ended()
    #expect(try await devices.areClosed())
  }

  @Test(.timeLimit(.minutes(1))) func aSpeakerIsReplacedAHundredTimes() async throws {
    let devices = SimulatedDevices()
    let (frames, delivered) = AsyncStream.makeStream(of: Int.self)
    let playout = Playout(
      echo: EchoControl(), record: nil, ended: { _ in }, report: { _ in }, failed: { _ in })
    let thread = playout.start()
    try await playout.open(devices.speaker(0) { delivered.yield($0) })
    let link = LinkID(channel: ChannelID(.zero), peer: NodeID(.zero))
    let encoder = try OpusEncoder()
    playout.play(
      ReceivedAudio(
        sequence: 0, timestamp: 0, level: 20,
        payload: try encoder.encode([Int16](repeating: 0, count: AudioFormat.samplesPerFrame)),
        capturedAt: .zero, repairTime: nil), from: link, at: BootClock.now)
    var received = frames.makeAsyncIterator()
    var last = 0
    for round in 1...100 {
      playout.replace(with: devices.speaker(round, Self.behaviour(round)) { delivered.yield($0) })
      if Self.isUsed(round) { last = round }
      while let heard = await received.next(), heard != last { #expect(heard < last) }
    }
    playout.end(link)
    playout.stop()
    await thread.ended()
    #expect(try await devices.areClosed())
  }

  /// It ends, and cannot be opened again at first: that is reported once.
  @Test(.timeLimit(.minutes(1))) func aDeviceThatFailsComesBack() async throws {
    let attempts = Monitor(0)
    let devices = SimulatedDevices()
    let works = devices.camera(7, Self.sizes[0])
    let input = VideoInput("unsteady", isDevice: true) { cancellation throws(DeviceError) in
      let attempt = attempts.withLock { count in
        count += 1
        return count
      }
      if attempt == 2 { throw SimulatedDevices.failure }
      return try works.open(cancellation)
    }
    let (outputs, delivered) = AsyncStream.makeStream(of: LocalVideoStream.Output.self)
    let stream = LocalVideoStream(.camera) { delivered.yield($0) }
    let thread = stream.start()
    try await stream.open(input)
    var viewer = try Viewer(stream)
    var failures = 0
    for await output in outputs {
      if case .failed = output { failures += 1 }
      if try viewer.take(output) == 7 { break }
    }
    #expect(failures == 1 && attempts.withLock { $0 } == 3)
    stream.stop()
    await thread.ended()
  }
}

/// A receiver of a stream that wants all of its layers.
private struct Viewer {
  private let stream: LocalVideoStream
  private var decoders: [VP8Decoder]
  private var format: VideoFormat?
  private var revision: Int
  /// The layers of which frames have come.
  private(set) var layers: Set<Int> = []

  init(_ stream: LocalVideoStream) throws {
    self.stream = stream
    decoders = try (0..<Limits.spatialLayers).map { _ in try VP8Decoder() }
    (format, revision) = stream.format
    request()
  }

  /// The number of the source that a frame comes from; nil for anything else.
  mutating func take(_ output: LocalVideoStream.Output) throws -> Int? {
    switch output {
    case .pace, .failed: return nil
    case .format(let format, let revision):
      guard revision > self.revision else { return nil }
      (self.format, self.revision) = (format, revision)
      request()
      return nil
    case .frame(let frame, let revision):
      stream.backlog.taken()
      guard revision == self.revision else { return nil }
      layers.insert(frame.layer)
      let decoded = try decoders[frame.layer].decode(frame.data)
      let image = try #require(decoded)
      #expect(image.size == format?.layers[frame.layer].size)
      let reading = try #require(TestPattern.read(image))
      return Int(reading.number)
    }
  }

  private func request() {
    let layers = format?.layers ?? []
    let targets = layers.enumerated().map { index, layer in
      EncoderTarget(layer: index, kilobitsPerSecond: 1000)
    }
    stream.encode(targets, revision: revision)
  }
}

import MusterBase
import MusterCodecs
import MusterDevices
import MusterMedia

/// Decodes members' test patterns and reads back when each frame was captured: the latency from
/// capture to decoded frame, where both nodes share one boot clock.
package final class PatternMeter: Sendable {
  /// The latency of the last frames of one stream: median and 95th percentile.
  package struct Latency: Sendable {
    package var p50: Duration
    package var p95: Duration
  }

  private enum Input: Sendable {
    case frame(ReceivedFrame, MemberStream)
    case ended(MemberStream)
  }

  /// Frames waiting for the decoder: two seconds of one member.
  private static let inputCapacity = 64
  /// Samples kept per stream: ten seconds at 30 frames a second.
  private static let samples = 300

  private let inputs = FrameQueue<Input, MemberStream>(encoded: inputCapacity, independent: 1) {
    input in
    switch input {
    case .frame(let frame, let stream):
      .encoded(stream, temporalLayer: frame.temporalLayer, isKeyframe: frame.isKeyframe)
    case .ended(let stream): .control(stream)
    }
  }
  private let results = Monitor(PeerTable<MemberStream, RingBuffer<Duration>>())

  package init() {}

  package func start() -> WorkerThread { WorkerThread("muster-meter") { self.run() } }

  package func stop() { inputs.close() }

  /// Frames that wait for the decoder.
  package var queueLevel: QueueLevel { inputs.level }

  /// Frames above the base layer are passed over: those of the base layer decode without them, and
  /// half of the frames say as much about the latency for half of the decoding.
  package func add(_ frame: ReceivedFrame, from stream: MemberStream) {
    if frame.temporalLayer == 0 { inputs.add(.frame(frame, stream)) }
  }

  package func end(_ stream: MemberStream) { inputs.add(.ended(stream)) }

  /// The latency of the last ten seconds; nil without a readable pattern.
  package func latency(of stream: MemberStream) -> Latency? {
    let samples = results.withLock { table in
      table[stream].map { ring in (0..<ring.count).map { ring[$0] } } ?? []
    }.sorted()
    guard !samples.isEmpty else { return nil }
    func percentile(_ share: Double) -> Duration { samples[Int(Double(samples.count - 1) * share)] }
    return Latency(p50: percentile(0.5), p95: percentile(0.95))
  }

  private func run() {
    var decoders = PeerTable<MemberStream, VP8Decoder>()
    while let batch = inputs.takeAll() {
      for input in batch {
        switch input {
        case .frame(let frame, let stream):
          if decoders[stream] == nil { decoders[stream] = try? VP8Decoder() }
          measure(frame.data, stream, decoders[stream])
        case .ended(let stream):
          decoders[stream] = nil
          results.withLock { $0[stream] = nil }
        }
      }
    }
  }

  private func measure(_ data: [UInt8], _ stream: MemberStream, _ decoder: VP8Decoder?) {
    // `try?` flattens: a frame that does not decode gives no sample.
    guard let decoder, let frame = try? decoder.decode(data),
      let reading = TestPattern.read(frame)
    else { return }
    let latency = BootClock.now - reading.capturedAt
    // Outside of this the clocks of the two machines are not one.
    guard latency >= .zero, latency < .seconds(10) else { return }
    results.withLock { table in
      var ring = table[stream] ?? RingBuffer(capacity: Self.samples)
      ring.append(latency)
      table[stream] = ring
    }
  }
}

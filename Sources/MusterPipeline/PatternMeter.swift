import MusterBase
import MusterCodecs
import MusterCore
import MusterMedia
import MusterSystem

/// Measures the latency from capture to decoded frame, or to its display where it waits for
/// repairs, by decoding the capture times in members' test patterns; both nodes must run on one
/// host, whose boot clock they share.
package final class PatternMeter: Sendable {
  /// The median and the 95th percentile of a stream's recent latencies.
  package struct Latency: Sendable {
    package var p50: Duration
    package var p95: Duration
  }

  private enum Input: Sendable {
    case frame(ReceivedFrame, MemberStream)
    case ended(MemberStream)
  }

  /// The maximum number of frames queued for the decoder: two seconds at 30 frames per second.
  private static let inputCapacity = 64
  /// The number of samples kept per stream: ten seconds or more, since only frames of the base
  /// layer are measured, at most 30 per second.
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

  /// The fill level of the queue of frames for the decoder.
  package var queueLevel: QueueLevel { inputs.level }

  /// Queues a frame of the base layer; frames of higher layers are ignored, because base-layer
  /// frames decode without them and give enough samples.
  package func add(_ frame: ReceivedFrame, from stream: MemberStream) {
    if frame.temporalLayer == 0 { inputs.add(.frame(frame, stream)) }
  }

  package func end(_ stream: MemberStream) { inputs.add(.ended(stream)) }

  /// The latency over the last `samples` readings of a stream; nil if there are none.
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
          measure(frame, stream, decoders[stream])
        case .ended(let stream):
          decoders[stream] = nil
          results.withLock { $0[stream] = nil }
        }
      }
    }
  }

  private func measure(
    _ frame: ReceivedFrame, _ stream: MemberStream, _ decoder: VP8Decoder?
  ) {
    // A frame that does not decode yields no sample.
    guard let decoder, let image = try? decoder.decode(frame.data),
      let reading = TestPattern.read(image)
    else { return }
    let wait = frame.waitsForRepair ? frame.delay : .zero
    let latency = max(BootClock.now, frame.completedAt + wait) - reading.capturedAt
    // A latency outside this range shows that the nodes do not share a clock.
    guard latency >= .zero, latency < .seconds(10) else { return }
    results.withLock { table in
      var ring = table[stream] ?? RingBuffer(capacity: Self.samples)
      ring.append(latency)
      table[stream] = ring
    }
  }
}

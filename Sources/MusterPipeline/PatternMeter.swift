import MusterBase
import MusterCodecs
import MusterDevices
import MusterMedia

/// Decodes members' test patterns and reads back when each picture was captured: the latency from
/// capture to decoded picture, where both nodes share one boot clock.
package final class PatternMeter: Sendable {
  /// What the last pictures of one member showed.
  package struct Latency: Sendable {
    package var p50: Duration
    package var p95: Duration
  }

  private enum Input: Sendable {
    case frame(ReceivedFrame, LinkID)
    case ended(LinkID)
  }

  /// Frames waiting for the decoder: two seconds of one member.
  private static let inputCapacity = 64
  /// Samples kept per member: ten seconds at 30 pictures a second.
  private static let samples = 300

  private let inputs = FrameQueue<Input, LinkID>(encoded: inputCapacity, independent: 1) { input in
    switch input {
    case .frame(let frame, let link):
      .encoded(link, temporalLayer: frame.temporalLayer, isKeyframe: frame.isKeyframe)
    case .ended(let link): .control(link)
    }
  }
  private let results = Monitor(PeerTable<LinkID, RingBuffer<Duration>>())

  package init() {}

  package func start() -> WorkerThread { WorkerThread("muster-meter") { self.run() } }

  package func stop() { inputs.close() }

  /// Frames that wait for the decoder.
  package var queueLevel: QueueLevel { inputs.level }

  package func add(_ frame: ReceivedFrame, from link: LinkID) { inputs.add(.frame(frame, link)) }

  package func end(_ link: LinkID) { inputs.add(.ended(link)) }

  /// The latency of the last ten seconds; nil without a readable pattern.
  package func latency(of link: LinkID) -> Latency? {
    let samples = results.withLock { table in
      table[link].map { ring in (0..<ring.count).map { ring[$0] } } ?? []
    }.sorted()
    guard !samples.isEmpty else { return nil }
    func percentile(_ share: Double) -> Duration { samples[Int(Double(samples.count - 1) * share)] }
    return Latency(p50: percentile(0.5), p95: percentile(0.95))
  }

  private func run() {
    var decoders = PeerTable<LinkID, VP8Decoder>()
    while let batch = inputs.takeAll() {
      for input in batch {
        switch input {
        case .frame(let frame, let link):
          if decoders[link] == nil { decoders[link] = try? VP8Decoder() }
          measure(frame.data, link, decoders[link])
        case .ended(let link):
          decoders[link] = nil
          results.withLock { $0[link] = nil }
        }
      }
    }
  }

  private func measure(_ data: [UInt8], _ link: LinkID, _ decoder: VP8Decoder?) {
    // `try?` flattens: a picture that does not decode gives no sample.
    guard let decoder, let frame = try? decoder.decode(data),
      let reading = TestPattern.read(frame)
    else { return }
    let latency = BootClock.now - reading.capturedAt
    // Outside of this the clocks of the two machines are not one.
    guard latency >= .zero, latency < .seconds(10) else { return }
    results.withLock { table in
      var ring = table[link] ?? RingBuffer(capacity: Self.samples)
      ring.append(latency)
      table[link] = ring
    }
  }
}

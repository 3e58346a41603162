import MusterBase
import MusterCongestion
import MusterWire
import Testing

/// A sender, a bottleneck and a receiver on virtual time, with the real parts of both ends.
struct PathScript {
  /// The path in one direction; the other one only delays.
  struct Network {
    var rate: DataRate
    var delay: Duration
    /// The most that waits at the bottleneck, as time at `rate`.
    var queue = Duration.milliseconds(300)
    /// The shares of the packets and of the reports that are lost at random.
    var loss = 0.0
    var reportLoss = 0.0
    /// Each packet takes up to this much longer, without overtaking another.
    var jitter = Duration.zero
    /// Audio is sent as well, and goes first, as on Wi-Fi.
    var audioFirst = false
  }

  /// What the application sends.
  enum Source {
    /// Video at the estimate, at most at this rate; frames are paced.
    case video(most: DataRate)
    /// Video at this rate, whatever the estimate, unpaced.
    case constant(DataRate)
  }

  /// The state every 100 ms.
  struct Sample {
    let time: Duration
    let estimate: Double
    let sent: Double
    let acknowledged: Double?
    let queue: Double
    let estimatedQueue: Double?
  }

  static let start = Instant.zero + .seconds(50)
  private static let overhead = 57
  static let route = Route.direct(Address(host: .v4(0xC000_0201), port: 9))

  var network: Network
  /// The receiver's clock is ahead by this much.
  var clockOffset = Duration.seconds(7_777)
  var source: Source { didSet { controller.demand = demand } }
  var controller = PathController()
  private(set) var samples: [Sample] = []
  /// The packets of padding.
  private(set) var padding = 0

  private var now = start
  private var random: PRNG
  private var history = SendHistory()
  private var pacer = Pacer<Int>(estimate: PathController.start)
  private var reporter = FeedbackReporter(session: 1)
  private var nextNumber: UInt64 = 0
  private var busyUntil = start
  private var inFlight: [(at: Instant, number: UInt64, payload: [UInt8])] = []
  private var reports: [(at: Instant, feedback: CongestionFeedback)] = []
  private var nextFrameAt = start
  private var nextAudioAt = start
  private var receiverTime = start
  private var sentBytes = 0

  init(_ network: Network, _ source: Source, seed: UInt64 = 1) {
    self.network = network
    self.source = source
    random = PRNG(seed: seed)
    controller.demand = demand
  }

  private var demand: DataRate {
    switch source {
    case .video(let most): most
    case .constant(let rate): rate
    }
  }

  /// The time since the start.
  var time: Duration { now - Self.start }

  /// The samples from a time on.
  func samples(from start: Duration) -> [Sample] { samples.filter { $0.time >= start } }

  /// The mean estimate in kbit/s over the last time.
  func meanEstimate(over time: Duration) -> Double {
    let last = samples(from: self.time - time).map(\.estimate)
    return last.reduce(0, +) / Double(last.count)
  }

  mutating func run(for time: Duration) {
    let end = now + time
    while now < end {
      step()
      now = now + .milliseconds(1)
      guard self.time.wholeNanoseconds % 100_000_000 == 0 else { continue }
      samples.append(
        Sample(
          time: self.time, estimate: controller.estimate.kbps, sent: Double(sentBytes) * 8 / 100,
          acknowledged: controller.acknowledgedRate?.kbps,
          queue: max(busyUntil - now, .zero).inMilliseconds,
          estimatedQueue: controller.queueDelay?.inMilliseconds))
      sentBytes = 0
    }
  }

  private mutating func step() {
    deliver()
    pacer.set(rate: controller.pacingRate, at: now)
    if nextFrameAt <= now {
      nextFrameAt = nextFrameAt + .nanoseconds(33_333_333)
      addFrame()
    }
    if network.audioFirst, nextAudioAt <= now {
      nextAudioAt = nextAudioAt + .milliseconds(20)
      send(160, as: .audio, probe: nil)
    }
    guard let due = pacer.deadline, due <= now else { return }
    for release in pacer.release(at: now).released {
      switch release {
      case .item(let bytes, let probe): send(bytes, probe: probe)
      case .padding(let bytes, let probe):
        padding += 1
        send(bytes, probe: probe)
      }
    }
  }

  private mutating func addFrame() {
    let rate: DataRate
    var isPaced = true
    switch source {
    case .video(let most): rate = min(controller.estimate, most)
    case .constant(let constant): (rate, isPaced) = (constant, false)
    }
    let noise = 0.8 + 0.4 * Double(random.below(1_000)) / 1_000
    var bytes = Int(rate.bytes(in: .nanoseconds(33_333_333)) * noise)
    while bytes > 0 {
      let packet = max(min(bytes, 1_200), 100)
      bytes -= packet
      if isPaced {
        pacer.add(packet, .video, bytes: packet, expiresAt: now + .milliseconds(500), at: now)
      } else {
        send(packet, probe: nil)
      }
    }
  }

  private mutating func send(
    _ bytes: Int, as serviceClass: ServiceClass = .video, probe: ProbeCluster.ID?
  ) {
    let number = nextNumber
    nextNumber += 1
    sentBytes += bytes
    history.sent(number, bytes: bytes, as: serviceClass, over: Self.route, probe: probe, at: now)
    controller.sent(bytes: bytes, asks: true, at: now)
    if isLost(network.loss) { return }
    let isAudio = serviceClass == .audio
    guard isAudio || busyUntil - now <= network.queue else { return }
    let sending = Duration.seconds(Double(bytes) / network.rate.bytes(in: .seconds(1)))
    busyUntil = max(busyUntil, now) + sending
    let payload =
      RTPPacket(
        header: RTPHeader(
          marker: false, payloadType: isAudio ? PayloadType.opus : PayloadType.videoBase,
          sequence: 0,
          timestamp: UInt32(truncatingIfNeeded: Int(time.inMilliseconds) * (isAudio ? 48 : 90)),
          ssrc: isAudio ? 2 : 1),
        payload: [UInt8](repeating: 0, count: max(bytes - Self.overhead - 12, 1))[...]
      ).encoded()
    guard !isAudio else {
      let arrival = now + sending + network.delay
      let index = inFlight.firstIndex { $0.at > arrival } ?? inFlight.count
      return inFlight.insert((arrival, number, payload), at: index)
    }
    let jitter = Duration.microseconds(
      random.below(Int(network.jitter.wholeNanoseconds / 1_000) + 1))
    let arrival = busyUntil + network.delay + jitter
    inFlight.append((max(arrival, inFlight.last?.at ?? arrival), number, payload))
  }

  private mutating func isLost(_ share: Double) -> Bool {
    Double(random.below(100_000)) < share * 100_000
  }

  private mutating func deliver() {
    while let first = inFlight.first, first.at <= now {
      inFlight.removeFirst()
      report(until: first.at)
      receiverTime = first.at + clockOffset
      reporter.received(
        first.number, first.payload, overhead: Self.overhead, arrivedAt: receiverTime,
        at: receiverTime)
    }
    report(until: now)
    while let first = reports.first, first.at <= now {
      reports.removeFirst()
      for report in history.reported(first.feedback, at: now) {
        if let cluster = controller.reported(report, at: now) { pacer.probe(cluster, at: now) }
      }
    }
  }

  private mutating func report(until end: Instant) {
    while let due = reporter.deadline, due <= end + clockOffset {
      receiverTime = max(receiverTime, due)
      guard let payload = reporter.report(at: receiverTime),
        let feedback = try? CongestionFeedback(decoding: payload)
      else { return }
      let arrival = receiverTime + (.zero - clockOffset) + network.delay
      if !isLost(network.reportLoss) { reports.append((max(arrival, now), feedback)) }
    }
  }
}

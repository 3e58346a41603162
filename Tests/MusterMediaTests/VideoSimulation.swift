import MusterBase
import MusterMedia
import MusterWire

/// One sender, one receiver and the network between them, on virtual time.
struct VideoSimulation {
  struct Network {
    var loss = 0.0
    var delay = Duration.milliseconds(20)
    /// The upper bound of the extra delay of each packet; packets overtake each other.
    var jitter = Duration.zero
    var duplication = 0.0
  }

  private enum Event {
    case capture
    case packet(RTPPacket)
    case nack([UInt16])
    case keyframeRequest(UInt32)
  }

  var network: Network
  var sender: ModelSender
  var receiver = VideoReceiver()
  var decoder = ModelDecoder()
  var frameBytes: (base: Int, enhancement: Int, keyframe: Int) = (6500, 3300, 20_000)
  private(set) var now = Instant.milliseconds(1000)
  private(set) var captured: [Instant] = []
  private(set) var delivered: [(at: Instant, id: UInt32)] = []
  /// When the frames were shown, for how long each had waited, and whether it was for repairs.
  private(set) var shown: [(at: Instant, delay: Duration, waited: Bool)] = []
  private(set) var undecodable = 0
  private(set) var keyframeRequests = 0
  private(set) var mostHeld = 0
  private var random: PRNG
  private var queue: [(at: Instant, event: Event)] = []

  init(seed: UInt64, network: Network) {
    self.network = network
    random = PRNG(seed: seed)
    sender = ModelSender(seed: seed, firstSequence: UInt16(truncatingIfNeeded: random.next()))
    receiver.setRoundTrip(network.delay * 2)
    let report = SenderReport(
      ssrc: sender.stream.ssrc, ntpTime: RTPTime.ntp(of: now),
      rtpTime: RTPTime.timestamp(of: now, clockRate: RTPTime.videoClockRate), packets: 0,
      octets: 0, reports: [])
    receiver.receive(report, at: now)
  }

  mutating func run(for duration: Duration) {
    let end = now + duration
    if !queue.contains(where: { if case .capture = $0.event { true } else { false } }) {
      schedule(.capture, at: now)
    }
    while true {
      let next = queue.first?.at ?? end
      if let deadline = receiver.deadline, deadline < next, deadline < end {
        now = max(now, deadline)
        take(receiver.tick(at: now))
        continue
      }
      guard next < end, !queue.isEmpty else { break }
      let (at, event) = queue.removeFirst()
      now = max(now, at)
      handle(event)
    }
    now = end
  }

  /// The intervals between delivered frames; the last one ends now.
  var gaps: [Duration] {
    let times = delivered.map(\.at) + [now]
    return zip(times, times.dropFirst()).map { $1 - $0 }
  }

  private mutating func handle(_ event: Event) {
    switch event {
    case .capture: capture()
    case .packet(let packet):
      take(receiver.receive(packet, at: now))
      mostHeld = max(mostHeld, receiver.packetsHeld)
    case .nack(let sequences):
      let again = sender.stream.retransmissions(
        of: sequences, roundTrip: network.delay * 2, within: &sender.retransmissionBudget,
        at: now)
      for (header, payload) in again {
        transmit(.packet(RTPPacket(header: header, payload: payload[...])))
      }
    case .keyframeRequest:
      keyframeRequests += 1
      sender.keyframeRequested(at: now)
    }
  }

  private mutating func capture() {
    let position = captured.count % 4
    let isFirst = captured.isEmpty
    captured.append(now)
    let usual = position == 0 ? frameBytes.base : frameBytes.enhancement
    let isKeyframe = isFirst || sender.wantsKeyframe
    let bytes = isKeyframe ? frameBytes.keyframe : usual * (60 + random.below(80)) / 100
    for packet in sender.frame(bytes: bytes, at: now) { transmit(.packet(packet)) }
    schedule(.capture, at: now + .nanoseconds(33_333_333))
  }

  private mutating func transmit(_ event: Event) {
    let copies = random.chance(network.duplication) ? 2 : 1
    for _ in 0..<copies where !random.chance(network.loss) {
      let extra = Int64(random.unit() * Double(network.jitter.wholeNanoseconds))
      schedule(event, at: now + network.delay + .nanoseconds(extra))
    }
  }

  private mutating func take(_ outputs: [VideoReceiver.Output]) {
    for output in outputs {
      switch output {
      case .frame(let frame):
        shown.append((now + frame.delay, frame.delay, frame.waitsForRepair))
        if let id = decoder.decode(frame.data) {
          delivered.append((now, id))
        } else {
          undecodable += 1
        }
      case .nack(_, let sequences): transmit(.nack(sequences))
      case .requestKeyframe(let ssrc): transmit(.keyframeRequest(ssrc))
      }
    }
  }

  private mutating func schedule(_ event: Event, at instant: Instant) {
    var index = queue.count
    while index > 0, queue[index - 1].at > instant { index -= 1 }
    queue.insert((instant, event), at: index)
  }
}

import MusterBase
import MusterMedia
import MusterWire

/// One speaker, the network and one sound card, on virtual time.
struct AudioSimulation {
  struct Packet {
    var sequence: UInt16
    var timestamp: UInt32
    var number: UInt32
    var level: UInt8
  }

  var buffer = AudioJitterBuffer()
  var loss = 0.0
  /// The number of packets of the next burst that are lost.
  var burst = 0
  /// The round trip with which lost packets are requested; nil if they are not.
  var roundTrip: Duration?
  /// Whether the sender answers requests.
  var retransmits = true
  var delay = Duration.milliseconds(20)
  /// The upper bound of the extra delay of each packet.
  var jitter = Duration.zero
  /// The sender's clock runs faster by this many parts in a million.
  var driftPerMillion: Int64 = 0
  var isSending = true
  /// Packets due earlier arrive at this time.
  var heldUntil = Instant.zero
  var sequence: UInt16 = 65_400
  var timestamp: UInt32 = .max - 48_000
  private(set) var now = Instant.milliseconds(1007)
  private(set) var played: [UInt32] = []
  private(set) var outputs: [AudioJitterBuffer.Playout] = []
  private(set) var sent: UInt32 = 0
  private var nextSend = Instant.milliseconds(1000)
  private var random: PRNG
  private var inFlight: [(at: Instant, packet: Packet)] = []
  private var receiver = AudioReceiver(ssrc: 1)
  /// The packets that may be requested, by sequence number.
  private var history: [UInt16: Packet] = [:]
  private(set) var requested = 0

  init(seed: UInt64) { random = PRNG(seed: seed) }

  /// The playouts during `duration`.
  mutating func run(for duration: Duration) -> ArraySlice<AudioJitterBuffer.Playout> {
    let first = outputs.count
    let end = now + duration
    while now < end {
      while nextSend <= now { send() }
      receive()
      for playout in buffer.next(at: now) {
        outputs.append(playout)
        if case .decode(let payload, _) = playout { played.append(Self.number(payload)) }
      }
      now = now + .milliseconds(20)
    }
    return outputs[first...]
  }

  /// Handles the arrivals and the requests for missing packets until now, in order.
  private mutating func receive() {
    while true {
      let arrival = inFlight.first?.at ?? .zero + .seconds(1_000_000)
      let request = roundTrip == nil ? nil : receiver.deadline
      if let request, request <= min(now, arrival) {
        requestMissing(at: request)
      } else if arrival <= now {
        let packet = inFlight.removeFirst().packet
        let header = RTPHeader(
          marker: false, payloadType: PayloadType.opus, sequence: packet.sequence,
          timestamp: packet.timestamp, ssrc: 1)
        _ = receiver.receive(RTPPacket(header: header, payload: []), at: arrival)
        buffer.repairTime = roundTrip.flatMap { AudioReceiver.repairTime(roundTrip: $0) }
        buffer.insert(
          sequence: packet.sequence, timestamp: packet.timestamp,
          frames: [Self.payload(packet.number)], level: packet.level, at: arrival)
      } else {
        return
      }
    }
  }

  private mutating func requestMissing(at instant: Instant) {
    guard let roundTrip else { return }
    let missing = receiver.missing(roundTrip: roundTrip, at: instant)
    requested += missing.count
    guard retransmits, !random.chance(loss) else { return }
    for packet in missing.compactMap({ history[$0] }) where !random.chance(loss) {
      enqueue(packet, at: instant + roundTrip)
    }
  }

  private mutating func send() {
    if isSending {
      sent += 1
      let extra = Int64(random.unit() * Double(jitter.wholeNanoseconds))
      // Three seconds of speech, one of quiet.
      let level: UInt8 = sent % 200 < 150 ? 25 : 70
      let packet = Packet(sequence: sequence, timestamp: timestamp, number: sent, level: level)
      sequence &+= 1
      history[packet.sequence] = packet
      history[packet.sequence &- 64] = nil
      burst -= 1
      if burst < 0, !random.chance(loss) {
        enqueue(packet, at: max(nextSend + delay + .nanoseconds(extra), heldUntil))
      }
    }
    timestamp &+= 960
    nextSend = nextSend + .nanoseconds(20_000_000 - 20 * driftPerMillion)
  }

  private mutating func enqueue(_ packet: Packet, at instant: Instant) {
    var index = inFlight.count
    while index > 0, inFlight[index - 1].at > instant { index -= 1 }
    inFlight.insert((instant, packet), at: index)
  }

  private static func payload(_ number: UInt32) -> [UInt8] {
    (0..<4).map { UInt8(truncatingIfNeeded: number >> UInt32(8 * $0)) }
  }

  private static func number(_ payload: [UInt8]) -> UInt32 {
    payload.reversed().reduce(0) { $0 << 8 | UInt32($1) }
  }
}

extension Collection<AudioJitterBuffer.Playout> {
  var decoded: Int { count { if case .decode = $0 { true } else { false } } }
  var recovered: Int { count { if case .recover = $0 { true } else { false } } }
  var concealed: Int { count { $0 == .conceal } }
  var silent: Int { count { $0 == .silence } }
}

import MusterBase
import MusterWire

/// A model of a TCP CUBIC flow (RFC 9438) that always has data to send: both ends of it.
///
/// Datagrams are UDP payloads of the simulated network. Every segment is acknowledged by its
/// number, as with SACK, and is lost once one sent later and at least three numbers higher has been
/// acknowledged (RFC 6675). There is no handshake, no receive window and no HyStart.
package struct CubicFlow: Sendable {
  /// The UDP payload that stands for a segment: 1500 bytes with the headers of the simulated
  /// network.
  static let segmentBytes = 1500 - Pipe.headerBytes
  /// The UDP payload of an acknowledgement: 52 bytes with headers and a SACK option.
  static let acknowledgementBytes = 52 - Pipe.headerBytes
  /// CUBIC's C and beta (RFC 9438 section 5).
  static let aggressiveness = 0.4
  static let decrease = 0.7
  static let initialWindow = 10.0
  static let reordering: UInt32 = 3
  static let leastTimeout = Duration.seconds(1)

  private enum State: Equatable, Sendable {
    case sent(at: Instant)
    case acknowledged, lost
  }

  // The sender.
  /// The number of the segment that `states` begins with; all before it are acknowledged.
  private var first: UInt32 = 0
  private var states: [State] = []
  private var inFlight = 0
  /// The congestion window and the slow-start threshold in segments.
  package private(set) var window = initialWindow
  private var threshold = Double.infinity
  /// The window before the last decrease, and the time and the window after it.
  private var highestWindow = 0.0
  private var epoch = (at: Instant.zero, window: 0.0)
  /// The segment whose acknowledgement ends the recovery.
  private var recoversAt: UInt32 = 0
  private var roundTrip = Duration.milliseconds(200)
  private var heardAt: Instant
  private var hasEnded = false

  // The receiver.
  private var received = NumberSet()
  /// The first segment that has not been received.
  private var expected: UInt32 = 0
  /// The segments received, each counted once.
  package private(set) var segmentsReceived: UInt64 = 0

  /// A flow that starts now.
  package init(at now: Instant) { heardAt = now }

  /// The time of the retransmission timeout.
  package var deadline: Instant { heardAt + max(Self.leastTimeout, roundTrip * 3) }

  /// Ends the flow: lost segments are not sent again either.
  package mutating func end() { hasEnded = true }

  // MARK: The receiver

  /// Receives a segment; returns its acknowledgement.
  package mutating func receive(segment datagram: [UInt8]) -> [UInt8]? {
    var reader = Reader(datagram)
    guard let number = try? reader.u32() else { return nil }
    if received.insert(UInt64(number)) { segmentsReceived += 1 }
    while received.contains(UInt64(expected)) { expected += 1 }
    return Self.datagram([number, expected], bytes: Self.acknowledgementBytes)
  }

  // MARK: The sender

  /// The segments that the window allows, lost ones first.
  package mutating func send(at now: Instant) -> [[UInt8]] {
    var segments: [[UInt8]] = []
    var index = 0
    while !hasEnded, Double(inFlight) < window {
      while index < states.count, states[index] != .lost { index += 1 }
      if index == states.count { states.append(.lost) }
      states[index] = .sent(at: now)
      inFlight += 1
      segments.append(Self.datagram([first + UInt32(index)], bytes: Self.segmentBytes))
    }
    return segments
  }

  /// Receives an acknowledgement; returns the segments that may now be sent.
  package mutating func receive(acknowledgement datagram: [UInt8], at now: Instant) -> [[UInt8]] {
    var reader = Reader(datagram)
    guard let number = try? reader.u32(), let next = try? reader.u32() else { return [] }
    heardAt = now
    let sentAt = sendTime(of: number)
    if let sentAt { roundTrip = (roundTrip * 7 + (now - sentAt)) / 8 }
    var acknowledged = acknowledge(number) ? 1 : 0
    for earlier in first..<max(first, next) where acknowledge(earlier) { acknowledged += 1 }
    let foundLoss = sentAt.map { findLosses(before: number, sentAt: $0) } ?? false
    if foundLoss, number >= recoversAt { reduce(at: now) }
    let done = states.prefix { $0 == .acknowledged }.count
    states.removeFirst(done)
    first += UInt32(done)
    if first >= recoversAt { grow(by: Double(acknowledged), at: now) }
    return send(at: now)
  }

  /// Handles the retransmission timeout; returns the segments to send.
  package mutating func tick(at now: Instant) -> [[UInt8]] {
    guard now >= deadline else { return [] }
    heardAt = now
    for index in states.indices where states[index] != .acknowledged { states[index] = .lost }
    inFlight = 0
    reduce(at: now)
    window = 1
    return send(at: now)
  }

  private func index(of number: UInt32) -> Int? {
    guard number >= first, number - first < UInt32(states.count) else { return nil }
    return Int(number - first)
  }

  private func sendTime(of number: UInt32) -> Instant? {
    guard let index = index(of: number), case .sent(let at) = states[index] else { return nil }
    return at
  }

  /// Whether the segment had not been acknowledged before.
  private mutating func acknowledge(_ number: UInt32) -> Bool {
    guard let index = index(of: number), states[index] != .acknowledged else { return false }
    if states[index] != .lost { inFlight -= 1 }
    states[index] = .acknowledged
    return true
  }

  private mutating func findLosses(before number: UInt32, sentAt: Instant) -> Bool {
    guard let end = index(of: number), end >= Int(Self.reordering) else { return false }
    var isFound = false
    for index in 0...(end - Int(Self.reordering)) {
      guard case .sent(let at) = states[index], at < sentAt else { continue }
      states[index] = .lost
      inFlight -= 1
      isFound = true
    }
    return isFound
  }

  private mutating func reduce(at now: Instant) {
    // Fast convergence (section 4.7): a flow that shrinks leaves more room to the others.
    highestWindow = window < highestWindow ? window * (1 + Self.decrease) / 2 : window
    window = max(window * Self.decrease, 2)
    threshold = window
    epoch = (now, window)
    recoversAt = first + UInt32(states.count)
  }

  private mutating func grow(by acknowledged: Double, at now: Instant) {
    guard window >= threshold else {
      window += acknowledged
      return
    }
    let time = (now - epoch.at).inSeconds
    let rise = Math.cubeRoot(max(highestWindow - epoch.window, 0) / Self.aggressiveness)
    let distance = time + roundTrip.inSeconds - rise
    let target = Self.aggressiveness * distance * distance * distance + highestWindow
    let bounded = min(max(target, window), 1.5 * window)
    // The window that Reno would have with this decrease (section 4.3).
    let reno =
      epoch.window + 3 * (1 - Self.decrease) / (1 + Self.decrease) * time / roundTrip.inSeconds
    window = max(window + acknowledged * (bounded - window) / window, reno)
  }

  private static func datagram(_ numbers: [UInt32], bytes: Int) -> [UInt8] {
    var writer = Writer(capacity: bytes)
    for number in numbers { writer.u32(number) }
    return writer.bytes + [UInt8](repeating: 0, count: bytes - writer.bytes.count)
  }
}

import MusterBase
import MusterWire

/// The arrival times of the latest packets of a session, from which feedback is made.
struct ArrivalLog: Sendable {
  static let capacity = CongestionFeedback.limit

  /// The arrival times by packet number modulo `capacity`, in units of
  /// `CongestionFeedback.Arrival.unit`; nil for packets that have not arrived.
  private var times: [Int64?] = []
  /// The numbers that the log knows about, at most `capacity`; nil before the first arrival.
  private var known: ClosedRange<UInt64>?
  /// The first number of the next report.
  private var base: UInt64 = 0
  /// The number after those of the last report.
  private var reportedEnd: UInt64 = 0

  /// Records a packet that is no replay; packet numbers end before 2^64 - 2^13. Returns whether it
  /// leaves a gap, that is, numbers that are below its own and have not arrived. Packets from
  /// before the first recorded one are ignored, since nothing is known of their neighbours.
  mutating func record(_ number: UInt64, at now: Instant) -> Bool {
    guard let known else {
      times = [Int64?](repeating: nil, count: Self.capacity)
      known = number...number
      (base, reportedEnd) = (number, number)
      self[number] = Self.units(now)
      return false
    }
    guard number > known.upperBound else {
      guard number >= known.lowerBound else { return false }
      self[number] = Self.units(now)
      base = min(base, number)
      return false
    }
    let lowest = number - min(number, UInt64(Self.capacity - 1))
    for missing in max(known.upperBound + 1, lowest)..<number { self[missing] = nil }
    self[number] = Self.units(now)
    self.known = max(known.lowerBound, lowest)...number
    return number > known.upperBound + 1
  }

  /// Reports the packets that the last report did not cover, those that it was the first to cover,
  /// since it may be lost, and those that have arrived since they were reported as missing. Nil
  /// before the first arrival.
  mutating func report(of session: UInt32, at now: Instant) -> CongestionFeedback? {
    guard let known else { return nil }
    let time = Self.units(now)
    let numbers = min(max(base, known.lowerBound), known.upperBound)...known.upperBound
    let arrivals =
      numbers.map { number in
        self[number].map { .init(age: UInt32(clamping: time - $0)) } ?? .missing
      } as [CongestionFeedback.Arrival]
    (base, reportedEnd) = (reportedEnd, known.upperBound + 1)
    return CongestionFeedback(
      session: session, base: numbers.lowerBound, time: UInt32(truncatingIfNeeded: time),
      arrivals: arrivals)
  }

  private subscript(number: UInt64) -> Int64? {
    get { times[Int(number % UInt64(Self.capacity))] }
    set { times[Int(number % UInt64(Self.capacity))] = newValue }
  }

  private static func units(_ now: Instant) -> Int64 { now.nanoseconds / unit }

  private static let unit = CongestionFeedback.Arrival.unit.wholeNanoseconds
}

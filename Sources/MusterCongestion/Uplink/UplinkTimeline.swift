import MusterBase

/// The bytes that have left the uplink over the last two seconds, and when it was busy.
///
/// A packet leaves the queue at the uplink as much later than it was sent as it arrives later than
/// the fastest one on its path. So the packets of all paths are on one clock, that of the sender.
struct UplinkTimeline: Sendable {
  /// The resolution, and the time that is remembered.
  private static let slot = Duration.milliseconds(20)
  private static let slots = 100
  /// The most slots in which nothing leaves a busy uplink. More of them show that what has left is
  /// not known.
  private static let gap = 5
  /// The wait from which a packet shows that the uplink was busy.
  private static let busyWait = Duration.milliseconds(10)

  private struct Slot: Sendable {
    var number = -1
    var bytes = 0
    /// Whether a packet waited in it, and whether one passed without.
    var isBusy = false
    var isIdle = false
  }

  private var table = [Slot](repeating: Slot(), count: slots)

  /// Adds a packet that was sent at this time, and waited.
  mutating func add(bytes: Int, sentAt: Instant, wait: Duration) {
    let last = number(sentAt + wait)
    modify(last) { slot in
      slot.bytes += bytes
      if wait < Self.busyWait { slot.isIdle = true }
    }
    guard wait >= Self.busyWait else { return }
    for number in max(number(sentAt), last - Self.slots + 1)...last {
      modify(number) { $0.isBusy = true }
    }
  }

  /// The rate over the longest time between these two in which every packet waited, if it lasted as
  /// long as `least`.
  func rateWhileBusy(from start: Instant, to end: Instant, least: Duration) -> DataRate? {
    let (first, last) = (number(start), number(end))
    var longest: (count: Int, bytes: Int) = (0, 0)
    // From one slot in which packets leave to another.
    var run: (first: Int, last: Int, bytes: Int)?
    for number in max(first, last - Self.slots + 1)..<max(first, last) {
      let slot = table[number % Self.slots]
      guard slot.number == number, slot.isBusy, !slot.isIdle else {
        run = nil
        continue
      }
      guard slot.bytes > 0 else { continue }
      if let former = run, number - former.last <= Self.gap {
        run = (former.first, number, former.bytes + slot.bytes)
      } else {
        run = (number, number, slot.bytes)
      }
      if let run, run.last - run.first >= longest.count {
        longest = (run.last - run.first + 1, run.bytes)
      }
    }
    let time = Self.slot * longest.count
    return time >= least ? DataRate(bytes: Double(longest.bytes), over: time) : nil
  }

  private func number(_ time: Instant) -> Int {
    Int(max((time - .zero) / Self.slot, 0))
  }

  private mutating func modify(_ number: Int, _ body: (inout Slot) -> Void) {
    let index = number % Self.slots
    if table[index].number > number { return }
    if table[index].number < number { table[index] = Slot(number: number) }
    body(&table[index])
  }
}

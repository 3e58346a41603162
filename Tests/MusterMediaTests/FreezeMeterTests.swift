import MusterBase
import MusterMedia
import Testing

@Suite struct FreezeMeterTests {
  private static func steady(from start: Int = 33, until end: Int = 2000) -> [Int] {
    Array(stride(from: start, to: end, by: 33))
  }

  /// Frames at these times in milliseconds, and the freezes counted until 2 s.
  @Test(arguments: [
    (steady(), 0, 0),
    // A gap below the mean plus 150 ms is none.
    (steady(until: 1000) + steady(from: 1150), 0, 0),
    (steady(until: 1000) + steady(from: 1300), 1, 310),
    // Slow video has longer gaps without freezing.
    (Array(stride(from: 100, to: 2000, by: 200)), 0, 0),
    // A gap that is still open counts, even without any frame.
    (steady(until: 1000), 1, 1010),
    ([], 1, 2000),
  ])
  func freezes(shown: [Int], freezes: Int, milliseconds: Int) {
    var meter = FreezeMeter(interval: .milliseconds(33), from: .zero)
    for time in shown { meter.shown(at: .milliseconds(time)) }
    meter.end(at: .milliseconds(2000))
    #expect(meter.freezes == freezes)
    #expect(meter.frozen == .milliseconds(milliseconds))
  }

  @Test func whatIsPausedOrOfAnotherRateIsNoFreeze() {
    var meter = FreezeMeter(interval: .milliseconds(33))
    meter.shown(at: .milliseconds(5000))
    meter.pause()
    meter.shown(at: .milliseconds(9000))
    #expect(meter.freezes == 0)
    #expect(meter.isFreeze(.milliseconds(184)) && !meter.isFreeze(.milliseconds(183)))
    meter.expect(interval: .milliseconds(200))
    #expect(meter.isFreeze(.milliseconds(601)) && !meter.isFreeze(.milliseconds(600)))
    // A frame that may be shown before the one in front of it ends no interval anew.
    meter.shown(at: .milliseconds(8900))
    meter.end(at: .milliseconds(9601))
    #expect(meter.freezes == 1 && meter.frozen == .milliseconds(601))
    #expect(meter.longest == meter.frozen)
  }
}

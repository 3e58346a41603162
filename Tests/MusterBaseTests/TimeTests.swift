import MusterBase
import Testing

@Test func instantsAndDurationsAddUp() {
  let start = Instant(nanoseconds: 5_000_000_000)
  #expect(start + .milliseconds(250) == Instant(nanoseconds: 5_250_000_000))
  #expect(start + .milliseconds(250) - start == .milliseconds(250))
  #expect(start - (start + .seconds(1)) == .seconds(-1))
  #expect(start.advanced(by: .seconds(-6)) < .zero)
  #expect(start.duration(to: .zero) == .seconds(-5))
}

@Test(
  arguments: [
    (Duration.zero, 0), (.nanoseconds(1), 1), (.nanoseconds(-1), -1), (.seconds(3), 3_000_000_000),
    (.seconds(-3) - .nanoseconds(7), -3_000_000_007), (.seconds(Int64.max), .max),
    (.seconds(Int64.min), .min), (.seconds(9_223_372_036) + .milliseconds(900), .max),
    (.seconds(-9_223_372_036) - .milliseconds(900), .min),
  ] as [(Duration, Int64)])
func durationsAreClampedToSixtyFourBits(duration: Duration, nanoseconds: Int64) {
  #expect(duration.wholeNanoseconds == nanoseconds)
}

@Test func durationsConvertToSeconds() {
  #expect(Duration.milliseconds(1500).inSeconds == 1.5)
  #expect(Duration.microseconds(1500).inMilliseconds == 1.5)
}

@Test func theSoonestDeadlineWins() {
  let early = Instant(nanoseconds: 1)
  let late = Instant(nanoseconds: 2)
  #expect(soonest(Instant?.none, nil) == nil)
  #expect(soonest(early, nil) == early)
  #expect(soonest(nil, late) == late)
  #expect(soonest(late, early) == early)
}

@Test func aBucketRefillsToItsCapacityAndNoFurther() {
  var bucket = TokenBucket(capacity: 3, perSecond: 2)
  var now = Instant(nanoseconds: 0)
  #expect((0..<3).allSatisfy { _ in bucket.take(at: now) })
  #expect(bucket.take(at: now) == false)
  now = now + .milliseconds(500)
  #expect(bucket.take(at: now) == true)
  #expect(bucket.take(at: now) == false)
  now = now + .seconds(3600)
  #expect(bucket.take(3, at: now) == true)
  #expect(bucket.take(0.1, at: now) == false)
}

@Test func aBucketGainsNothingFromTimeThatRunsBack() {
  var bucket = TokenBucket(capacity: 1, perSecond: 1)
  let now = Instant(nanoseconds: 10_000_000_000)
  #expect(bucket.take(at: now) == true)
  #expect(bucket.take(at: now + .seconds(-9)) == false)
  #expect(bucket.take(at: now) == false)
  #expect(bucket.take(at: now + .seconds(1)) == true)
}

@Test func theLeastOfAPeriodIsForgottenAfterOneOrTwo() {
  var least = PeriodMinimum<Int>(period: .seconds(10))
  #expect(least.value == nil)
  let steps = [(0, 5, 5), (4, 3, 3), (9, 7, 3), (10, 8, 3), (19, 6, 3), (20, 9, 6), (31, 9, 9)]
  for (second, value, expected) in steps {
    least.add(value, at: .zero + .seconds(second))
    #expect(least.value == expected, "\(second)")
  }
}

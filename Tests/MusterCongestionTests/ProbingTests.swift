import MusterBase
import MusterCongestion
import Testing

/// A prober on a virtual clock.
private struct World {
  var prober = ProbeController()
  var now = Instant.zero + .seconds(100)

  /// The rate of the cluster to send.
  mutating func probe(
    _ estimate: Double, demand: Double = 4_000, _ cause: ProbeController.Cause = .nothing,
    recovered: Bool = false, isApplicationLimited: Bool = false, after time: Duration = .zero
  ) -> Double? {
    now = now + time
    return prober.next(
      estimate: DataRate(kbps: estimate), demand: DataRate(kbps: demand), cause: cause,
      recovered: recovered, isApplicationLimited: isApplicationLimited, at: now
    )?.rate.kbps
  }
}

struct ProbeControllerTests {
  @Test func aPathIsProbedAtItsStart() {
    var world = World()
    #expect(world.probe(300) == 900)
    // Less than 0.7 of the last one has arrived; after 3 s it is tried again.
    #expect(world.probe(600, after: .milliseconds(100)) == nil)
    #expect(world.probe(600, after: .milliseconds(2_800)) == nil)
    #expect(world.probe(600, after: .milliseconds(100)) == 1_200)
  }

  @Test func theStartEndsWithTheAnswersOrAfterHalfASecond() {
    var world = World()
    #expect(world.prober.isStarting(at: world.now))
    _ = world.probe(300)
    #expect(world.prober.isStarting(at: world.now + .milliseconds(499)))
    #expect(!world.prober.isStarting(at: world.now + .milliseconds(500)))
    // Where nothing is missing, nothing is probed.
    var other = World()
    _ = other.probe(300, demand: 200)
    #expect(!other.prober.isStarting(at: other.now))
  }

  @Test func successfulProbesAreFollowedByOthers() {
    var world = World()
    _ = world.probe(300)
    for result in [900.0, 1_800, 3_600, 7_200, 14_400] {
      #expect(world.probe(result, after: .milliseconds(100)) == result * 2)
    }
    #expect(world.probe(28_800, after: .milliseconds(100)) == 30_000)
    #expect(world.probe(30_000, after: .milliseconds(100)) == nil)
    #expect(world.probe(30_000, after: .seconds(10)) == nil)
  }

  /// A result that comes later than a second belongs to something else.
  @Test func aLateResultIsNotFollowed() {
    var world = World()
    _ = world.probe(300)
    #expect(world.probe(900, after: .milliseconds(1_100)) == nil)
  }

  @Test func onlyDemandIsProbedFor() {
    var world = World()
    #expect(world.probe(300, demand: 200) == nil)
    #expect(world.probe(300, demand: 350) == 900)
    // While probes succeed, there are others, up to 16 times the demand.
    #expect(world.probe(900, demand: 350, after: .milliseconds(100)) == 1_800)
    #expect(world.probe(1_800, demand: 350, after: .milliseconds(100)) == 3_600)
    #expect(world.probe(3_600, demand: 350, after: .milliseconds(100)) == 5_600)
    #expect(world.probe(5_600, demand: 350, after: .milliseconds(100)) == nil)
    #expect(world.probe(400, demand: 350, after: .seconds(60)) == nil)
  }

  @Test func aCongestedPathIsNotProbed() {
    var world = World()
    #expect(world.probe(300, .congestion) == nil)
    #expect(world.probe(300, after: .seconds(1)) == 900)
    #expect(world.probe(300, .congestion, after: .seconds(9)) == nil)
    #expect(world.probe(400, .loss, after: .seconds(1)) == 600)
  }

  @Test func aPathThatHasRecoveredFromALargeDropIsProbed() {
    var world = World()
    _ = world.probe(300)
    _ = world.probe(2_000, after: .milliseconds(1_500))
    let soon = Duration.milliseconds(300)
    #expect(world.probe(1_000, .congestion, after: soon) == nil)
    #expect(world.probe(1_000, recovered: true, after: soon) == nil)
    let probes = world.probe(1_000, recovered: true, isApplicationLimited: true, after: soon)
    #expect(probes == 1_700)
    // Not twice in 5 s.
    _ = world.probe(600, .congestion, after: soon)
    #expect(world.probe(600, recovered: true, isApplicationLimited: true, after: soon) == nil)
  }
}

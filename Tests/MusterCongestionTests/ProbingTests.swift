import MusterBase
import MusterCongestion
import Testing

/// A prober on a virtual clock.
private struct World {
  var prober = ProbeController()
  var now = Instant.zero + .seconds(100)

  /// The rates of the clusters to send.
  mutating func probes(
    _ estimate: Double, demand: Double = 4_000, _ cause: ProbeController.Cause = .nothing,
    recovered: Bool = false, isApplicationLimited: Bool = false, after time: Duration = .zero
  ) -> [Double] {
    now = now + time
    return prober.next(
      estimate: DataRate(kbps: estimate), demand: DataRate(kbps: demand), cause: cause,
      recovered: recovered, isApplicationLimited: isApplicationLimited, at: now
    ).map(\.rate.kbps)
  }
}

struct ProbeControllerTests {
  @Test func aPathIsProbedAtItsStart() {
    var world = World()
    #expect(world.probes(300) == [900, 1_800])
    // Less than 0.7 of the last one has arrived; after 3 s it is tried again.
    #expect(world.probes(1_200, after: .milliseconds(100)) == [])
    #expect(world.probes(1_200, after: .milliseconds(2_800)) == [])
    #expect(world.probes(1_200, after: .milliseconds(100)) == [2_400])
  }

  @Test func theStartEndsWithTheAnswersOrAfterHalfASecond() {
    var world = World()
    #expect(world.prober.isStarting(at: world.now))
    _ = world.probes(300)
    #expect(world.prober.isStarting(at: world.now + .milliseconds(499)))
    #expect(!world.prober.isStarting(at: world.now + .milliseconds(500)))
    // Where nothing is missing, nothing is probed.
    var other = World()
    _ = other.probes(300, demand: 200)
    #expect(!other.prober.isStarting(at: other.now))
  }

  @Test func successfulProbesAreFollowedByOthers() {
    var world = World()
    _ = world.probes(300)
    for result in [1_800.0, 3_600, 7_200, 14_400] {
      #expect(world.probes(result, after: .milliseconds(100)) == [result * 2])
    }
    #expect(world.probes(28_800, after: .milliseconds(100)) == [30_000])
    #expect(world.probes(30_000, after: .milliseconds(100)) == [])
    #expect(world.probes(30_000, after: .seconds(10)) == [])
  }

  /// A result that comes later than a second belongs to something else.
  @Test func aLateResultIsNotFollowed() {
    var world = World()
    _ = world.probes(300)
    #expect(world.probes(1_800, after: .milliseconds(1_100)) == [])
  }

  @Test func onlyDemandIsProbedFor() {
    var world = World()
    #expect(world.probes(300, demand: 200) == [])
    #expect(world.probes(300, demand: 350) == [900, 1_800])
    // While probes succeed, there are others, up to 16 times the demand.
    #expect(world.probes(1_800, demand: 350, after: .milliseconds(100)) == [3_600])
    #expect(world.probes(3_600, demand: 350, after: .milliseconds(100)) == [5_600])
    #expect(world.probes(5_600, demand: 350, after: .milliseconds(100)) == [])
    #expect(world.probes(400, demand: 350, after: .seconds(60)) == [])
  }

  @Test func aCongestedPathIsNotProbed() {
    var world = World()
    #expect(world.probes(300, .congestion) == [])
    #expect(world.probes(300, after: .seconds(1)) == [900, 1_800])
    #expect(world.probes(300, .congestion, after: .seconds(9)) == [])
    #expect(world.probes(400, .loss, after: .seconds(1)) == [600])
  }

  @Test func aPathThatHasRecoveredFromALargeDropIsProbed() {
    var world = World()
    _ = world.probes(300)
    _ = world.probes(2_000, after: .milliseconds(1_500))
    let soon = Duration.milliseconds(300)
    #expect(world.probes(1_000, .congestion, after: soon) == [])
    #expect(world.probes(1_000, recovered: true, after: soon) == [])
    let probes = world.probes(1_000, recovered: true, isApplicationLimited: true, after: soon)
    #expect(probes == [1_700])
    // Not twice in 5 s.
    _ = world.probes(600, .congestion, after: soon)
    #expect(world.probes(600, recovered: true, isApplicationLimited: true, after: soon) == [])
  }
}

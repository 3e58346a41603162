import MusterBase
import MusterSimulator
import Testing

/// Calls of participants who reach one another only through another member.
@Suite struct RelayedCallTests {
  private static let small = VideoSize(width: 640, height: 360)
  private static let large = VideoSize(width: 1280, height: 720)

  /// Runs a call of 60 s; the relay has this access link and neither camera nor microphone.
  private func flows(
    participants: Int, video: VideoSize, relay conditions: PathConditions = .ideal, seed: UInt64
  ) throws -> [FlowReport] {
    var everyone = (0..<participants).map { index in
      var one = NetworkScenario.Participant("node\(index)", video: video)
      one.severedFrom = Array(index + 1..<participants)
      return one
    }
    var relay = NetworkScenario.Participant("relay")
    (relay.speaks, relay.watches) = (false, false)
    relay.up = [.init(at: .zero, conditions: conditions)]
    everyone.append(relay)
    let scenario = NetworkScenario("relayed", "", seconds: 60, everyone)
    let result = Tier.call(scenario, seed: seed)
    #expect(result.violation == nil)
    let flows = result.flows.filter { $0.from != "relay" && $0.to != "relay" }
    try #require(flows.count == participants * (participants - 1))
    return flows
  }

  @Test(arguments: Tier.seeds(1, of: 4))
  func aRelayedPairSendsWhatTheRelayForwards(seed: UInt64) throws {
    // 2.7 Mbit/s each way are wanted; a relay forwards 1 Mbit/s.
    for flow in try flows(participants: 2, video: Self.large, seed: seed) {
      let video = try #require(flow.video)
      #expect(video.frames >= video.framesCaptured * 27 / 30)
      #expect(video.frozen <= .seconds(3) && video.size == Self.large, "seed \(seed)")
      #expect(flow.audioLostPercent <= 0.1)
    }
  }

  @Test(arguments: Tier.seeds(1, of: 4))
  func pairsShareARelay(seed: UInt64) throws {
    // 5.5 Mbit/s are wanted in all; a relay forwards 4 Mbit/s.
    for flow in try flows(participants: 3, video: Self.small, seed: seed) {
      let video = try #require(flow.video)
      #expect(video.frames >= video.framesCaptured / 2)
      #expect(video.freezes == 0 && flow.audioLostPercent == 0)
    }
  }

  @Test(.enabled(if: Tier.isAll, "a statistic"))
  func aRelayedPairFollowsTheLinkOfItsRelay() throws {
    // Both directions leave the relay by the same uplink.
    var conditions = PathConditions.ideal
    conditions.kilobitsPerSecond = 1000
    conditions.queueLimit = .milliseconds(300)
    // About one call in ten loses something for a moment.
    var disturbed: [UInt64] = []
    for seed in UInt64(1)...12 {
      let flows = try flows(participants: 2, video: Self.small, relay: conditions, seed: seed)
      for flow in flows {
        let video = try #require(flow.video)
        #expect(video.frames >= video.framesCaptured * 27 / 30, "seed \(seed)")
        let isWhole = video.freezes == 0 && flow.audioLostPercent == 0
        if !isWhole, disturbed.last != seed { disturbed.append(seed) }
      }
      let estimated = flows.compactMap(\.estimatedKilobitsPerSecond).reduce(0, +)
      #expect(700 < estimated && estimated < 1000, "seed \(seed)")
    }
    #expect(disturbed.count <= 3, "\(disturbed)")
  }
}

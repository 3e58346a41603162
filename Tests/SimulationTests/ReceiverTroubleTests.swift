import MusterBase
import MusterSimulator
import Testing

@Suite struct ReceiverTroubleTests {
  /// The troubles of a receiver of the same layer.
  enum Trouble: CaseIterable {
    case narrow, narrower, closed, lossy, slow
  }

  /// The sender's encoder follows the receiver with the most bandwidth, so that the other's trouble
  /// changes neither size nor rate nor, by more than 2 %, the bitrate of what this one gets.
  @Test(
    arguments: Tier.cases([Trouble.narrow, .lossy], and: [.narrower, .closed, .slow]),
    Tier.seeds(1, of: 2))
  func aReceiversTroubleIsItsOwn(trouble: Trouble, seed: UInt64) throws {
    let size = VideoSize(width: 640, height: 360)
    func received(with conditions: PathConditions) throws -> (free: FlowReport, other: FlowReport) {
      let sender = NetworkScenario.Participant("anna", video: size)
      var other = NetworkScenario.Participant("berta")
      other.down = [
        .init(at: .zero, conditions: .ideal), .init(at: .seconds(10), conditions: conditions),
        .init(at: .seconds(30), conditions: .ideal),
      ]
      let free = NetworkScenario.Participant("carla")
      let scenario = NetworkScenario("trouble", "", seconds: 45, [sender, other, free])
      let flows = Tier.call(scenario, seed: seed).flows
      return (
        try #require(flows.first { $0.from == "anna" && $0.to == "carla" }),
        try #require(flows.first { $0.from == "anna" && $0.to == "berta" })
      )
    }
    var conditions = PathConditions.ideal
    switch trouble {
    case .narrow: conditions.kilobitsPerSecond = 500
    case .narrower: conditions.kilobitsPerSecond = 200
    case .closed: conditions.loss = 1
    case .lossy: conditions.loss = 0.1
    case .slow: (conditions.delay, conditions.jitter) = (.milliseconds(300), .milliseconds(50))
    }
    let (quiet, _) = try received(with: .ideal)
    let (free, troubled) = try received(with: conditions)
    let video = try #require(free.video)
    let quietVideo = try #require(quiet.video)
    #expect(abs(free.kilobitsPerSecond / quiet.kilobitsPerSecond - 1) <= 0.02)
    #expect(abs(Double(video.frames) / Double(quietVideo.frames) - 1) <= 0.02)
    #expect(video.size == size && video.layerChanges == 0 && video.freezes == 0)
    #expect(free.audioLostPercent == 0)
    // Where one packet in ten is lost, retransmissions may repair everything.
    let most = trouble == .lossy ? video.frames : video.frames - 1
    #expect(try #require(troubled.video).frames <= most)
  }
}

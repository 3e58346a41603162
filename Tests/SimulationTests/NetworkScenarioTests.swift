import MusterBase
import MusterSimulator
import Testing

@Suite struct NetworkScenarioTests {
  @Test func namesAreUniqueAndFound() {
    for scenario in NetworkScenario.all {
      #expect(NetworkScenario.named(scenario.name) == scenario)
      #expect(!scenario.summary.isEmpty)
    }
    #expect(NetworkScenario.named("none") == nil)
  }

  @Test func stepsBeginAtOnceAndComeInOrder() {
    for scenario in NetworkScenario.all {
      #expect(scenario.participants.count >= 2)
      for participant in scenario.participants {
        #expect(participant.joinsAt + .seconds(10) <= scenario.duration)
        for steps in [participant.up, participant.down] where !steps.isEmpty {
          #expect(steps[0].at == .zero, "\(scenario.name)")
          #expect(zip(steps, steps.dropFirst()).allSatisfy { $0.at < $1.at }, "\(scenario.name)")
          #expect(steps.last.map { $0.at < scenario.duration } == true, "\(scenario.name)")
        }
      }
    }
  }

  @Test func theCapacityIsTheNarrowestLinksOnAverage() throws {
    func link(_ rate: Int?) -> PathConditions {
      var conditions = PathConditions.ideal
      conditions.kilobitsPerSecond = rate
      return conditions
    }
    var sender = NetworkScenario.Participant("sender")
    sender.up = [.init(at: .zero, conditions: link(1000))]
    var receiver = NetworkScenario.Participant("receiver")
    receiver.down = [
      .init(at: .zero, conditions: link(2000)), .init(at: .seconds(10), conditions: link(400)),
      .init(at: .seconds(15), conditions: link(nil)),
    ]
    let scenario = NetworkScenario("", "", seconds: 20, [sender, receiver])
    #expect(scenario.rate(from: 0, to: 1, at: .seconds(9)) == 1000)
    #expect(scenario.rate(from: 0, to: 1, at: .seconds(10)) == 400)
    #expect(scenario.rate(from: 1, to: 0, at: .zero) == nil)
    #expect(scenario.capacity(from: 1, to: 0, between: .zero, and: .seconds(20)) == nil)
    let mean = scenario.capacity(from: 0, to: 1, between: .seconds(5), and: .seconds(20))
    #expect(try #require(mean) == 800)
  }
}

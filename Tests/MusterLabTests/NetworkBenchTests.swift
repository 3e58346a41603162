import Muster
import MusterBase
import MusterLab
import MusterSimulator
import Testing

/// The output of `muster-lab bench network`.
@Suite struct NetworkBenchReportTests {
  private func result() -> CallResult {
    var sender = NetworkScenario.Participant("anna", video: VideoSize(width: 320, height: 180))
    var conditions = PathConditions.ideal
    (conditions.kilobitsPerSecond, conditions.delay) = (1000, .milliseconds(20))
    (conditions.jitter, conditions.loss) = (.milliseconds(10), 0.05)
    sender.up = [.init(at: .zero, conditions: conditions)]
    let receiver = NetworkScenario.Participant("berta")
    return CallSimulation.run(
      NetworkScenario("narrow", "one link", seconds: 7, [sender, receiver]), seed: 1)
  }

  @Test func theTableHasARowForEachFlowWithVideo() {
    let rows = NetworkBenchReport.rows(result())
    #expect(rows.count == 1)
    #expect(rows[0].hasPrefix("narrow           anna > berta "))
    let titles = NetworkBenchReport.header.split(separator: "\n")[0].split(separator: "  ")
    #expect(titles.count == 13)
  }

  @Test func everyFlowIsAJSONObject() {
    let flows = NetworkBenchReport.json(result(), seed: 1).map(\.text)
    #expect(flows.count == 2)
    for part in [#""from":"berta","to":"anna""#, #""video":null"#] {
      #expect(flows[0].contains(part))
    }
    for part in [#""availableKbps":1000.000"#, #""size":"320x180""#] {
      #expect(flows[1].contains(part))
    }
  }

  /// The lab's switch takes the conditions as they are: `Tests/LabTests/switch.py`.
  @Test func conditionsHaveTheKeysOfTheSwitch() throws {
    let text = NetworkBenchReport.json(result().scenario).text
    #expect(
      text.contains(
        #""up":[{"at":0.000,"rate":1000,"queue":200.000,"delay":25.000,"jitter":5.000,"#
          + #""loss":5.000,"burstStart":0.000,"burstEnd":100.000}],"down":[]"#), "\(text)")
    let airtime = NetworkBenchReport.json(try #require(NetworkScenario.named("airtime"))).text
    #expect(airtime.contains(#""wait":6.000,"failures":20.000}"#))
    #expect(text.contains(#""joinsAt":0.000,"video":"320x180","videoKbps":null,"speaks":true,"#))
  }
}

import ArgumentParser
import Muster
import MusterBase
import MusterLab
import Testing

/// The figures and the output of `muster-lab bench mesh`.
@Suite struct MeshBenchTests {
  /// The `in` of a peer.
  private func received(
    _ layer: String, frames: Int, freezes: Int = 0, frozenMs: Double = 0
  ) -> String {
    """
    {"layer":"\(layer)","kbps":0,"frames":\(frames),"framesLost":0,"freezes":\(freezes),\
    "frozenMs":\(frozenMs),"audioLostPercent":0,"why":"receiver-request"}
    """
  }

  private func peer(_ member: String, _ received: String, p95: Double? = nil) -> String {
    let latency = p95.map { #"{"p50":\#($0 / 2),"p95":\#($0)}"# } ?? "null"
    return """
      {"channel":"mesh","member":"\(member)","lossPercent":0,"in":\(received),\
      "latencyMs":\(latency),"streams":[]}
      """
  }

  private func statistics(_ peer: String, lost: Int, received: Int) throws -> StatisticsRecord {
    let event = EventRecord(
      json: Array(
        """
        {"event":"stats","t":1,"node":{"cpu":0,"rssMB":20,"uplinkKbps":300,"relays":[]},\
        "peers":[\(peer)],"counters":{"audio.lost":\(lost),"audio.received":\(received)}}
        """.utf8))
    guard case .statistics(let record) = try #require(event).body else { throw ExitCode(1) }
    return record
  }

  private func change(_ member: String, _ direction: String, _ from: String, _ to: String) throws
    -> LayerRecord
  {
    let event = EventRecord(
      json: Array(
        """
        {"event":"layer","t":1,"channel":"mesh","member":"\(member)","stream":"camera",\
        "direction":"\(direction)","from":"\(from)","to":"\(to)","why":"bandwidth"}
        """.utf8))
    guard case .layer(let record) = try #require(event).body else { throw ExitCode(1) }
    return record
  }

  private func span(
    _ name: String, _ before: StatisticsRecord, _ after: StatisticsRecord,
    _ changes: [LayerRecord] = []
  ) -> MeshSpan {
    var threads = PeerTable<String, Double>()
    (threads["muster"], threads["muster-video"]) = (2, 1)
    return MeshSpan(
      name, before: before, after: after, seconds: 10, threads: threads, cpuSpan: 20,
      changes: changes)
  }

  /// Two nodes. The second one gets half of the frames of the first one, the speaker.
  private func result() throws -> MeshResult {
    let less = try change("b", "out", "640x360@30", "640x360@15")
    let more = try change("b", "out", "640x360@15", "640x360@30")
    let arrives = try change("a", "in", "640x360@30", "640x360@15")
    func first(_ frames: Int, lost: Int, received count: Int) throws -> StatisticsRecord {
      try statistics(
        peer("b", received("320x180@15", frames: frames)), lost: lost, received: count)
    }
    let before = received("640x360@30", frames: 0, freezes: 1, frozenMs: 500)
    let after = received("640x360@15", frames: 150, freezes: 3, frozenMs: 900)
    return MeshResult(
      [
        span(
          "n1", try first(100, lost: 5, received: 100), try first(250, lost: 15, received: 590),
          [less, more, less]),
        span(
          "n2", try statistics(peer("a", before), lost: 0, received: 0),
          try statistics(peer("a", after, p95: 40), lost: 0, received: 0), [arrives]),
      ], speaker: "a", fullRates: (speaker: 30, others: 15))
  }

  @Test func figuresAreThoseOfTheSpan() throws {
    let result = try result()
    let (first, second) = try (#require(result.nodes.first), #require(result.nodes.last))
    #expect(first.frames == 150 && first.fullRatePercent == 100)
    #expect(first.audioLostPercent == 2 && first.latency == nil)
    #expect(second.frames == 150 && second.fullRatePercent == 50)
    #expect(second.freezes == 2 && abs(second.frozenSeconds - 0.4) < 1e-9)
    #expect(second.audioLostPercent == nil)
    #expect(second.latency.map { $0.p50 == 20 && $0.p95 == 40 } ?? false)
    #expect(abs(first.cores - 0.15) < 1e-9)
    #expect(result.total.frames == 300 && abs(result.total.cores - 0.3) < 1e-9)
    #expect(result.total.fullRatePercent.map { abs($0 - 100 * 300 / 450) < 1e-9 } ?? false)
    #expect(result.threads.map(\.name) == ["muster", "muster-video"])
    #expect(result.threads.map(\.cores) == [0.1, 0.05])
    let step = try #require(result.stepDowns.first)
    #expect(result.stepDowns.count == 1 && step.count == 2 && step.why == "bandwidth")
  }

  @Test func theTableShowsNodesThreadsAndSteps() throws {
    let lines = MeshBenchReport.table(try result())
    let first = lines[2].split(separator: " ")
    #expect(first == ["n1", "150", "100.0", "0", "0.00", "2.00", "-", "300", "0.150", "20.0"])
    #expect(lines[3].contains(" 50.0 ") && lines[3].contains("20/40"))
    #expect(lines[4].hasPrefix("all     300     66.7"))
    #expect(lines.contains("  muster-video      0.050"))
    #expect(lines.last == "  640x360@30 > 640x360@15     2 times: bandwidth")
    #expect(MeshBenchReport.table(MeshResult()).last == "  nothing")
  }

  @Test func theResultIsAJSONObject() throws {
    let text = MeshBenchReport.json(try result()).text
    for part in [
      #"{"nodes":[{"name":"n1","frames":150,"fullRatePercent":100.000,"#,
      #""latencyMsMedian":null"#, #""threads":{"muster":0.100,"muster-video":0.050}"#,
      #""steppedDown":[{"from":"640x360@30","to":"640x360@15","why":"bandwidth","count":2}]"#,
    ] {
      #expect(text.contains(part), "\(part)")
    }
  }
}

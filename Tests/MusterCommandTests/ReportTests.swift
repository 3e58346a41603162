import Muster
import MusterCommand
import Testing

/// Times on the command line.
struct ExpiryTests {
  private let now: Int64 = 1_700_000_000

  @Test(arguments: [
    ("30m", 1_800), ("2h", 7_200), ("7d", 604_800), ("1s", 1),
  ])
  func aTimeFromNow(text: String, seconds: Int64) throws {
    #expect(try Expiry.parse(text, now: now) == UInt64(now + seconds))
  }

  @Test func momentsAndDays() throws {
    #expect(try Expiry.parse("never", now: now) == Expiry.never)
    #expect(try Expiry.parse("2026-12-31T18:00Z", now: now) == 1_798_740_000)
    // A date expires at the end of that day.
    #expect(try Expiry.parse("2026-12-31", now: now) == 1_798_761_600)
  }

  @Test(arguments: [
    "", "0s", "soon", "7", "-1h", "2026-02-30", "2026-13-01", "2026-12-31T18:00", "1970-01-02",
    "999999999d",
  ])
  func aBadTimeIsAUsageError(text: String) {
    do {
      _ = try Expiry.parse(text, now: now)
      Issue.record("\(text) is a time")
    } catch { #expect(error.kind == .usage && !error.hint.isEmpty) }
  }
}

/// The output of `muster ping`.
struct PingReportTests {
  private func reply(_ text: String) throws -> PingReply {
    let json = #"{"channels":[],"ping":{"member":"00ff","name":"anna","paths":["# + text + "]}}"
    return try #require(try Administration.Reply(json: Array(json.utf8)).ping)
  }

  @Test func roundTripsOfEachPathAreCountedByThemselves() throws {
    let direct = #"{"channel":"lab","address":"10.0.0.2:9","via":null,"rttMs":"#
    let relayed = #"{"channel":"dev","address":null,"via":"01ff","viaName":"Grace","rttMs":null}"#
    var report = PingReport()
    for roundTrip in ["2", "4", "null"] {
      report.add(try reply("\(direct)\(roundTrip)},\(relayed)"))
    }
    #expect(report.paths.map(\.sent) == [3, 3])
    #expect(report.paths[0].average == 3 && report.paths[1].average == nil)
    #expect(report.paths[1].lossPercent == 100)
    #expect(
      report.json.text
        == #"{"member":"00ff","name":"anna","paths":[{"channel":"lab","address":"10.0.0.2:9","#
        + #""via":null,"viaName":null,"sent":3,"received":2,"lossPercent":33.333,"minMs":2.000,"avgMs":3.000,"#
        + #""maxMs":4.000},{"channel":"dev","address":null,"via":"01ff","viaName":"Grace","sent":3,"received":0,"#
        + #""lossPercent":100.000,"minMs":null,"avgMs":null,"maxMs":null}]}"#)
    let text = report.summary.joined(separator: "\n")
    #expect(text.contains("direct to 10.0.0.2:9, in lab: min 2.0, avg 3.0, max 4.0 ms"))
    #expect(text.contains("relayed by Grace (01ff), in dev: no answer"))
  }
}

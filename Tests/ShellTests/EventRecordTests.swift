import Muster
import MusterBase
import Testing

/// The JSON of events: the fields and their order, and that decoding reads what encoding writes.
struct EventRecordTests {
  private static let lines = [
    #"{"event":"ready","t":0.012,"schema":1,"id":"00ff","key":"00ffee","listen":["[::]:1"],"#
      + #""view":null,"channels":["lab"],"#
      + #""joined":[{"channel":"lab","id":"00aa","kind":"created"}]}"#,
    #"{"event":"member.left","t":1.500,"channel":"lab","member":"00ff","key":"00ffee","#
      + #""name":"anna \"a\"","role":"presenter","inCall":true,"audioMuted":false,"#
      + #""videoMuted":true,"speaking":false,"reason":"crashed"}"#,
    #"{"event":"call.started","t":2.000,"channel":"lab","call":"0a","initiator":"00ff","#
      + #""member":null,"startedAt":1700000000.125,"participants":["00ff","01ff"],"reason":null}"#,
    #"{"event":"call.state","t":2.000,"channel":"lab","state":"connected"}"#,
    #"{"event":"call.cpu","t":2.000,"channel":"lab","step":3}"#,
    #"{"event":"call.speaker","t":2.000,"channel":"lab","member":"00ff"}"#,
    #"{"event":"call.speaker","t":2.000,"channel":"lab","member":null}"#,
    #"{"event":"link.up","t":2.000,"channel":"lab","member":"00ff","address":"10.0.0.1:9","#
      + #""via":null,"reason":null}"#,
    #"{"event":"media.first-frame","t":2.000,"channel":"lab","member":"00ff","stream":"screen","after":0.250,"#
      + #""width":640,"height":360}"#,
    #"{"event":"layer","t":2.000,"channel":"lab","member":"00ff","stream":"camera","direction":"out","from":"off","#
      + #""to":"640x360@30","why":"call-started"}"#,
    #"{"event":"message","t":2.000,"channel":"lab","id":"0b","from":"00ff","to":null,"#
      + #""text":"hé\n","sentAt":1700000000.000}"#,
    #"{"event":"warning","t":3.000,"message":"no camera","hint":"","command":null}"#,
    #"{"event":"error","t":3.000,"message":"no","hint":"yes","command":"{\"do\":1}"}"#,
    #"{"event":"stats","t":4.000,"node":{"cpu":0.100,"rssMB":20.000,"uplinkKbps":0.000,"#
      + #""uplinkLimitKbps":null,"#
      + #""relays":[{"channel":"lab","members":["00ff","01ff"],"kbps":12.500}]},"peers":["#
      + #"{"channel":"lab","member":"00ff","rttMs":null,"lossPercent":0.000,"estimateKbps":null,"#
      + #""queueMs":null,"via":null,"out":null,"in":{"layer":"off","kbps":1.000,"frames":3,"framesLost":0,"#
      + #""freezes":0,"frozenMs":0.000,"audioLostPercent":0.000,"why":"call-started"},"#
      + #""latencyMs":{"p50":1.000,"p95":2.000},"#
      + #""streams":[{"stream":"screen","out":null,"in":null,"latencyMs":null}]}],"#
      + #""counters":{"gossip.entriesSent":7,"#
      + #""link.sessionsMade":1}}"#,
  ]

  @Test(arguments: lines) func aDecodedEventIsEncodedToTheSameBytes(line: String) throws {
    let record = try #require(EventRecord(json: Array(line.utf8)))
    #expect(record.json.text == line)
  }

  @Test func otherLinesAreNoEvents() {
    for text in ["", "{}", #"{"event":"dance","t":1}"#, #"{"event":"layer","t":1}"#, "[]"] {
      #expect(EventRecord(json: Array(text.utf8)) == nil)
    }
  }

  @Test func countersThatAreZeroAreLeftOut() {
    let record = CounterRecord([.init("a", 0), .init("b", 2)])
    #expect(JSONValue(encoding: record).text == #"{"b":2}"#)
    #expect(record["a"] == 0 && record["b"] == 2)
  }

  @Test func aReplyHasWhatItsRequestAskedFor() {
    var reply = Administration.Reply()
    #expect(reply.json.text == #"{"channels":[]}"#)
    reply.code = "12345 67890"
    #expect(reply.json.text == #"{"code":"12345 67890","channels":[]}"#)
  }
}

import MusterBase
import MusterCongestion
import Testing

/// The rate of the video to a peer that reports nothing but its losses.
struct ReportedLossTests {
  /// A sender of 2,000 kbit/s, or of the limit where that is lower, in packets of 1,000 bytes,
  /// beside 50 packets of audio a second.
  private struct Sender {
    var control = ReportedLoss(at: .zero)
    var bytes: UInt64 = 0
    var seconds = 0
    var now: Instant { .zero + .seconds(seconds) }

    /// Sends for a second and takes the report of it; returns the rate.
    mutating func second(losing share: Double) -> DataRate {
      let rate = min(control.limit ?? DataRate(kbps: 2_000), DataRate(kbps: 2_000))
      let sent = rate.bytes(in: .seconds(1))
      bytes += UInt64(sent)
      seconds += 1
      let packets = Int(sent / 1000) + 50
      control.reported(
        [Reception(expected: packets, lost: Int(Double(packets) * share))], bytes: bytes,
        roundTrip: .milliseconds(50), at: now)
      return rate
    }
  }

  @Test func fewLossesLimitNothing() {
    var sender = Sender()
    for _ in 0..<60 { #expect(sender.second(losing: 0.05) == DataRate(kbps: 2_000)) }
    #expect(sender.control.limit == nil && sender.control.admitsVideo)
  }

  /// 50 % cost the video within seconds, whatever the encoder would send.
  @Test(arguments: [0.4, 0.5, 0.9])
  func heavyLossesEndTheVideo(share: Double) {
    var sender = Sender()
    let rates = (0..<30).map { _ in sender.second(losing: share) }
    #expect(rates[12] < DataRate(kbps: 250) && rates[29] < DataRate(kbps: 50))
    #expect(zip(rates, rates.dropFirst()).allSatisfy { $0 >= $1 })
  }

  @Test func itRisesAgainWhenTheLossesEnd() {
    var sender = Sender()
    for _ in 0..<8 { _ = sender.second(losing: 0.5) }
    let low = sender.second(losing: 0)
    let rates = (0..<60).map { _ in sender.second(losing: 0.01) }
    #expect(low < DataRate(kbps: 400) && rates[59] > DataRate(kbps: 1_900))
  }

  @Test func withoutReportsTheVideoEndsForAWhile() {
    var control = ReportedLoss(at: .zero)
    control.waited(isSending: true, at: .zero + .seconds(9))
    #expect(control.admitsVideo && control.limit == nil)
    control.waited(isSending: true, at: .zero + .seconds(10))
    #expect(!control.admitsVideo && control.limit == .zero)
    func report(at seconds: Int) {
      control.reported(
        [Reception(expected: 50, lost: 0)], bytes: 0, roundTrip: nil, at: .zero + .seconds(seconds))
    }
    report(at: 20)
    #expect(!control.admitsVideo && control.limit == .zero)
    report(at: 41)
    #expect(control.admitsVideo && control.limit.map { $0 > .zero } ?? false)
  }

  @Test func whereNoVideoIsSentNoReportIsMissed() {
    var control = ReportedLoss(at: .zero)
    for second in 1...100 { control.waited(isSending: false, at: .zero + .seconds(second)) }
    #expect(control.admitsVideo)
    control.waited(isSending: true, at: .zero + .seconds(104))
    #expect(control.admitsVideo)
    control.waited(isSending: true, at: .zero + .seconds(111))
    #expect(!control.admitsVideo)
  }
}

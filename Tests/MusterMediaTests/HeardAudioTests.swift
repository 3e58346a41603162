import MusterBase
import MusterMedia
import Testing

/// The audio of a participant, of which the playout reports five times a second.
private struct Listener {
  var heard = HeardAudio()
  var now = Instant.zero + .seconds(50)
  private var newest = AudioStatistics()

  /// Plays as much as arrives in so many seconds.
  mutating func play(seconds: Int, lost: Int = 0) {
    for _ in 0..<5 * seconds {
      now = now + .milliseconds(200)
      newest.received += 10
      newest.played += 10
      heard.report(newest, at: now)
    }
    newest.lost += UInt64(lost)
    heard.report(newest, at: now)
  }

  /// The participant cannot be reached for a time.
  mutating func interrupt(for duration: Duration) {
    heard.interrupted()
    #expect(heard.isInterrupted)
    now = now + duration
    newest = AudioStatistics()
  }
}

@Test func audioOfAParticipantThatCouldNotBeReachedIsLost() {
  var listener = Listener()
  listener.play(seconds: 20, lost: 10)
  #expect(abs(listener.heard.lostPercent - 1) < 0.1)
  listener.interrupt(for: .seconds(20))
  listener.play(seconds: 20)
  // 20 of 60 s, and the first tenth of the next report.
  #expect(abs(listener.heard.lostPercent - 33.8) < 0.5)
  listener.interrupt(for: .seconds(60))
  listener.play(seconds: 20)
  #expect(abs(listener.heard.lostPercent - 57.4) < 0.5)
  #expect(listener.heard.statistics.played == 1_000)
}

@Test func whatWasLostLongAgoIsNotRecent() {
  var listener = Listener()
  listener.play(seconds: 20, lost: 50)
  #expect(listener.heard.recentLostPercent > 15)
  listener.interrupt(for: .seconds(20))
  listener.play(seconds: 1)
  #expect(listener.heard.recentLostPercent > 80)
  listener.play(seconds: 6)
  #expect(listener.heard.recentLostPercent == 0 && listener.heard.lostPercent > 40)
}

@Test func audioThatIsMutedIsNotLost() {
  var listener = Listener()
  listener.play(seconds: 20)
  // Muted before, and unmuted where nobody saw it.
  listener.heard.set(isSilent: true)
  listener.interrupt(for: .seconds(60))
  listener.heard.set(isSilent: false)
  listener.play(seconds: 20)
  #expect(listener.heard.lostPercent == 0 && !listener.heard.isInterrupted)
  // Seen to be muted on its return.
  listener.interrupt(for: .seconds(60))
  listener.heard.set(isSilent: true)
  listener.heard.set(isSilent: false)
  listener.play(seconds: 20)
  #expect(listener.heard.lostPercent == 0)
  // An end that nobody hears of, such as that of a participant that has never spoken.
  var silent = HeardAudio()
  silent.interrupted()
  #expect(silent.lostPercent == 0)
}

import MusterBase
import MusterDevices
import MusterPipeline
import Testing

/// The states that belong to a source or sink and have to follow when it is replaced.
struct ReplacementStateTests {
  private func seconds(_ count: Double) -> Instant { .zero + .seconds(count) }

  private func format(_ height: Int) -> VideoFormat {
    VideoFormat(size: VideoSize(width: 320, height: height), framesPerSecond: 30)
  }

  /// Frames of the former source, which may still come, do not change the format back.
  @Test func theFormatIsThatOfTheNewSource() {
    var follower = FormatFollower()
    let changes = [
      follower.replace(with: format(180), at: .zero), follower.take(format(180), at: .zero),
      follower.replace(with: format(240), at: seconds(5)),
      follower.take(format(180), at: seconds(5)), follower.take(format(240), at: seconds(5)),
      follower.replace(with: nil, at: seconds(6)), follower.replace(with: nil, at: seconds(6)),
    ]
    #expect(changes == [true, false, true, false, false, true, false])
  }

  @Test func aSourceChangesItsFormatAtMostOnceASecond() {
    var follower = FormatFollower()
    _ = follower.replace(with: format(180), at: .zero)
    // A window that is resized 30 times a second, for three seconds.
    let changes = (1...90).filter { frame in
      follower.take(format(180 + frame), at: seconds(Double(frame) / 30))
    }
    #expect(changes == [30, 60, 90] && follower.offered == format(270))
  }

  @Test func thereIsAnEchoOnlyBetweenLiveDevices() {
    var reference = EchoReference()
    reference.play([1])
    reference.isMicrophoneLive = true
    reference.play([2])
    #expect(!reference.hasEcho && reference.take() == nil)
    reference.isSpeakerLive = true
    for number in 0..<(EchoReference.capacity + 3) { reference.play([Int16(number)]) }
    #expect(reference.hasEcho && reference.take() == [3])
    // Opened again, the microphone hears nothing of what was played before.
    reference.isMicrophoneLive = true
    #expect(reference.take() == nil)
  }
}

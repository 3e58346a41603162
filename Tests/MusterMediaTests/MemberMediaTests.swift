import MusterBase
import MusterMedia
import MusterWire
import Testing

@Test func theLargestLayerWithinTheRequestIsChosen() {
  func layer(_ width: Int, _ height: Int) -> VideoLayer {
    VideoLayer(size: VideoSize(width: width, height: height), framesPerSecond: 30)
  }
  let ladder = [layer(320, 180), layer(640, 360), layer(1280, 720)]
  let cases: [(requested: RequestedResolution, layers: [VideoLayer], choice: Int?)] = [
    (.best, ladder, 2), (.none, ladder, nil), (.best, [], nil),
    (RequestedResolution(width: 1280, height: 720), ladder, 2),
    (RequestedResolution(width: 1279, height: 719), ladder, 1),
    (RequestedResolution(width: 640, height: 360), ladder, 1),
    (RequestedResolution(width: 100, height: 100), ladder, 0),
    (RequestedResolution(width: 360, height: 640), ladder, 1),
    (RequestedResolution(width: 640, height: 360), ladder.reversed(), 1),
    (RequestedResolution(width: 400, height: 400), [layer(180, 320), layer(360, 640)], 1),
    (RequestedResolution(width: 0, height: 400), ladder, nil),
  ]
  for (requested, layers, choice) in cases {
    #expect(LayerChoice.layer(for: requested, among: layers) == choice, "\(requested)")
  }
}

@Test func speechBeginsAfter160MillisecondsAndOutlastsPauses() {
  var detector = SpeakingDetector()
  var now = Instant.milliseconds(0)
  func feed(_ level: UInt8, frames: Int) -> [Bool] {
    (0..<frames).map { _ in
      now = now + .milliseconds(20)
      return detector.update(level: level, at: now)
    }
  }
  let quiet = feed(70, frames: 50)
  #expect(!quiet.contains(true))
  let click = feed(10, frames: 5) + feed(90, frames: 30)
  #expect(!click.contains(true))
  let speech = feed(25, frames: 20)
  #expect(speech.firstIndex(of: true) == 7)
  let pause = feed(90, frames: 15) + feed(25, frames: 3)
  #expect(!pause.contains(false))
  let end = feed(90, frames: 30)
  #expect(end.firstIndex(of: false) == 19)
  #expect(!detector.isSpeaking(at: now))
}

@Test func speechEndsWhenPacketsStop() {
  var detector = SpeakingDetector()
  var now = Instant.milliseconds(0)
  for _ in 0..<30 {
    now = now + .milliseconds(20)
    detector.update(level: 20, at: now)
  }
  #expect(detector.isSpeaking(at: now + .milliseconds(400)))
  #expect(!detector.isSpeaking(at: now + .milliseconds(600)))
}

@Test func framesWaitForTheAudioWithinFiftyMilliseconds() {
  let cases: [(audio: Int, video: Int)] = [
    (90, 10), (20, 30), (45, 10), (250, 15), (10, 100), (400, 5), (1000, 5),
  ]
  for (audio, video) in cases {
    var sync = LipSync()
    var delay = Duration.zero
    var now = Instant.milliseconds(0)
    for _ in 0..<300 {
      let before = delay
      delay = sync.delay(audio: .milliseconds(audio), video: .milliseconds(video), at: now)
      #expect(delay - before <= .milliseconds(80))
      #expect(before - delay <= .milliseconds(80))
      now = now + .milliseconds(33)
    }
    #expect(delay >= .zero)
    #expect(delay <= .milliseconds(500))
    let wanted = min(max(audio - video, 0), 500)
    let error = delay - .milliseconds(wanted)
    #expect(max(error, .zero - error) <= .milliseconds(50), "\(audio) \(video)")
  }
}

/// A frame that was repaired, and those that waited behind it, are shown at their intervals.
@Test func aFrameThatComesLateWaitsForLess() {
  var sync = LipSync()
  var shown: [Instant] = []
  for number in 0..<100 {
    // Frame 60 comes 80 ms late, and holds up the two behind it.
    let late = [60: 80, 61: 47, 62: 14][number] ?? 0
    let now = Instant.milliseconds(33 * number + 30 + late)
    let delay = sync.delay(audio: .milliseconds(130), video: .milliseconds(30 + late), at: now)
    shown.append(now + delay)
  }
  let intervals = zip(shown.dropFirst(30), shown.dropFirst(31)).map { $1 - $0 }
  #expect(intervals.allSatisfy { $0 == .milliseconds(33) }, "\(intervals)")
}

@Test func withoutAudioFramesDoNotWait() {
  var sync = LipSync()
  var now = Instant.milliseconds(0)
  for number in 0..<600 {
    let audio = number < 300 ? Duration.milliseconds(120) : nil
    let delay = sync.delay(audio: audio, video: .milliseconds(10), at: now)
    #expect(delay > .zero || number < 1 || number >= 300)
    #expect(delay == .zero || number < 300)
    now = now + .milliseconds(33)
  }
}

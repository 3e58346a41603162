import MusterBase
import MusterMedia
import MusterWire
import Testing

@Test func theLargestLayerWithinTheRequestIsChosen() {
  func layer(_ width: Int, _ height: Int) -> VideoLayer {
    VideoLayer(size: VideoSize(width: width, height: height), framesPerSecond: 30)
  }
  let ladder = [layer(320, 180), layer(640, 360), layer(1280, 720)]
  let cases: [(requested: VideoRequest, layers: [VideoLayer], choice: Int?)] = [
    (.best, ladder, 2), (.none, ladder, nil), (.best, [], nil),
    (VideoRequest(width: 1280, height: 720), ladder, 2),
    (VideoRequest(width: 1279, height: 719), ladder, 1),
    (VideoRequest(width: 640, height: 360), ladder, 1),
    (VideoRequest(width: 100, height: 100), ladder, 0),
    (VideoRequest(width: 360, height: 640), ladder, 1),
    (VideoRequest(width: 640, height: 360), ladder.reversed(), 1),
    (VideoRequest(width: 400, height: 400), [layer(180, 320), layer(360, 640)], 1),
    (VideoRequest(width: 0, height: 400), ladder, nil),
  ]
  for (requested, layers, choice) in cases {
    let step = LayerChoice.step(for: requested, among: layers)
    #expect(step == choice.map { LayerStep(layer: $0) }, "\(requested)")
  }
}

@Test(arguments: [
  (30, 30, 3), (30, 29, 2), (30, 15, 2), (30, 14, 1), (30, 1, 1), (15, 15, 3), (25, 15, 2),
  (24, 254, 3), (120, 30, 1), (120, 60, 2),
])
func theHighestRateWithinTheRequestIsChosen(full: Int, most: UInt8, temporalLayers: Int) {
  let layer = VideoLayer(size: VideoSize(width: 320, height: 180), framesPerSecond: full)
  let request = VideoRequest(width: 320, height: 180, framesPerSecond: most)
  #expect(
    LayerChoice.step(for: request, among: [layer])
      == LayerStep(layer: 0, temporalLayers: temporalLayers))
}

@Test func requestsAreLimitedAndCombined() {
  let small = VideoRequest(width: 320, height: 180, framesPerSecond: 15)
  let tall = VideoRequest(width: 200, height: 400, framesPerSecond: 30)
  #expect(small.limited(to: tall) == VideoRequest(width: 200, height: 180, framesPerSecond: 15))
  #expect(small.combined(with: tall) == VideoRequest(width: 320, height: 400, framesPerSecond: 30))
  let never = VideoRequest(width: 9, height: 9, framesPerSecond: 0)
  for none in [VideoRequest.none, .outranked, never] {
    #expect(!none.wantsVideo && none.combined(with: small) == small)
    #expect(small.combined(with: none) == small && !small.limited(to: none).wantsVideo)
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
      delay = sync.delay(target: .milliseconds(audio), video: .milliseconds(video), at: now)
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
    let delay = sync.delay(target: .milliseconds(130), video: .milliseconds(30 + late), at: now)
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
    let delay = sync.delay(target: audio, video: .milliseconds(10), at: now)
    #expect(delay > .zero || number < 1 || number >= 300)
    #expect(delay == .zero || number < 300)
    now = now + .milliseconds(33)
  }
}

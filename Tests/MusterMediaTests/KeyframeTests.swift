import MusterBase
import MusterMedia
import MusterWire
import Testing

/// The times in milliseconds of the keyframes, if one is requested at every `interval` of 20 s.
private func keyframes(every interval: Int, isShared: Bool) -> [Int] {
  var limiter = KeyframeLimiter()
  var made: [Int] = []
  for time in stride(from: 0, to: 20_000, by: 10) {
    let now = Instant.milliseconds(time)
    var isDue = limiter.tick(at: now)
    if time % interval == 0, limiter.request(isShared: isShared, at: now) { isDue = true }
    guard isDue else { continue }
    limiter.keyframeMade(at: now)
    made.append(time)
  }
  return made
}

@Test func keyframesOfALayerAreMadeOncePer300Milliseconds() {
  #expect(keyframes(every: 50, isShared: false) == Array(stride(from: 0, to: 20_000, by: 300)))
}

/// Three at once, then one every two seconds.
@Test func keyframesOfASharedLayerHaveABudget() {
  let made = keyframes(every: 50, isShared: true)
  #expect(made.prefix(3) == [0, 300, 600])
  #expect(
    made.dropFirst(3) == [2_000, 4_000, 6_000, 8_000, 10_000, 12_000, 14_000, 16_000, 18_000])
  // Rare requests are within it.
  let rare = keyframes(every: 2_500, isShared: true)
  #expect(rare == Array(stride(from: 0, to: 20_000, by: 2_500)))
}

/// A layer's frames, one every 33 ms, of which the cache holds some.
private struct Caching {
  var sender = ModelSender(layer: 0)
  var cache = FrameCache()
  var now = Instant.milliseconds(10_000)

  mutating func encode(_ count: Int, bytes: Int = 900) throws {
    for _ in 0..<count {
      let encoded = sender.encoder.encode(keyframe: false, bytes: bytes, at: now)
      let frame = sender.packetizer.packetize(encoded)
      cache.add(try #require(frame), at: now)
      now = now + .milliseconds(33)
    }
  }
}

@Test func theCacheHasWhatTheNextFramesReferTo() throws {
  var caching = Caching()
  #expect((caching.cache.content(at: caching.now)?.frames.count ?? 0) == 0)
  try caching.encode(12)
  let cached = try #require(caching.cache.content(at: caching.now))
  #expect(cached.frames.map(\.isKeyframe) == [true, false, false, false])
  #expect(cached.frames.map(\.temporalLayer) == [0, 0, 0, 1])
  #expect(cached.bytes == cached.frames.flatMap(\.payloads).map(\.count).reduce(0, +))
  try caching.encode(1)
  let next = try #require(caching.cache.content(at: caching.now))
  #expect(next.frames.map(\.temporalLayer) == [0, 0, 0, 0])
  #expect(next.bytes == next.frames.flatMap(\.payloads).map(\.count).reduce(0, +))
}

@Test func theCacheIsEmptyWhenItIsTooOldOrTooLarge() throws {
  var caching = Caching()
  try caching.encode(61)
  #expect((caching.cache.content(at: .milliseconds(12_000))?.frames.count ?? 0) == 16)
  #expect((caching.cache.content(at: .milliseconds(12_001))?.frames.count ?? 0) == 0)
  try caching.encode(4)
  #expect((caching.cache.content(at: .milliseconds(10_000))?.frames.count ?? 0) == 0)
  var large = Caching()
  try large.encode(5, bytes: 120_000)
  #expect(large.cache.content(at: large.now)?.frames.count == 2)
  try large.encode(4, bytes: 120_000)
  #expect((large.cache.content(at: large.now)?.frames.count ?? 0) == 0)
}

/// The receiver of another layer gets the frames of the last half second at once, and is in the
/// present with them: it decodes them all, and shows those that are newer than what it has shown.
@Test func aLayerBeginsWithCachedFrames() throws {
  var receiver = VideoReceiver()
  var decoder = ModelDecoder()
  var (caching, large) = (Caching(), ModelSender(layer: 1))
  for _ in 0..<17 {
    try caching.encode(1)
    for packet in large.frame(bytes: 2_000, at: caching.now) {
      _ = receiver.receive(packet, at: caching.now)
    }
  }
  let shown = receiver.statistics(at: caching.now).frames
  try caching.encode(3)
  var now = caching.now
  var frames: [ReceivedFrame] = []
  for frame in try #require(caching.cache.content(at: now)).frames {
    for packet in caching.sender.packets(of: frame, at: now) {
      frames += receiver.receive(packet, at: now).frames
      now = now + .milliseconds(5)
    }
  }
  #expect(frames.map(\.isShown) == [false, false, false, false, false, true])
  #expect(frames.map { decoder.decode($0.data) } == [1, 5, 9, 13, 17, 19])
  for _ in 0..<8 {
    for packet in caching.sender.frame(bytes: 900, at: now) {
      let next = receiver.receive(packet, at: now).frames
      #expect(next.allSatisfy { $0.isShown && decoder.decode($0.data) != nil })
    }
    now = now + .milliseconds(33)
  }
  let statistics = receiver.statistics(at: now)
  #expect(statistics.frames == shown + 9 && statistics.freezes == 0)
  #expect(statistics.keyframesRequested == 0 && statistics.framesLost == 0)
}

/// A receiver that changes to another layer and back at once has seen the cached frames before.
@Test func aFrameIsShownOnceHoweverOftenItsLayerBegins() throws {
  var receiver = VideoReceiver()
  var (caching, large) = (Caching(), ModelSender(layer: 1))
  let capturedAt = caching.now
  try caching.encode(1)
  let frame = try #require(caching.cache.content(at: caching.now)?.frames.first)
  var shown: [Bool] = []
  for isLarge in [false, true, false] {
    let packets =
      isLarge
      ? large.frame(bytes: 2_000, at: capturedAt)
      : caching.sender.packets(of: frame, at: capturedAt)
    shown += packets.flatMap { receiver.receive($0, at: capturedAt).frames.map(\.isShown) }
  }
  #expect(shown == [true, true, false])
}

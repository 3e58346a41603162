import MusterBase
import MusterCodecs
import Testing

/// Two scenes in turn, of 30 frames each: the clip, and its negative.
private func scenes() throws -> [I420Frame] {
  let clip = Array(try TestFiles.bunny().prefix(30))
  return clip + clip.map { negative(of: $0) }
}

private func negative(of frame: I420Frame) -> I420Frame {
  let bytes = frame.packedBytes().map { 255 - $0 }
  let result = I420Frame(size: frame.size)
  bytes.withUnsafeBytes { result.fill(packed: $0) }
  return result
}

/// A frame of vertical stripes that has moved by some pixels.
private func stripes(movedBy pixels: Int) -> I420Frame {
  let size = VideoSize(width: 320, height: 180)
  let frame = I420Frame(size: size)
  frame.fill(y: 0, u: 128, v: 128)
  for row in 0..<size.height {
    for column in 0..<size.width {
      frame.y[row * frame.strideY + column] = (column + pixels) / 40 % 2 == 0 ? 40 : 200
    }
  }
  return frame
}

@Suite struct CutTests {
  @Test func anotherSceneIsACut() throws {
    let frames = try scenes()
    var detector = CutDetector()
    let cuts = (0..<150).filter { detector.isCut(frames[$0 % frames.count]) }
    #expect(cuts == [30, 60, 90, 120])
  }

  @Test func movementIsNone() throws {
    var detector = CutDetector()
    let clip = try TestFiles.bunny()
    #expect(clip.allSatisfy { !detector.isCut($0) })
    // The camera moves ever faster, at last by 24 pixels a frame, of which each comes twice.
    let moved = [0, 2, 4, 8, 12, 20, 28] + stride(from: 44, to: 900, by: 24).flatMap { [$0, $0] }
    var pan = CutDetector()
    let found = moved.filter { pan.isCut(stripes(movedBy: $0)) }
    #expect(found.count <= 1, "\(found)")
  }

  @Test func anotherSizeIsNone() throws {
    var detector = CutDetector()
    let clip = try TestFiles.bunny()
    let small = I420Frame(size: VideoSize(width: 3, height: 2))
    small.fill(y: 0, u: 128, v: 128)
    let frames = [clip[0], small, small, clip[1], negative(of: clip[2])]
    #expect(frames.map { detector.isCut($0) } == [false, false, false, false, true])
  }

  @Test(arguments: [80, 150, 400])
  func theFrameAfterACutIsSmallAndOfTheBaseLayer(kilobits: Int) throws {
    let frames = try scenes()
    let encoder = try VP8Encoder(
      size: frames[0].size, framesPerSecond: 30, kilobitsPerSecond: kilobits)
    let whole = try VP8Decoder()
    let base = try VP8Decoder()
    var largest = 0
    var pairs: [(I420Frame, I420Frame)] = []
    for index in 0..<600 {
      let isCut = index > 0 && index % 30 == 0
      let frame = frames[index % frames.count]
      let at = Instant.zero + .milliseconds(index * 1000 / 30)
      if isCut { encoder.noteCut() }
      guard let encoded = try encoder.encode(frame, at: at) else { continue }
      let image = try #require(try whole.decode(encoded.data))
      pairs.append((frame, image))
      #expect(encoded.isKeyframe == (index == 0))
      // Frames of the base layer still need no others.
      if encoded.temporalLayer == 0 {
        let kept = try #require(try base.decode(encoded.data))
        #expect(kept.packedBytes() == image.packedBytes(), "frame \(index)")
      }
      guard isCut else { continue }
      #expect(encoded.temporalLayer == 0, "frame \(index)")
      largest = max(largest, encoded.data.count)
    }
    let mean = kilobits * 125 / 30
    #expect(largest <= 7 * mean, "\(largest) of a mean of \(mean)")
    #expect(Quality.psnr(pairs) > 24)
  }

  /// If the rate control drops the first frame of a scene, the next one counts as the first: it is
  /// the same as if the cut had been noted again.
  @Test func aCutThatIsDroppedIsMadeUpFor() throws {
    let frames = try scenes()
    let encoders = try (0..<2).map { _ in
      try VP8Encoder(size: frames[0].size, framesPerSecond: 30, kilobitsPerSecond: 20)
    }
    var (waits, madeUpFor) = (false, 0)
    for index in 0..<900 {
      let isCut = index > 0 && index % 30 == 0
      let at = Instant.zero + .milliseconds(index * 1000 / 30)
      if isCut { encoders[0].noteCut() }
      if isCut || waits { encoders[1].noteCut() }
      let encoded = try encoders.map { try $0.encode(frames[index % frames.count], at: at) }
      #expect(encoded[0] == encoded[1], "frame \(index)")
      if waits, encoded[0] != nil { madeUpFor += 1 }
      waits = encoded[0] == nil && (waits || isCut)
    }
    #expect(madeUpFor > 0)
  }
}

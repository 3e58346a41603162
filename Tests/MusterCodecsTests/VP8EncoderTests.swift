import MusterBase
import MusterCodecs
import Testing

@Suite struct VP8EncoderTests {
  /// Encodes frames in a loop, at 25 per second.
  private func encode(
    _ frames: [I420Frame], count: Int, kilobits: Int, keyframesAt: [Int] = []
  ) throws -> [(index: Int, image: I420Frame, frame: EncodedVP8)] {
    let encoder = try VP8Encoder(
      size: frames[0].size, framesPerSecond: 25, kilobitsPerSecond: kilobits)
    var result = [(index: Int, image: I420Frame, frame: EncodedVP8)]()
    for index in 0..<count {
      let image = frames[index % frames.count]
      let time = Instant(nanoseconds: 5_000_000_000 + Int64(index) * 40_000_000)
      let frame = try encoder.encode(
        image, at: time, forceKeyframe: keyframesAt.contains(index))
      if let frame { result.append((index, image, frame)) }
    }
    return result
  }

  @Test(arguments: [(150, 30.5), (300, 33.5), (600, 36.5)])
  func realFramesKeepTheirQuality(kilobits: Int, floor: Double) throws {
    let encoded = try encode(TestFiles.bunny(), count: 120, kilobits: kilobits)
    let decoder = try VP8Decoder()
    var pairs = [(I420Frame, I420Frame)]()
    for (_, image, frame) in encoded {
      pairs.append((image, try #require(try decoder.decode(frame.data))))
    }
    let psnr = Quality.psnr(pairs)
    #expect(psnr > floor)
  }

  @Test(arguments: [100, 150, 300, 600])
  func theTargetBitrateIsKept(kilobits: Int) throws {
    let count = 250
    let encoded = try encode(TestFiles.bunny(), count: count, kilobits: kilobits)
    let bytes = encoded.reduce(0) { $0 + $1.frame.data.count }
    let measured = Double(bytes) * 8 / (Double(count) / 25) / 1000
    #expect(abs(measured / Double(kilobits) - 1) < 0.15, "\(measured) kbit/s")
  }

  @Test func aNewBitrateNeedsNoKeyframe() throws {
    let frames = try TestFiles.bunny()
    let encoder = try VP8Encoder(
      size: frames[0].size, framesPerSecond: 25, kilobitsPerSecond: 600)
    var bytes = [0, 0]
    for index in 0..<300 {
      if index == 100 { encoder.setBitrate(200) }
      let time = Instant(nanoseconds: Int64(index) * 40_000_000)
      guard let frame = try encoder.encode(frames[index % 60], at: time) else { continue }
      #expect(frame.isKeyframe == (index == 0))
      if index < 100 { bytes[0] += frame.data.count }
      if index >= 150 { bytes[1] += frame.data.count }
    }
    // The second part has a third of the bits per frame and 1.5 times the frames.
    #expect(Double(bytes[1]) / 1.5 < 0.5 * Double(bytes[0]))
  }

  @Test func keyframesComeOnDemandOnly() throws {
    let encoded = try encode(
      TestFiles.bunny(), count: 120, kilobits: 1000, keyframesAt: [50, 51])
    let keyframes = encoded.filter(\.frame.isKeyframe).map(\.index)
    #expect(keyframes == [0, 50, 51])
    for (_, _, frame) in encoded {
      // The frame tag's lowest bit is 0 for keyframes (RFC 6386 section 9.1).
      #expect((frame.data[0] & 1 == 0) == frame.isKeyframe)
      if frame.isKeyframe { #expect(frame.temporalLayer == 0) }
    }
  }

  @Test func layersFollowThePattern() throws {
    let encoded = try encode(TestFiles.bunny(), count: 12, kilobits: 1000)
    #expect(encoded.map(\.frame.temporalLayer) == [0, 2, 1, 2, 0, 2, 1, 2, 0, 2, 1, 2])
    #expect(encoded.allSatisfy { $0.frame.isReference == ($0.frame.temporalLayer < 2) })
  }

  /// As many bits a second as the same layers have of a whole stream: 70 % of the bitrate for two
  /// layers, 50 % for one.
  @Test(arguments: [(1, [0]), (2, [0, 1, 0, 1, 0, 1, 0, 1])])
  func fewerLayersHaveTheirShareOfTheBitrate(temporalLayers: Int, pattern: [Int]) throws {
    let decimator = TemporalLayers.decimators[temporalLayers - 1]
    let frames = try TestFiles.bunny()
    let encoder = try VP8Encoder(
      size: frames[0].size, framesPerSecond: 30, kilobitsPerSecond: 400,
      temporalLayers: temporalLayers)
    let decoder = try VP8Decoder()
    var (bytes, layers) = (0, [Int]())
    for index in stride(from: 0, to: 300, by: decimator) {
      let at = Instant.zero + .milliseconds(index * 1000 / 30)
      guard let encoded = try encoder.encode(frames[index % frames.count], at: at) else { continue }
      #expect(try decoder.decode(encoded.data) != nil)
      #expect(encoded.isReference == (encoded.temporalLayer == 0))
      bytes += encoded.data.count
      layers.append(encoded.temporalLayer)
    }
    #expect(Array(layers.prefix(pattern.count)) == pattern)
    let expected = 400 * TemporalLayers.cumulativePercent[temporalLayers - 1] / 100
    let actual = bytes * 8 / 10_000
    #expect(abs(actual - expected) * 100 <= expected * 15, "\(actual) kbit/s")
  }

  @Test(arguments: [0, 1])
  func droppedLayersChangeNothingInTheOthers(highest: Int) throws {
    let encoded = try encode(
      TestFiles.bunny(), count: 120, kilobits: 300, keyframesAt: [70])
    let whole = try VP8Decoder()
    let part = try VP8Decoder()
    for (index, _, frame) in encoded {
      let image = try #require(try whole.decode(frame.data))
      guard frame.temporalLayer <= highest else { continue }
      let kept = try #require(try part.decode(frame.data))
      #expect(kept.packedBytes() == image.packedBytes(), "frame \(index)")
    }
  }

  @Test func aLayerMayBeJoinedAfterAnyBaseFrame() throws {
    let encoded = try encode(TestFiles.bunny(), count: 80, kilobits: 300)
    let whole = try VP8Decoder()
    let part = try VP8Decoder()
    var hasJoined = false
    for (index, _, frame) in encoded {
      let image = try #require(try whole.decode(frame.data))
      // Base frames only at first; all layers from some base frame on.
      if index >= 40, frame.temporalLayer == 0 { hasJoined = true }
      if !hasJoined, frame.temporalLayer > 0 { continue }
      let kept = try #require(try part.decode(frame.data))
      #expect(kept.packedBytes() == image.packedBytes(), "frame \(index)")
    }
  }

  @Test func encodingIsDeterministic() throws {
    let frames = try TestFiles.bunny()
    let first = try encode(frames, count: 60, kilobits: 250).map(\.frame)
    let second = try encode(frames, count: 60, kilobits: 250).map(\.frame)
    #expect(first == second)
  }

  @Test func oddSizesWork() throws {
    let frame = I420Frame(size: VideoSize(width: 175, height: 143))
    frame.fill(y: 90, u: 100, v: 150)
    let encoder = try VP8Encoder(size: frame.size, framesPerSecond: 15, kilobitsPerSecond: 100)
    let encoded = try #require(try encoder.encode(frame, at: .zero))
    let decoded = try #require(try VP8Decoder().decode(encoded.data))
    #expect(decoded.size == frame.size)
    #expect(Quality.psnr([(frame, decoded)]) > 40)
  }

  @Test func framesOfAnotherSizeAreRefused() throws {
    let encoder = try VP8Encoder(
      size: VideoSize(width: 320, height: 180), framesPerSecond: 30, kilobitsPerSecond: 100)
    let frame = I420Frame(size: VideoSize(width: 160, height: 90))
    frame.fill(y: 0, u: 128, v: 128)
    #expect(throws: CodecError.self) { try encoder.encode(frame, at: .zero) }
    #expect(throws: CodecError.self) {
      try VP8Encoder(
        size: VideoSize(width: 0, height: 0), framesPerSecond: 30, kilobitsPerSecond: 100)
    }
  }
}

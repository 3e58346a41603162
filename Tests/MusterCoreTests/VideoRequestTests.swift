import MusterBase
import MusterCore
import MusterCrypto
import MusterMedia
import MusterSimulator
import MusterWire
import Testing

/// Three nodes in a call with cameras of two layers; the first one requests nothing by itself.
private struct Viewing {
  static let key = ChannelKey.fromName("\(Marker.text) viewing")
  let channel = key.channelID
  var world: CoreWorld

  init(_ configure: @escaping (inout Node.Configuration) -> Void = { _ in }) {
    world = CoreWorld(3, seed: 5) { index, configuration in
      configuration.requested = .none
      if index == 0 { configure(&configuration) }
    }
    for index in 0..<3 { world.offer(2, of: .camera, by: index) }
    world.join("viewing", Self.key)
    world.run(for: .seconds(5))
  }

  func camera(of index: Int) -> MemberStream {
    MemberStream(LinkID(channel: channel, peer: world.id(index)), .camera)
  }

  func encoded(_ index: Int) -> [EncoderTarget] { world.hosts[index].targets[.camera] ?? [] }

  /// The frames of a camera that the first node has shown.
  func shown(_ index: Int) -> Int { world.hosts[0].shown[camera(of: index).link] ?? 0 }

  mutating func show(_ requests: [(index: Int, request: VideoRequest)]?) {
    let streams = requests?.map { ShownStream(camera(of: $0.index), $0.request) }
    world.command(0) { $0.show(streams, at: $1) }
    world.run(for: .seconds(2))
  }

  mutating func watch(_ request: VideoRequest, _ index: Int?) {
    let (channel, member) = (channel, index.map { world.id($0) })
    world.command(0) { $0.watch(request, of: member, in: channel, at: $1) }
    world.run(for: .seconds(2))
  }
}

private let large = VideoRequest(width: 640, height: 360)
private let small = VideoRequest(width: 100, height: 100)

struct VideoRequestTests {
  @Test func whatNobodyRequestsIsNotEncoded() {
    let viewing = Viewing()
    for index in 0..<3 {
      #expect(viewing.encoded(index).isEmpty)
      #expect(viewing.world.hosts[index].shown.isEmpty)
      let layers = viewing.world.hosts[index].events.filter {
        if case .layer = $0 { true } else { false }
      }
      #expect(layers.isEmpty)
    }
  }

  @Test func whatIsShownIsRequestedAndNothingElse() {
    var viewing = Viewing()
    viewing.show([(1, large), (1, small)])
    #expect(viewing.encoded(1).map(\.layer) == [1] && viewing.encoded(2).isEmpty)
    viewing.show([(1, small), (2, large)])
    #expect(viewing.encoded(1).map(\.layer) == [0] && viewing.encoded(2).map(\.layer) == [1])
    let before = viewing.shown(2)
    viewing.show([])
    #expect(viewing.encoded(1).isEmpty && viewing.encoded(2).isEmpty)
    #expect(viewing.shown(2) - before < 5)
    viewing.show(nil)
    #expect(viewing.encoded(1).isEmpty && viewing.encoded(2).isEmpty)
  }

  @Test func aLowerRateIsEncodedAtThatRate() throws {
    var viewing = Viewing()
    let rate = UInt8(SyntheticSource.framesPerSecond)
    var slow = large
    slow.framesPerSecond = (rate + 1) / 2
    viewing.show([(1, slow), (2, large)])
    #expect(viewing.encoded(1).map(\.temporalLayers) == [2])
    #expect(viewing.encoded(2).map(\.temporalLayers) == [3])
    let before = [viewing.shown(1), viewing.shown(2)]
    viewing.world.run(for: .seconds(4))
    let (half, full) = (viewing.shown(1) - before[0], viewing.shown(2) - before[1])
    #expect(abs(full - 4 * Int(rate)) <= 2 && abs(half - 2 * Int(rate)) <= 2, "\(half) \(full)")
    // Another receiver wants every frame; the first one still gets half of them.
    let (channel, all) = (viewing.channel, VideoRequest.best)
    viewing.world.command(2) { $0.watch(all, of: nil, in: channel, at: $1) }
    viewing.world.run(for: .seconds(2))
    #expect(viewing.encoded(1).map(\.temporalLayers) == [3])
    let start = viewing.shown(1)
    viewing.world.run(for: .seconds(4))
    #expect(abs(viewing.shown(1) - start - 2 * Int(rate)) <= 2)
  }

  @Test func theLargerOfWhatIsShownAndWhatACommandAsksForCounts() {
    var viewing = Viewing { $0.shownLimit = VideoRequest(width: 160, height: 90) }
    viewing.watch(large, 1)
    #expect(viewing.encoded(1).map(\.layer) == [1] && viewing.encoded(2).isEmpty)
    viewing.show([(1, small), (2, large)])
    #expect(viewing.encoded(1).map(\.layer) == [1])
    #expect(viewing.encoded(2).map(\.layer) == [0], "the limit holds for what is shown")
    viewing.watch(.none, 1)
    #expect(viewing.encoded(1).map(\.layer) == [0])
    viewing.watch(large, nil)
    #expect(viewing.encoded(1).map(\.layer) == [1] && viewing.encoded(2).map(\.layer) == [1])
    viewing.watch(.none, nil)
    viewing.show(nil)
    #expect(viewing.encoded(1).isEmpty && viewing.encoded(2).isEmpty)
  }

  @Test func aCommandPrecedesTheConfiguration() {
    var viewing = Viewing {
      $0.requested = large
      $0.requestedBesidesViewer = small
    }
    #expect(viewing.encoded(1).map(\.layer) == [1] && viewing.encoded(2).map(\.layer) == [1])
    viewing.show([])
    #expect(viewing.encoded(1).map(\.layer) == [0] && viewing.encoded(2).map(\.layer) == [0])
    viewing.watch(.none, 1)
    #expect(viewing.encoded(1).isEmpty && viewing.encoded(2).map(\.layer) == [0])
  }

  @Test func aCommandOutlastsTheLink() {
    var viewing = Viewing()
    viewing.watch(large, 1)
    viewing.world.passes = { from, to, _ in from + to != 1 }
    viewing.world.run(for: .seconds(8))
    viewing.world.passes = { _, _, _ in true }
    viewing.world.run(for: .seconds(8))
    #expect(viewing.encoded(1).map(\.layer) == [1])
    let before = viewing.shown(1)
    viewing.world.run(for: .seconds(1))
    #expect(viewing.shown(1) > before)
  }
}

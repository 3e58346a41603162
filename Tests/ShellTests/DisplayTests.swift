import Muster
import MusterBase
import MusterCore
import MusterPipeline
import MusterSystem
import Testing

/// A viewer that is too slow.
struct DisplayTests {
  private static let stream = MemberStream(
    LinkID(channel: ChannelID(.zero), peer: NodeID(.zero)), .camera)

  private static func frame(_ number: Int, isKeyframe: Bool = false) -> ViewedFrame {
    ViewedFrame(
      channel: "lab", member: NodeID(.zero), stream: .camera, isKeyframe: isKeyframe,
      temporalLayer: 0, data: [UInt8(number)], at: .zero)
  }

  /// No keyframe is requested while the viewer takes nothing: it would miss that one, too.
  @Test(.timeLimit(.minutes(1))) func aSlowViewerGoesOnAtAKeyframe() async throws {
    let (frames, shown) = AsyncStream.makeStream(of: Int.self)
    let isBlocked = Monitor(true)
    let display = Display { frame in
      shown.yield(Int(frame.data[0]))
      isBlocked.wait { $0 ? nil : () }
    }
    var viewed = frames.makeAsyncIterator()
    display.show(Self.frame(0, isKeyframe: true), of: Self.stream)
    #expect(await viewed.next() == 0)
    for number in 1..<200 {
      let due = display.add(Self.frame(number), of: Self.stream, after: .zero, at: .zero)
      #expect(due == .zero && display.takeBroken() == [])
    }
    // A whole queue goes once a base layer is lost; nothing is queued before the next keyframe.
    #expect(display.queueLevel.dropped == 199 && display.queueLevel.waiting == 0)
    isBlocked.withLock { $0 = false }
    while !display.hasRecovered { await Task.yield() }
    #expect(display.takeBroken() == [Self.stream] && !display.hasRecovered)
    display.show(Self.frame(200), of: Self.stream)
    display.show(Self.frame(201, isKeyframe: true), of: Self.stream)
    display.show(Self.frame(202), of: Self.stream)
    #expect(await viewed.next() == 201)
    #expect(await viewed.next() == 202)
  }

  @Test(.timeLimit(.minutes(1))) func aReleasedDisplayShowsNothingMore() async {
    let (frames, shown) = AsyncStream.makeStream(of: Int.self)
    let isBlocked = Monitor(true)
    do {
      let display = Display { [end = End(shown)] frame in
        withExtendedLifetime(end) {}
        shown.yield(Int(frame.data[0]))
        isBlocked.wait { $0 ? nil : () }
      }
      for number in 0..<9 { display.show(Self.frame(number, isKeyframe: number == 0), of: nil) }
      while display.queueLevel.waiting == 9 { await Task.yield() }
    }
    isBlocked.withLock { $0 = false }
    var all: [Int] = []
    for await number in frames { all.append(number) }
    #expect(all == [0])
  }

  /// Ends a stream when the last reference to it goes.
  private final class End: Sendable {
    private let stream: AsyncStream<Int>.Continuation

    init(_ stream: AsyncStream<Int>.Continuation) { self.stream = stream }

    deinit { stream.finish() }
  }
}

import MusterBase
import MusterMedia
import MusterWire
import Testing

private let layer = VideoLayer(size: VideoSize(width: 640, height: 360), framesPerSecond: 30)

/// A stream that a receiver has begun to get, and the frames of its layer.
private final class Sending {
  var streams = OutgoingStreams(seed: 1)
  var now = Instant.zero + .seconds(100)

  enum Kind { case key, base, middle, top }

  init() {
    _ = streams.withStream(.camera) { stream in
      _ = stream.select(
        LayerStep(layer: 0), for: .best, among: [layer], prevented: nil, at: .zero)
      return stream.switchLayer(to: 0, wait: .zero)
    }
  }

  /// A frame; those of the top temporal layer are no references.
  func frame(_ kind: Kind) -> PacketizedFrame {
    let temporal = [Kind.key: 0, .base: 0, .middle: 1, .top: 2][kind] ?? 0
    return PacketizedFrame(
      layer: 0, temporalLayer: temporal, isKeyframe: kind == .key, isReference: kind != .top,
      capturedAt: now, timestamp: 0, payloads: [[0, 1][...]])
  }

  /// Whether a frame is sent.
  func admits(_ kind: Kind, wait: Int = 0) -> Bool {
    let (frame, now) = (frame(kind), now)
    return streams.withStream(.camera) { $0.admits(frame, wait: .milliseconds(wait), at: now) }
  }

  /// The layer of which a keyframe is requested.
  func keyframe(wait: Int) -> Int? {
    let now = now
    return streams.withStream(.camera) { $0.dueKeyframe(wait: .milliseconds(wait), at: now) }
  }

  /// Whether the receiver's request for a keyframe is granted at once.
  func grants(wait: Int, roundTrip: Int = 0) -> Bool {
    let now = now
    return streams.withStream(.camera) {
      $0.admitsKeyframeRequest(
        layer: 0, wait: .milliseconds(wait), roundTrip: .milliseconds(roundTrip), at: now)
    }
  }
}

struct FrameAdmissionTests {
  @Test(arguments: [
    (Sending.Kind.key, 250), (.base, 250), (.middle, 150), (.top, 100),
  ])
  private func aFrameWaitsSoLongByItsTemporalLayer(kind: Sending.Kind, longest: Int) {
    let sending = Sending()
    #expect(sending.admits(kind, wait: longest))
    #expect(!sending.admits(kind, wait: longest + 1))
  }

  @Test func nothingRefersToATopFrame() {
    let sending = Sending()
    #expect(!sending.admits(.top, wait: 110))
    #expect(sending.admits(.middle) && sending.admits(.top) && sending.admits(.base))
    #expect(!sending.streams.owesKeyframe(of: .camera))
  }

  @Test func framesAboveTheBaseMayReferToAMiddleFrameUpToTheNextBaseFrame() {
    let sending = Sending()
    #expect(!sending.admits(.middle, wait: 160))
    #expect(!sending.admits(.top) && !sending.admits(.middle))
    #expect(sending.admits(.base) && sending.admits(.top) && sending.admits(.middle))
    #expect(!sending.streams.owesKeyframe(of: .camera))
  }

  @Test func everythingRefersToABaseFrameUpToTheNextKeyframe() {
    let sending = Sending()
    #expect(!sending.admits(.base, wait: 300))
    #expect(!sending.admits(.top) && !sending.admits(.base) && !sending.admits(.middle))
    #expect(!sending.admits(.key, wait: 300))
    #expect(sending.admits(.key) && sending.admits(.top) && sending.admits(.base))
  }

  @Test func aKeyframeIsRequestedWhenThePathHasRoomAgain() {
    let sending = Sending()
    #expect(sending.keyframe(wait: 0) == nil)
    #expect(!sending.admits(.base, wait: 300))
    #expect(sending.streams.owesKeyframe(of: .camera))
    #expect(sending.keyframe(wait: 61) == nil && sending.keyframe(wait: 60) == 0)
    #expect(sending.admits(.key))
    #expect(sending.keyframe(wait: 0) == nil && !sending.streams.owesKeyframe(of: .camera))
  }

  /// Once a second until it comes, and at once if it is left out as well.
  @Test func anOwedKeyframeIsRequestedAgainButNotAtEveryFrame() {
    let sending = Sending()
    _ = sending.admits(.base, wait: 300)
    var requests: [Int] = []
    for frame in 0..<90 {
      if sending.keyframe(wait: 0) != nil { requests.append(frame) }
      _ = frame == 40 ? sending.admits(.key, wait: 300) : sending.admits(.base)
      sending.now = sending.now + .milliseconds(40)
    }
    #expect(requests == [0, 25, 41, 66])
  }

  /// Six at once, then one a second, whatever the path does.
  @Test func keyframesAreNotOwedWithoutEnd() {
    let sending = Sending()
    var requested = 0
    for _ in 0..<100 {
      _ = sending.admits(.base, wait: 300)
      if sending.keyframe(wait: 0) != nil { requested += 1 }
      _ = sending.admits(.key)
      sending.now = sending.now + .milliseconds(100)
    }
    #expect((15...16).contains(requested), "\(requested)")
  }

  /// They are the receiver's own.
  @Test func theReceiversRequestsAreNotUsedUp() {
    let sending = Sending()
    _ = sending.admits(.base, wait: 300)
    for _ in 0..<20 { _ = sending.keyframe(wait: 0) }
    #expect(sending.grants(wait: 0))
  }

  /// It would queue behind what the receiver misses.
  @Test func theKeyframeThatTheReceiverRequestsWaitsForRoom() {
    let sending = Sending()
    #expect(sending.grants(wait: 60) && !sending.streams.owesKeyframe(of: .camera))
    #expect(!sending.grants(wait: 61) && sending.keyframe(wait: 61) == nil)
    #expect(sending.admits(.base) && sending.admits(.top))
    #expect(sending.keyframe(wait: 60) == 0)
  }

  @Test func aRequestThatCrossedTheKeyframeIsSatisfied() {
    let sending = Sending()
    #expect(sending.admits(.key))
    sending.now = sending.now + .milliseconds(70)
    #expect(!sending.grants(wait: 0, roundTrip: 80))
    sending.now = sending.now + .milliseconds(20)
    #expect(sending.grants(wait: 0, roundTrip: 80))
  }

  @Test func cachedFramesAreSentOnceForEachKeyframe() {
    let sending = Sending()
    let keyframe = sending.now
    sending.streams.withStream(.camera) { $0.caughtUp(fromKeyframeOf: keyframe) }
    let stream = sending.streams[.camera]
    #expect(stream?.mayCatchUp(fromKeyframeOf: keyframe) == false)
    #expect(stream?.mayCatchUp(fromKeyframeOf: keyframe + .milliseconds(33)) == true)
  }

  @Test func afterAPacketThatDidNotLeaveAKeyframeFollows() {
    let sending = Sending()
    sending.streams.withStream(.camera) { $0.expired(0, layer: 1) }
    #expect(sending.admits(.top))
    sending.streams.withStream(.camera) { $0.expired(0, layer: 0) }
    #expect(!sending.admits(.base) && sending.keyframe(wait: 0) == 0 && sending.admits(.key))
  }

  @Test func norIsSuchAPacketRetransmitted() {
    let sending = Sending()
    let (frame, now) = (sending.frame(.base), sending.now)
    let sequences = sending.streams.withStream(.camera) { stream in
      (0..<2).map { _ in stream.send([1], of: frame, isLast: false, at: now).sequence }
    }
    let again = sending.streams.withStream(.camera) { stream in
      stream.expired(sequences[0], layer: 0)
      return stream.retransmissions(of: sequences, layer: 0, roundTrip: .zero, at: now)
    }
    #expect(again.map(\.header.sequence) == [sequences[1]])
  }

  /// The receiver keeps the layer that it has until the keyframe of the other one can leave.
  @Test func aLayerIsNotSwitchedToWhileItsKeyframeWouldWait() {
    let sending = Sending()
    let small = VideoLayer(size: VideoSize(width: 320, height: 180), framesPerSecond: 30)
    sending.streams.withStream(.camera) { stream in
      let selection = stream.select(
        LayerStep(layer: 1), for: .best, among: [small, layer], prevented: nil, at: .zero)
      #expect(selection.keyframe == 1)
      _ = stream.switchLayer(to: 1, wait: .milliseconds(251))
      #expect(stream.current?.layer == 0 && stream.target?.layer == 1)
    }
    #expect(sending.keyframe(wait: 0) == 1)
    _ = sending.streams.withStream(.camera) { $0.switchLayer(to: 1, wait: .milliseconds(250)) }
    #expect(sending.streams[.camera]?.current?.layer == 1)
  }
}

import MusterBase
import MusterMedia
import MusterWire
import Testing

private let frameTime = Duration.nanoseconds(33_333_333)

@Test func aLayerChangesOnlyAtAKeyframeOfTheNewOne() {
  var low = ModelSender(layer: 0)
  var high = ModelSender(layer: 1, firstSequence: 7)
  var receiver = VideoReceiver()
  let start = Instant.milliseconds(1000)
  var layers: [Int] = []
  func send(_ packets: [RTPPacket], at now: Instant) -> [VideoReceiver.Output] {
    packets.flatMap { receiver.receive($0, at: now) }
  }
  _ = high.frame(bytes: 900, at: start)  // so that its next frame is no keyframe
  layers += send(low.frame(bytes: 900, at: start), at: start).frames.map(\.layer)
  let second = start + frameTime
  layers += send(high.frame(bytes: 900, at: second), at: second).frames.map(\.layer)
  layers += send(low.frame(bytes: 900, at: second), at: second).frames.map(\.layer)
  let third = second + frameTime
  layers += send(high.frame(bytes: 9000, keyframe: true, at: third), at: third).frames.map(\.layer)
  let fourth = third + frameTime
  layers += send(low.frame(bytes: 900, at: fourth), at: fourth).frames.map(\.layer)
  layers += send(high.frame(bytes: 900, at: fourth), at: fourth).frames.map(\.layer)
  #expect(layers == [0, 0, 1, 1])
}

/// A captured frame is encoded in the larger layer first.
@Test func aSmallerLayerFollowsAtTheTimeOfTheLargerOnesLastFrame() {
  var low = ModelSender(layer: 0)
  var high = ModelSender(layer: 1)
  var receiver = VideoReceiver()
  var now = Instant.milliseconds(1000)
  var layers: [Int] = []
  for number in 0..<4 {
    let packets =
      (number < 2 ? high.frame(bytes: 900, at: now) : [])
      + (number > 0 ? low.frame(bytes: 900, at: now) : [])
    layers += packets.flatMap { receiver.receive($0, at: now) }.frames.map(\.layer)
    now = now + frameTime
  }
  #expect(layers == [1, 1, 0, 0, 0])
}

@Test func aLayerChangeWhoseKeyframeIsLostDoesNotDeadlock() {
  var low = ModelSender(layer: 0)
  var high = ModelSender(layer: 1)
  var receiver = VideoReceiver()
  receiver.setRoundTrip(.milliseconds(40))
  var now = Instant.milliseconds(1000)
  for _ in 0..<10 {
    for packet in low.frame(bytes: 900, at: now) { _ = receiver.receive(packet, at: now) }
    now = now + frameTime
  }
  _ = high.frame(bytes: 9000, at: now)  // the keyframe and its repeats are all lost
  let left = now
  var resumed: Instant?
  for _ in 0..<60 where resumed == nil {
    now = now + frameTime
    while let deadline = receiver.deadline, deadline < now {
      for _ in receiver.tick(at: deadline).keyframeRequests { high.keyframeRequested(at: now) }
    }
    for packet in high.frame(bytes: 900, at: now) {
      let outputs = receiver.receive(packet, at: now)
      for ssrc in outputs.keyframeRequests where ssrc == 1001 { high.keyframeRequested(at: now) }
      if outputs.frames.contains(where: { $0.layer == 1 }) { resumed = now }
    }
  }
  #expect(resumed.map { $0 - left <= .milliseconds(500) } == true)
}

@Test func aKeyframeOfALayerLeftSinceIsNotShown() {
  var low = ModelSender(layer: 0)
  var high = ModelSender(layer: 1)
  var receiver = VideoReceiver()
  var now = Instant.milliseconds(1000)
  for packet in low.frame(bytes: 900, at: now) { _ = receiver.receive(packet, at: now) }
  now = now + frameTime
  let stale = high.frame(bytes: 5000, at: now)
  for packet in stale.dropLast() { _ = receiver.receive(packet, at: now) }
  now = now + frameTime
  for packet in low.frame(bytes: 900, keyframe: true, at: now) {
    _ = receiver.receive(packet, at: now)
  }
  let outputs = stale.suffix(1).flatMap { receiver.receive($0, at: now) }
  #expect(outputs.frames.isEmpty)
  now = now + frameTime
  let next = low.frame(bytes: 900, at: now).flatMap { receiver.receive($0, at: now) }
  #expect(next.frames.map(\.layer) == [0])
}

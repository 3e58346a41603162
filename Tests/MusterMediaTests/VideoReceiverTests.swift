import MusterBase
import MusterMedia
import MusterWire
import Testing

private let frameTime = Duration.nanoseconds(33_333_333)

@Test func aFrameIsDeliveredAsItsLastPacketArrives() {
  var sender = ModelSender()
  var receiver = VideoReceiver()
  var now = Instant.milliseconds(1000)
  for _ in 0..<60 {
    let packets = sender.frame(bytes: 5000, at: now)
    #expect(packets.count == 5)
    for packet in packets {
      let outputs = receiver.receive(packet, at: now)
      #expect(outputs.frames.count == (packet.header.marker ? 1 : 0))
      #expect(outputs.frames.allSatisfy { $0.completedAt == now })
      now = now + .milliseconds(1)
    }
    now = now + frameTime
  }
  #expect(receiver.deadline == nil)
  #expect(receiver.packetsHeld == 0)
  #expect(receiver.statistics(at: now).size == VideoSize(width: 640, height: 360))
}

@Test func aLatePacketIsWaitedForAndAskedForOnce() {
  var sender = ModelSender()
  var receiver = VideoReceiver()
  receiver.setRoundTrip(.milliseconds(40))
  let start = Instant.milliseconds(1000)
  for packet in sender.frame(bytes: 3000, at: start) { _ = receiver.receive(packet, at: start) }
  let packets = sender.frame(bytes: 5000, at: start)
  var outputs: [VideoReceiver.Output] = []
  for index in packets.indices where index != 1 {
    outputs += receiver.receive(packets[index], at: start)
  }
  #expect(outputs.frames.isEmpty)
  #expect(outputs.nacks == [packets[1].header.sequence])
  let early = receiver.tick(at: start + .milliseconds(20))
  #expect(early.isEmpty)
  let last = receiver.receive(packets[1], at: start + .milliseconds(41))
  #expect(last.frames.count == 1)
  #expect(receiver.statistics(at: start + .milliseconds(41)).packetsRetransmitted == 1)
  #expect(receiver.statistics(at: start + .milliseconds(41)).packetsLost == 1)
  #expect(receiver.deadline == nil)
}

@Test func aMissingPacketIsAskedForTwiceInARoundTripAndAFifth() {
  var sender = ModelSender()
  var receiver = VideoReceiver()
  receiver.setRoundTrip(.milliseconds(50))
  let start = Instant.milliseconds(1000)
  let packets = sender.frame(bytes: 5000, at: start)
  for index in packets.indices where index != 1 {
    _ = receiver.receive(packets[index], at: start)
  }
  var asked: [Instant] = []
  while let deadline = receiver.deadline, deadline < start + .milliseconds(190) {
    if !receiver.tick(at: deadline).nacks.isEmpty { asked.append(deadline) }
  }
  // In steps of 7.5 ms of the clock.
  #expect(asked == [27.5, 57.5, 87.5, 117.5, 147.5, 177.5].map { start + .milliseconds($0) })
}

@Test func packetsThatGoMissingOneAfterTheOtherAreAskedForTogether() {
  var nacks = NackList()
  let roundTrip = Duration.milliseconds(400)
  var messages: [Int] = []
  var now = Instant.milliseconds(1003)
  // Every second packet of 100, one every 4 ms, and then nothing.
  for step: Int64 in 0..<300 {
    if step < 100, step % 2 == 1 { _ = nacks.notice(step..<step + 1, at: now) }
    let due = nacks.due(highest: step, roundTrip: roundTrip, at: now)
    if !due.sequences.isEmpty { messages.append(due.sequences.count) }
    now = now + .milliseconds(4)
  }
  // At first one each; then each packet every 240 ms, in steps of 60 ms.
  #expect(messages.count <= 50 + 1200 / 60 && messages.reduce(0, +) >= 50 * 4, "\(messages)")
}

@Test func aLostNonReferenceFrameIsSkipped() {
  var sender = ModelSender()
  var decoder = ModelDecoder()
  var receiver = VideoReceiver()
  receiver.setRoundTrip(.milliseconds(40))
  var now = Instant.milliseconds(1000)
  var ids: [UInt32] = []
  for number in 0..<12 {
    for packet in sender.frame(bytes: 900, at: now) where number != 1 && number != 7 {
      ids += receiver.receive(packet, at: now).frames.compactMap { decoder.decode($0.data) }
    }
    let next = now + frameTime
    while let deadline = receiver.deadline, deadline < next {
      ids += receiver.tick(at: deadline).frames.compactMap { decoder.decode($0.data) }
    }
    now = next
  }
  #expect(ids == [1, 3, 4, 5, 6, 7, 9, 10, 11, 12])
  #expect(receiver.statistics(at: now).framesLost == 2)
  #expect(receiver.statistics(at: now).keyframesRequested == 0)
}

@Test func aLostBaseFrameStopsEverythingUntilAKeyframe() {
  var sender = ModelSender()
  var decoder = ModelDecoder()
  var receiver = VideoReceiver()
  receiver.setRoundTrip(.milliseconds(40))
  var now = Instant.milliseconds(1000)
  var ids: [UInt32] = []
  var requests = 0
  for number in 0..<60 {
    for packet in sender.frame(bytes: 900, keyframe: number == 40, at: now) where number != 4 {
      ids += receiver.receive(packet, at: now).frames.compactMap { decoder.decode($0.data) }
    }
    let next = now + frameTime
    while let deadline = receiver.deadline, deadline < next {
      let outputs = receiver.tick(at: deadline)
      requests += outputs.keyframeRequests.count
      ids += outputs.frames.compactMap { decoder.decode($0.data) }
    }
    now = next
  }
  #expect(ids == Array(1...4) + Array(41...60))
  #expect((2...6).contains(requests))
  #expect(receiver.statistics(at: now).freezes == 1)
  #expect(receiver.statistics(at: now).framesLost == 36)
}

@Test func aLateJoinerAsksAtOnceAndRepeatsUntilAKeyframeComes() {
  var sender = ModelSender()
  var receiver = VideoReceiver()
  receiver.setRoundTrip(.milliseconds(40))
  var now = Instant.milliseconds(1000)
  for _ in 0..<30 { _ = sender.frame(bytes: 3000, at: now) }
  var requests: [Instant] = []
  var answered: Instant?
  for _ in 0..<60 where answered == nil {
    for packet in sender.frame(bytes: 900, at: now) {
      let outputs = receiver.receive(packet, at: now)
      if !outputs.keyframeRequests.isEmpty { requests.append(now) }
      if !outputs.frames.isEmpty { answered = now }
    }
    let next = now + frameTime
    while let deadline = receiver.deadline, deadline < next {
      if !receiver.tick(at: deadline).keyframeRequests.isEmpty { requests.append(deadline) }
    }
    // The first two requests are lost.
    if requests.count == 3 { sender.keyframeRequested(at: now) }
    now = next
  }
  #expect(requests.count == 3)
  #expect(requests.first == .milliseconds(1000))
  #expect(zip(requests, requests.dropFirst()).allSatisfy { $1 - $0 == .milliseconds(200) })
  #expect(answered.map { $0 <= .milliseconds(1500) } == true)
}

@Test func anUnansweredSenderIsAskedOnceASecondAndASilentOneNotAtAll() {
  var sender = ModelSender()
  var receiver = VideoReceiver()
  var now = Instant.milliseconds(1000)
  _ = sender.frame(bytes: 900, at: now)
  var requests = 0
  for _ in 0..<300 {
    for packet in sender.frame(bytes: 900, at: now) {
      requests += receiver.receive(packet, at: now).keyframeRequests.count
    }
    let next = now + frameTime
    while let deadline = receiver.deadline, deadline < next {
      requests += receiver.tick(at: deadline).keyframeRequests.count
    }
    now = next
  }
  #expect((10...13).contains(requests))
  var later = 0
  while let deadline = receiver.deadline, later < 1000 {
    later += 1
    _ = receiver.tick(at: deadline)
  }
  #expect(later <= 3)
  #expect(receiver.deadline == nil)
}

@Test func theFirstPacketOfTheFirstKeyframeIsAskedForThoughNobodySawItMissing() {
  var sender = ModelSender()
  var receiver = VideoReceiver()
  receiver.setRoundTrip(.milliseconds(40))
  let start = Instant.milliseconds(1000)
  let packets = sender.frame(bytes: 10_000, at: start)
  var outputs: [VideoReceiver.Output] = []
  for packet in packets.dropFirst() { outputs += receiver.receive(packet, at: start) }
  #expect(outputs.nacks.contains(packets[0].header.sequence))
  #expect(outputs.keyframeRequests.isEmpty)
  let frames = receiver.receive(packets[0], at: start + .milliseconds(41)).frames
  #expect(frames.map(\.isKeyframe) == [true])
  #expect(receiver.deadline == nil)
}

/// Through a narrow path a keyframe takes long; one whose packets stay away is requested again.
@Test(arguments: [nil, 8]) func aKeyframeThatStillArrivesIsNotRequestedAgain(end: Int?) {
  var sender = ModelSender()
  var receiver = VideoReceiver()
  receiver.setRoundTrip(.milliseconds(40))
  let start = Instant.milliseconds(1000)
  let packets = sender.frame(bytes: 20_000, keyframe: true, at: start)
  var (requests, frames) = (0, 0)
  for (index, packet) in packets.enumerated() {
    let now = start + .milliseconds(100) * index
    while let deadline = receiver.deadline, deadline < now {
      requests += receiver.tick(at: deadline).keyframeRequests.count
    }
    guard index < end ?? packets.count else { continue }
    frames += receiver.receive(packet, at: now).frames.count
  }
  #expect(frames == (end == nil ? 1 : 0) && (requests > 0) == (end != nil))
}

@Test func aSourcePauseIsNoFreezeButAStallIs() {
  var sender = ModelSender()
  var receiver = VideoReceiver()
  let start = Instant.milliseconds(1000)
  for packet in sender.frame(bytes: 900, at: start) { _ = receiver.receive(packet, at: start) }
  let later = start + .seconds(5)
  for packet in sender.frame(bytes: 900, at: later) { _ = receiver.receive(packet, at: later) }
  #expect(receiver.statistics(at: later).freezes == 0)
  let held = sender.frame(bytes: 900, at: later + frameTime)
  let shown = later + .milliseconds(400)
  for packet in held { _ = receiver.receive(packet, at: shown) }
  #expect(receiver.statistics(at: shown).freezes == 1)
  #expect(receiver.statistics(at: shown).totalFreezesDuration == .milliseconds(400))
}

@Test func anOpenIntervalIsAFreezeButAMuteIsNot() {
  var sender = ModelSender()
  var receiver = VideoReceiver()
  let start = Instant.milliseconds(1000)
  #expect(receiver.statistics(at: start + .seconds(9)).freezes == 0)
  for packet in sender.frame(bytes: 900, at: start) { _ = receiver.receive(packet, at: start) }
  #expect(receiver.statistics(at: start + .milliseconds(183)).freezes == 0)
  let frozen = receiver.statistics(at: start + .seconds(3))
  #expect(frozen.freezes == 1 && frozen.totalFreezesDuration == .seconds(3))
  receiver.pause()
  #expect(receiver.statistics(at: start + .seconds(4)).totalFreezesDuration == .zero)
}

/// At 5 frames per second a freeze is longer than three intervals; of stills nothing is expected.
@Test func theAnnouncedFrameRateSaysWhatAFreezeIs() {
  var sender = ModelSender()
  var receiver = VideoReceiver()
  var now = Instant.milliseconds(1000)
  for packet in sender.frame(bytes: 900, at: now) { _ = receiver.receive(packet, at: now) }
  receiver.expect(framesPerSecond: 5)
  #expect(receiver.statistics(at: now + .milliseconds(600)).freezes == 0)
  #expect(receiver.statistics(at: now + .milliseconds(601)).freezes == 1)
  receiver.expect(framesPerSecond: 0)
  now = now + .seconds(9)
  #expect(receiver.statistics(at: now).freezes == 0)
  receiver.expect(framesPerSecond: 30)
  #expect(receiver.statistics(at: now + .seconds(9)).freezes == 0)
  for packet in sender.frame(bytes: 900, at: now) { _ = receiver.receive(packet, at: now) }
  #expect(receiver.statistics(at: now + .milliseconds(184)).freezes == 1)
}

/// Sequence numbers without a gap show that nothing was lost, and the PictureID what is missing.
@Test(arguments: [0, 9]) func framesThatTheSenderLeftOutAreAFreezeButNotLost(count: Int) {
  var sender = ModelSender()
  var receiver = VideoReceiver()
  var now = Instant.milliseconds(1000)
  for packet in sender.frame(bytes: 900, at: now) { _ = receiver.receive(packet, at: now) }
  let other = sender.stream
  for _ in 0..<count {
    now = now + frameTime
    _ = sender.frame(bytes: 900, at: now)
  }
  sender.stream = other
  now = now + (count == 0 ? .milliseconds(400) : frameTime)
  for packet in sender.frame(bytes: 900, keyframe: true, at: now) {
    _ = receiver.receive(packet, at: now)
  }
  let statistics = receiver.statistics(at: now)
  #expect(statistics.frames == 2 && statistics.framesLost == 0)
  #expect(statistics.freezes == (count == 0 ? 0 : 1))
}

@Test func aSinkThatNeedsAKeyframeCostsTheOthersNothing() {
  var sender = ModelSender()
  var receiver = VideoReceiver()
  var now = Instant.milliseconds(1000)
  for packet in sender.frame(bytes: 900, at: now) { _ = receiver.receive(packet, at: now) }
  now = now + .milliseconds(10)
  let first = receiver.requestKeyframe(at: now)
  let again = receiver.requestKeyframe(at: now)
  #expect(first == [.requestKeyframe(ssrc: 1000)])
  #expect(again.isEmpty)
  now = now + .milliseconds(20)
  let delta = sender.frame(bytes: 900, at: now).flatMap { receiver.receive($0, at: now) }
  #expect(delta.frames.count == 1)
  now = now + frameTime
  let frames = sender.frame(bytes: 900, keyframe: true, at: now).flatMap {
    receiver.receive($0, at: now)
  }.frames
  #expect(frames.map(\.isKeyframe) == [true])
}

@Test func captureTimesComeFromTheSendersClock() {
  var sender = ModelSender()
  var receiver = VideoReceiver()
  let captured = Instant.milliseconds(777_000)
  receiver.receive(
    sender.stream.report(
      at: captured, timestamp: RTPTime.timestamp(of: captured, clockRate: 90_000)),
    at: .milliseconds(10))
  let later = captured + .milliseconds(250)
  let frames = sender.frame(bytes: 900, at: later).flatMap {
    receiver.receive($0, at: .milliseconds(300))
  }.frames
  #expect(frames.count == 1)
  let error = frames.first?.capturedAt.map { abs(($0 - later).wholeNanoseconds) }
  #expect(error.map { $0 < 50_000 } == true)
}

@Test func aSenderThatStartsAfreshIsFollowed() {
  var receiver = VideoReceiver()
  var now = Instant.milliseconds(1000)
  var first = ModelSender(firstSequence: 40_000)
  for _ in 0..<5 {
    for packet in first.frame(bytes: 900, at: now) { _ = receiver.receive(packet, at: now) }
    now = now + frameTime
  }
  var second = ModelSender(firstSequence: 30_000)
  var frames = 0
  for number in 0..<20 {
    let packets = second.frame(bytes: 900, keyframe: number % 5 == 0, at: now)
    for packet in packets { frames += receiver.receive(packet, at: now).frames.count }
    now = now + frameTime
  }
  #expect(frames >= 14)
}

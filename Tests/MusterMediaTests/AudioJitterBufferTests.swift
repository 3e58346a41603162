import MusterBase
import MusterMedia
import Testing

@Test func aCleanLANGetsAboutFortyMilliseconds() {
  var call = AudioSimulation(seed: 1)
  call.delay = .milliseconds(1)
  _ = call.run(for: .seconds(1))
  #expect(call.buffer.currentDelay <= .milliseconds(80))
  let outputs = call.run(for: .seconds(10))
  #expect(call.buffer.targetDelay == .milliseconds(30))
  #expect(call.buffer.currentDelay >= .milliseconds(20))
  #expect(call.buffer.currentDelay <= .milliseconds(55))
  #expect(outputs.silent + outputs.recovered + outputs.concealed == 0)
  #expect(call.played == Array(1...UInt32(call.played.count)))
  #expect(call.buffer.statistics.lost == 0)
  #expect(call.buffer.statistics.late == 0)
}

@Test func theDelayFollowsTheJitterUpAndDownAgain() {
  var call = AudioSimulation(seed: 2)
  call.jitter = .milliseconds(60)
  _ = call.run(for: .seconds(10))
  #expect(call.buffer.targetDelay >= .milliseconds(65))
  #expect(call.buffer.targetDelay <= .milliseconds(90))
  let shaken = call.run(for: .seconds(20))
  #expect(shaken.silent == 0)
  #expect(shaken.recovered + shaken.concealed <= 20)
  call.jitter = .zero
  _ = call.run(for: .seconds(120))
  #expect(call.buffer.targetDelay <= .milliseconds(40))
  #expect(call.buffer.currentDelay <= .milliseconds(70))
}

@Test(arguments: [Int64(200), -200]) func driftingClocksAreFollowed(perMillion: Int64) {
  var call = AudioSimulation(seed: 3)
  call.jitter = .milliseconds(5)
  call.driftPerMillion = perMillion
  _ = call.run(for: .seconds(10))
  for _ in 0..<20 {
    let outputs = call.run(for: .seconds(30))
    let error = call.buffer.currentDelay - call.buffer.targetDelay
    #expect(error <= .milliseconds(35))
    #expect(error >= .milliseconds(-25))
    #expect(call.buffer.framesHeld <= 6)
    #expect(outputs.silent == 0)
  }
  #expect(call.buffer.statistics.lost == 0)
  #expect(call.buffer.statistics.discarded == 0)
  let corrections =
    perMillion > 0 ? call.buffer.statistics.shortened : call.buffer.statistics.lengthened
  #expect((4...12).contains(corrections))
}

/// An outage counts in full, however long it is and whatever the buffer does meanwhile.
@Test(arguments: [400, 900, 1_100, 2_500, 5_500]) func whatWasNotPlayedIsLost(outage: Int) {
  var call = AudioSimulation(seed: 5)
  _ = call.run(for: .seconds(10))
  call.loss = 1
  _ = call.run(for: .milliseconds(outage))
  call.loss = 0
  _ = call.run(for: .seconds(10))
  let (expected, statistics) = (outage / 20, call.buffer.statistics)
  #expect(abs(Int(statistics.lost) - expected) <= 2)
  let share = 100 * Double(expected) / Double(1_000 + expected)
  #expect(abs(statistics.lostPercent - share) < 0.5)
}

/// A pause of the source, such as while it is muted, is no loss.
@Test func aPauseOfTheSourceIsNoLoss() {
  var buffer = AudioJitterBuffer()
  var now = Instant.zero
  for frame in 0..<200 {
    let pause = frame < 100 ? 0 : 200
    now = .zero + .milliseconds(20 * (frame + pause))
    buffer.insert(
      sequence: UInt16(frame), timestamp: UInt32(960 * (frame + pause)), frames: [[1]], level: 30,
      at: now)
    _ = buffer.next(at: now)
    guard frame == 99 else { continue }
    for silent in 1...200 { _ = buffer.next(at: now + .milliseconds(20 * silent)) }
  }
  #expect(buffer.statistics.lost == 0 && buffer.statistics.played > 190)
}

/// What arrives too late, or is dropped, was not played either, and counts once.
@Test func eachFrameIsEitherPlayedOrLost() {
  for seed in UInt64(0)..<6 {
    var call = AudioSimulation(seed: seed)
    var prng = PRNG(seed: seed)
    // Packets before the first that arrives are not known to be missing.
    _ = call.run(for: .seconds(1))
    for _ in 0..<30 {
      call.loss = [0, 0, 0.1, 1][prng.below(4)]
      call.jitter = .milliseconds([2, 40, 150][prng.below(3)])
      call.delay = .milliseconds([1, 30, 700][prng.below(3)])
      _ = call.run(for: .milliseconds(200 + prng.below(3_000)))
    }
    (call.loss, call.jitter, call.delay) = (0, .zero, .milliseconds(1))
    _ = call.run(for: .seconds(5))
    let statistics = call.buffer.statistics
    let counted = Int(statistics.played + statistics.lost) + call.buffer.framesHeld
    let sent = Int(call.sent)
    #expect(abs(counted - sent) <= 2, "seed \(seed): \(counted) of \(sent)")
    #expect(Set(call.played).count == call.played.count, "seed \(seed)")
  }
}

@Test func lossIsRecoveredOrConcealed() {
  for seed in UInt64(0)..<10 {
    var call = AudioSimulation(seed: seed)
    call.loss = 0.05
    call.jitter = .milliseconds(3)
    _ = call.run(for: .seconds(2))
    let before = call.buffer.statistics
    let outputs = call.run(for: .seconds(30))
    let lost = Int(call.buffer.statistics.lost - before.lost)
    #expect(outputs.silent == 0, "seed \(seed)")
    #expect((40...115).contains(lost), "seed \(seed)")
    #expect(outputs.recovered * 100 >= lost * 80, "seed \(seed)")
    #expect(abs(outputs.count - 1500) <= 5, "seed \(seed)")
    #expect(call.buffer.currentDelay <= .milliseconds(75), "seed \(seed)")
    #expect(call.buffer.statistics.late == 0, "seed \(seed)")
    #expect(zip(call.played, call.played.dropFirst()).allSatisfy { $0 < $1 }, "seed \(seed)")
  }
}

@Test func aPauseOfTheSourceFadesAndResumes() {
  for milliseconds in [60, 300, 900, 1500, 10_000] {
    var call = AudioSimulation(seed: 4)
    _ = call.run(for: .seconds(3))
    call.isSending = false
    let pause = call.run(for: .milliseconds(milliseconds))
    #expect(pause.concealed <= 5, "\(milliseconds)")
    let last = call.sent
    call.isSending = true
    _ = call.run(for: .milliseconds(300))
    let after = call.run(for: .seconds(3))
    #expect(after.silent + after.concealed + after.recovered <= 1, "\(milliseconds)")
    #expect(call.buffer.currentDelay <= .milliseconds(75), "\(milliseconds)")
    #expect(call.played.contains(last + 1), "\(milliseconds)")
    #expect(call.buffer.statistics.lost == 0, "\(milliseconds)")
  }
}

@Test func anEndedSourceLeavesSilence() {
  var call = AudioSimulation(seed: 5)
  _ = call.run(for: .seconds(2))
  call.isSending = false
  _ = call.run(for: .milliseconds(1500))
  let rest = call.run(for: .seconds(2))
  #expect(rest.silent == rest.count)
  #expect(call.buffer.currentDelay == .zero)
}

@Test func aClockThatJumpsIsFollowed() {
  for jump: UInt32 in [1_000_000, .max - 1_000_000, 0x8000_0000, 24_000, .max - 24_000] {
    var call = AudioSimulation(seed: 6)
    _ = call.run(for: .seconds(3))
    call.timestamp &+= jump
    _ = call.run(for: .milliseconds(400))
    let after = call.run(for: .seconds(3))
    #expect(after.silent + after.concealed + after.recovered <= 2, "\(jump)")
    #expect(call.buffer.currentDelay <= .milliseconds(80), "\(jump)")
    #expect(call.buffer.framesHeld <= 6, "\(jump)")
  }
}

@Test func aSequenceThatStartsAfreshIsFollowed() {
  for step: UInt16 in [100, 1000, 30_000, 40_000, 65_000] {
    var call = AudioSimulation(seed: 7)
    _ = call.run(for: .seconds(3))
    call.sequence &+= step
    call.timestamp = 12_345
    _ = call.run(for: .milliseconds(400))
    let after = call.run(for: .seconds(3))
    #expect(after.silent + after.concealed + after.recovered <= 2, "\(step)")
    #expect(call.buffer.framesHeld <= 6, "\(step)")
  }
}

@Test func aStallIsCaughtUpWith() {
  for milliseconds in [60, 150, 300, 800, 1500] {
    var call = AudioSimulation(seed: 8)
    _ = call.run(for: .seconds(30))
    call.heldUntil = call.now + .milliseconds(milliseconds)
    _ = call.run(for: .milliseconds(milliseconds) + .seconds(5))
    #expect(call.buffer.framesHeld <= 10, "\(milliseconds)")
    let error = call.buffer.currentDelay - call.buffer.targetDelay
    #expect(error <= .milliseconds(40), "\(milliseconds)")
    let after = call.run(for: .seconds(2))
    #expect(after.silent + after.recovered == 0, "\(milliseconds)")
  }
}

/// As after a queue has drained: the frames that wait too long are played faster, not dropped.
@Test func aTargetThatFallsDropsNothing() {
  var call = AudioSimulation(seed: 12)
  call.jitter = .milliseconds(380)
  _ = call.run(for: .seconds(8))
  #expect(call.buffer.targetDelay >= .milliseconds(300))
  call.jitter = .zero
  let discarded = call.buffer.statistics.discarded
  _ = call.run(for: .seconds(120))
  #expect(call.buffer.targetDelay <= .milliseconds(60))
  #expect(call.buffer.currentDelay <= .milliseconds(90))
  #expect(call.buffer.statistics.discarded == discarded)
}

@Test func reorderedAndDuplicatedPacketsPlayOnceInOrder() {
  var buffer = AudioJitterBuffer()
  let start = Instant.milliseconds(1000)
  for sequence: UInt16 in [65_534, 0, 65_535, 0, 1, 65_534] {
    buffer.insert(
      sequence: sequence, timestamp: UInt32(sequence &+ 2) * 960,
      frames: [[UInt8(truncatingIfNeeded: sequence)]], level: nil, at: start)
  }
  var heard: [UInt8] = []
  for step in 3..<8 {
    for case .decode(let payload, _) in buffer.next(at: start + .milliseconds(20 * step)) {
      heard += payload
    }
  }
  #expect(heard == [254, 255, 0, 1])
  #expect(buffer.statistics.late == 2)
  #expect(buffer.playingTimestamp == UInt32(2880))
}

@Test(arguments: UInt64(0)..<8) func randomPacketsNeverTrapTheBuffer(seed: UInt64) {
  var random = PRNG(seed: seed)
  var buffer = AudioJitterBuffer()
  var now = Instant.milliseconds(1000)
  var sequence = UInt16(truncatingIfNeeded: random.next())
  var timestamp = UInt32(truncatingIfNeeded: random.next())
  for _ in 0..<4000 {
    buffer.repairTime = random.chance(0.5) ? .milliseconds(random.below(200)) : nil
    sequence &+= UInt16([1, 1, 1, 2, 60, 200, 40_000, 65_530][random.below(8)])
    timestamp =
      random.chance(0.9) ? timestamp &+ 960 : UInt32(truncatingIfNeeded: random.next())
    buffer.insert(
      sequence: sequence, timestamp: timestamp,
      frames: (0..<random.below(4)).map { _ in random.bytes(random.below(3)) },
      level: UInt8(random.below(128)), at: now)
    #expect(buffer.framesHeld <= Limits.audioFrames)
    #expect(buffer.targetDelay <= .milliseconds(400))
    if random.chance(0.7) {
      let playout = buffer.next(at: now)
      #expect((1...2).contains(playout.count))
    }
    now = now + .milliseconds(random.chance(0.01) ? random.below(3000) : random.below(40))
  }
}

@Test func aBufferNobodyPlaysFromStaysBounded() {
  var buffer = AudioJitterBuffer()
  for number in 0..<1000 {
    buffer.insert(
      sequence: UInt16(number), timestamp: UInt32(number) * 960, frames: [[1]], level: nil,
      at: .milliseconds(20 * number))
  }
  #expect(buffer.framesHeld == Limits.audioFrames)
  var heard = 0
  for number in 1000..<1010 {
    heard += buffer.next(at: .milliseconds(20 * number)).decoded
  }
  #expect(heard > 0)
  #expect(buffer.currentDelay <= .milliseconds(150))
}

@Test func audioWaitsForTheVideoWithinLimits() {
  var call = AudioSimulation(seed: 50)
  _ = call.run(for: .seconds(10))
  for (least, target) in [(250, 250), (900, 400), (0, 30)] {
    call.buffer.leastDelay = .milliseconds(least)
    _ = call.run(for: .seconds(30))
    #expect(call.buffer.targetDelay == .milliseconds(target))
    let error = call.buffer.currentDelay - call.buffer.targetDelay
    #expect(max(error, .zero - error) <= .milliseconds(30), "\(least)")
  }
  #expect(call.buffer.statistics.lost == 0)
}

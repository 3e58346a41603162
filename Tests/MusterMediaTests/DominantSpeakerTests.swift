import Foundation
import MusterBase
import MusterMedia
import Testing

/// The levels in -dBov of recorded speech, by frame of 20 ms.
private let speech: [Double] = {
  let here = URL(filePath: #filePath)
  let file = here.appending(path: "../../Vectors/media/speech_levels.txt").standardized
  let text = (try? String(contentsOf: file, encoding: .utf8)) ?? ""
  return text.split { $0.isWhitespace }.compactMap { Double($0) }
}()

/// People who speak in turns, each with a microphone and noise of its own.
private struct Conversation {
  /// What somebody says: frames of the recording from `offset` on.
  struct Utterance {
    var speaker: Int
    var start: Int
    var count: Int
    var offset: Int

    func isOver(at frame: Int) -> Bool { frame >= start + count }
    func level(at frame: Int) -> Double? {
      frame >= start && !isOver(at: frame) ? speech[offset + frame - start] : nil
    }
  }

  var people: Int
  var turns: [Utterance] = []
  /// Words of agreement while another speaks.
  var words: [Utterance] = []
  private var gains: [Double]
  private var noises: [Double]
  private var prng: PRNG

  init(people: Int, seed: UInt64) {
    self.people = people
    var draws = PRNG(seed: seed)
    gains = (0..<people).map { _ in Double(draws.below(12)) }
    noises = (0..<people).map { _ in Double(48 + draws.below(27)) }
    prng = draws
  }

  /// Adds turns of 2 to 6 s, with pauses and overlaps between them.
  mutating func speak(turns count: Int) {
    var start = 50
    for _ in 0..<count {
      let others = (0..<people).filter { $0 != turns.last?.speaker }
      let length = 100 + prng.below(200)
      let turn = utterance(of: others[prng.below(others.count)], at: start, count: length)
      turns.append(turn)
      if length > 150, prng.below(5) < 2 {
        let listeners = (0..<people).filter { $0 != turn.speaker }
        let listener = listeners[prng.below(listeners.count)]
        words.append(utterance(of: listener, at: start + 50 + prng.below(50), count: 12))
      }
      start += length - 15 + prng.below(55)
    }
  }

  private mutating func utterance(of speaker: Int, at start: Int, count: Int) -> Utterance {
    Utterance(
      speaker: speaker, start: start, count: count, offset: prng.below(speech.count - count))
  }

  /// The level of a frame of somebody's microphone: speech and noise together.
  mutating func level(of speaker: Int, at frame: Int) -> UInt8 {
    let spoken = (turns + words).filter { $0.speaker == speaker }.compactMap { $0.level(at: frame) }
    let noise = noises[speaker] + Double(prng.below(30)) / 10
    let all = spoken.map { $0 + gains[speaker] } + [noise]
    let power = all.reduce(0) { $0 + exp(-$1 / 10 * log(10)) }
    return UInt8(min(max(-10 * log(power) / log(10), 0), 127).rounded())
  }

  /// The changes of the dominant speaker with their frames.
  mutating func changes(until end: Int) -> [(frame: Int, speaker: Int?)] {
    var engine = DominantSpeaker<Int>()
    var changes: [(Int, Int?)] = []
    for frame in 0..<end {
      let now = Instant.zero + .milliseconds(20 * frame)
      for speaker in 0..<people {
        let hasChanged = engine.add(
          level: level(of: speaker, at: frame), timestamp: UInt32(960 * frame), of: speaker,
          at: now)
        if hasChanged { changes.append((frame, engine.current)) }
      }
    }
    return changes
  }
}

private let seeds: [UInt64] = Array(1...12)

@Test(arguments: seeds) func speakersAreFoundWithinASecond(seed: UInt64) throws {
  var conversation = Conversation(people: 5, seed: seed)
  conversation.speak(turns: 40)
  let turns = conversation.turns
  let end = try #require(turns.last).start + 400
  let changes = conversation.changes(until: end)
  let found = turns.filter { turn in
    let onset = turn.start + (0..<turn.count).first { speech[turn.offset + $0] < 42 }!
    let standing = changes.last { $0.frame <= onset }?.speaker
    return standing == turn.speaker
      || changes.contains { onset...onset + 50 ~= $0.frame && $0.speaker == turn.speaker }
  }
  #expect(found.count >= 37, "seed \(seed)")
  let needless = changes.filter { change in
    !turns.contains { turn in
      turn.speaker == change.speaker && turn.start...turn.start + turn.count + 50 ~= change.frame
    }
  }
  #expect(needless.count <= 2 && changes.count <= turns.count + 2, "seed \(seed)")
}

/// The dominant speaker after frames of two people with these levels.
private func dominant(after levels: [(ada: UInt8?, bea: UInt8?)]) -> String? {
  var engine = DominantSpeaker<String>()
  for (frame, level) in levels.enumerated() {
    let now = Instant.zero + .milliseconds(20 * frame)
    for case (let name, let level?) in [("Ada", level.ada), ("Bea", level.bea)] {
      _ = engine.add(level: level, timestamp: UInt32(960 * frame), of: name, at: now)
    }
  }
  return engine.current
}

/// Recorded speech of somebody and the silence of another, or the other way round.
private func turn(of speaker: String, frames: Int) -> [(ada: UInt8?, bea: UInt8?)] {
  speech.prefix(frames).map { level in
    speaker == "Ada" ? (UInt8(level), 70) : (70, UInt8(level))
  }
}

@Test func whatIsNotSpeechMakesNobodyDominant() {
  let second = repeatElement((ada: UInt8(70), bea: UInt8(70)), count: 50)
  #expect(dominant(after: Array(second)) == nil)
  // A fan, a tone, and a microphone that claims to be as loud as can be.
  for level: UInt8 in [45, 20, 0] {
    #expect(dominant(after: Array(repeating: (level, 70), count: 500)) == nil, "\(level)")
  }
  #expect(dominant(after: turn(of: "Ada", frames: 200)) == "Ada")
}

@Test func neitherCoughsNorSilenceTakeOver() {
  let ada = turn(of: "Ada", frames: 200)
  let cough = Array(repeating: (ada: UInt8?(70), bea: UInt8?(10)), count: 4)
  let silence = Array(repeating: (ada: UInt8?(70), bea: UInt8?(70)), count: 200)
  #expect(dominant(after: ada + cough + silence) == "Ada")
  // A muted participant sends no packets.
  #expect(dominant(after: ada + Array(repeating: (nil, 70), count: 200)) == "Ada")
  let bea = turn(of: "Bea", frames: 50)
  #expect(dominant(after: ada + bea) == "Bea")
  #expect(dominant(after: ada + bea.map { (nil, $0.bea) }) == "Bea")
}

/// A cough, or a word of agreement, while the speaker pauses.
@Test(arguments: [0.5, 1, 2, 4]) func aCoughInAPauseTakesNoStage(pause: Double) {
  let ada = turn(of: "Ada", frames: 200)
  let rest = Array(repeating: (ada: UInt8?(70), bea: UInt8?(70)), count: 200)
  for length in [5, 13, 16] {
    for offset in 0..<5 {
      let before = rest.prefix(Int(pause * 50) + offset)
      let cough = Array(repeating: (ada: UInt8?(70), bea: UInt8?(10)), count: length)
      #expect(dominant(after: ada + before + cough + rest) == "Ada", "\(length) frames")
    }
  }
  let before = rest.prefix(Int(pause * 50))
  #expect(dominant(after: ada + before + turn(of: "Bea", frames: 60)) == "Bea")
}

@Test func longPacketsStandForTheirFrames() {
  /// The frame with which Bea follows Ada, when packets have this many frames.
  func change(packet: Int) -> Int? {
    var engine = DominantSpeaker<String>()
    let turns = turn(of: "Ada", frames: 300) + turn(of: "Bea", frames: 300)
    for (frame, levels) in turns.enumerated() where frame % packet == 0 {
      let now = Instant.zero + .milliseconds(20 * frame)
      for case (let name, let level?) in [("Ada", levels.ada), ("Bea", levels.bea)] {
        let hasChanged = engine.add(
          level: level, timestamp: UInt32(960 * frame), of: name, at: now)
        if hasChanged, engine.current == "Bea" { return frame }
      }
    }
    return nil
  }
  guard let short = change(packet: 1), let long = change(packet: 3) else {
    Issue.record("Bea never follows")
    return
  }
  #expect(abs(long - short) <= 10, "\(short) \(long)")
}

@Test func retransmissionsCountOnce() {
  /// The frames in which the dominant speaker changes, if some packets come two frames late.
  func changes(areSomeLate: Bool) -> [Int] {
    var engine = DominantSpeaker<String>()
    return (turn(of: "Ada", frames: 300) + turn(of: "Bea", frames: 300)).indices.filter { frame in
      let isLate = areSomeLate && frame % 5 == 2
      let arrived = isLate ? [] : areSomeLate && frame % 5 == 4 ? [frame, frame - 2] : [frame]
      return arrived.contains { sent in
        let level = UInt8(speech[sent % 300])
        let now = Instant.zero + .milliseconds(20 * frame)
        return [("Ada", sent < 300 ? level : 70), ("Bea", sent < 300 ? 70 : level)].contains {
          engine.add(level: $0.1, timestamp: UInt32(960 * sent), of: $0.0, at: now)
        }
      }
    }
  }
  let (late, inTime) = (changes(areSomeLate: true), changes(areSomeLate: false))
  #expect(late.count == 2 && inTime.count == 2)
  for (one, other) in zip(late, inTime) { #expect(abs(one - other) <= 5, "\(late) \(inTime)") }
}

@Test func aSpeakerRemainsTheDominantOneUntilAnotherSpeaksOrItGoes() {
  var engine = DominantSpeaker<String>()
  var frame = 0
  func speak(_ name: String) {
    for level in speech.prefix(150) {
      let now = Instant.zero + .milliseconds(20 * frame)
      for other in ["Ada", "Bea", "Cem"] {
        _ = engine.add(
          level: other == name ? UInt8(level) : 70, timestamp: UInt32(960 * frame), of: other,
          at: now)
      }
      frame += 1
    }
  }
  speak("Ada")
  speak("Bea")
  speak("Cem")
  #expect(engine.current == "Cem")
  speak("Ada")
  #expect(engine.current == "Ada")
  let removed = [engine.remove("Cem"), engine.remove("Ada")]
  #expect(removed == [false, true] && engine.current == nil)
  speak("Bea")
  #expect(engine.current == "Bea")
}

@Test func hostileLevelsAndTimestampsDoNoHarm() {
  var prng = PRNG(seed: 3)
  var engine = DominantSpeaker<Int>()
  var now = Instant.zero
  for _ in 0..<20_000 {
    now = now + .microseconds(prng.below(40_000))
    let (level, timestamp) = (UInt8(prng.below(256)), UInt32(truncatingIfNeeded: prng.next()))
    _ = engine.add(level: level, timestamp: timestamp, of: prng.below(5), at: now)
    if prng.below(100) == 0 { _ = engine.remove(prng.below(5)) }
  }
  #expect(engine.current.map((0..<5).contains) ?? true)
}

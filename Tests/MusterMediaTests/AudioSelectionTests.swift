import MusterMedia
import Testing

/// The members selected after each frame of these levels, in ascending order.
private func selections(_ frames: [[UInt8?]]) -> [[Int]] {
  var selection = AudioSelection<Int>()
  return frames.map { levels in
    let chosen = selection.update(levels.enumerated().map { ($0.offset, $0.element) })
    return chosen.indices.filter { chosen[$0] }
  }
}

@Test func theLoudestThreeAreSelected() {
  let cases: [(levels: [UInt8?], selected: [Int])] = [
    ([], []), ([nil], [0]), ([127, nil, 60], [0, 1, 2]), ([70, 20, 60, 30, 50], [1, 3, 4]),
    ([nil, 127, 30, 30, 30, 30], [2, 3, 4]), ([255, 0, 127, 1, nil, 2], [1, 3, 5]),
  ]
  for (levels, selected) in cases { #expect(selections([levels]) == [selected], "\(levels)") }
}

@Test func whoeverBeginsToSpeakIsSelectedAtOnceAndStaysBetweenWords() {
  let quiet: [UInt8?] = [60, 58, 59, 61, 75]
  var speech = quiet
  speech[4] = 25
  let chosen = selections(
    Array(repeating: quiet, count: 50) + [speech] + Array(repeating: quiet, count: 70)
      + Array(repeating: [59, 56, 56, 56, 75], count: 50))
  #expect(chosen[49] == [0, 1, 2])
  // Speech of -25 dBov counts more than what is 33 dB quieter for more than 1 s.
  #expect(chosen[50...115].allSatisfy { $0.contains(4) })
  #expect(chosen.last == [1, 2, 3])
}

@Test func equallyLoudMembersDoNotAlternate() {
  let frames = (0..<200).map { frame in (0..<6).map { UInt8?(UInt8(30 + (frame + $0) % 3)) } }
  let chosen = selections(frames)
  #expect(chosen.allSatisfy { $0 == chosen[0] && $0.count == 3 })
}

@Test func thoseWhoHaveGoneMakeRoom() {
  var selection = AudioSelection<Int>()
  _ = selection.update([(1, 20), (2, 21), (3, 22), (4, 60)])
  #expect(selection.update([(2, 21), (3, 22), (4, 60)]) == [true, true, true])
}

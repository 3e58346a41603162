import MusterBase
import MusterCrypto
import MusterMesh
import MusterWire
import Testing

/// Who is in the channel, told once each.
struct RosterTests {
  private let t = seconds(10)

  @Test func joinUpdateAndLeaveAreToldOnce() {
    var room = Room(2)
    room.linkAll()
    room.run(for: .seconds(20))
    #expect(room.events[0] == [.memberJoined(room.states[1].ownMember)])
    #expect(room.events[1] == [.memberJoined(room.states[0].ownMember)])
    #expect(room.states[0].members == [room.states[1].ownMember])

    room.perform(1) { $0.setFlags([.audio, .audioMuted], at: $1) }
    room.run(for: .seconds(20))
    let muted = room.states[1].ownMember
    #expect(muted.flags == [.audio, .audioMuted])
    #expect(room.events[0].dropFirst() == [.memberUpdated(muted)])

    room.perform(1) { $0.leave(at: $1) }
    room.run(for: .seconds(20))
    #expect(room.events[0].dropFirst(2) == [.memberLeft(muted, .left)])
    #expect(room.states[0].members.isEmpty)
    #expect(room.events[1].count == 1)
  }

  @Test func aCleanLeaveShowsWithinASecond() {
    var room = Room(3)
    room.linkAll()
    room.run(for: .seconds(1))
    room.perform(2) { $0.leave(at: $1) }
    room.run(for: .milliseconds(900))
    #expect(room.states[0].members.count == 1)
    #expect(room.states[1].members.count == 1)
    #expect(room.states[2].isSettled)
    #expect(room.states[2].deadline == nil)
  }

  @Test func aHelloIsResentUntilAcknowledgedThenRefreshed() throws {
    var a = testChannel(1)
    let peer = testIdentity(2).id
    let first = a.linkUp(peer, at: t).hellos
    #expect(first.count == 1)
    var times: [Double] = []
    while times.count < 5, let deadline = a.deadline {
      #expect(a.tick(at: deadline).hellos == first)
      times.append((deadline - t).inSeconds)
    }
    #expect(times == [0.25, 0.75, 1.75, 2.75, 3.75])

    let hello = try SignedHello.verified(first[0], in: testKey.channelID)
    let now = seconds(14)
    let silent = a.receiveAcknowledgement(
      bootID: hello.bootID, sequence: hello.sequence, from: peer, at: now)
    #expect(silent.isEmpty && a.isSettled)
    #expect(a.deadline == seconds(19))
    #expect(a.tick(at: seconds(19)).hellos == first)
    #expect(a.deadline == seconds(24))
  }

  @Test func acknowledgementsOfOtherHellosChangeNothing() {
    var a = testChannel(1)
    let peer = testIdentity(2).id
    _ = a.linkUp(peer, at: t)
    let wrong: [(UInt64, UInt64)] = [(2, 0), (1, .max - 1), (1, .max)]
    for (bootID, sequence) in wrong {
      _ = a.receiveAcknowledgement(bootID: bootID, sequence: sequence, from: peer, at: t)
    }
    _ = a.receiveAcknowledgement(bootID: 1, sequence: 0, from: testIdentity(3).id, at: t)
    #expect(!a.isSettled)
    #expect(a.counters.strangeAcknowledgement == 4)

    // Acknowledges the hello before the change, not the one after it.
    _ = a.setFlags(.audioMuted, at: t)
    _ = a.receiveAcknowledgement(bootID: 1, sequence: 0, from: peer, at: t)
    #expect(!a.isSettled)
  }

  @Test func lostHellosArriveInTheEnd() {
    var room = Room(2)
    room.loss = 1
    room.linkAll()
    room.run(for: .seconds(5))
    #expect(room.events[0].isEmpty)
    room.loss = 0
    room.run(for: .seconds(1.1))
    #expect(room.states[0].members.count == 1 && room.states[1].members.count == 1)
    #expect(room.states[0].isSettled && room.states[1].isSettled)
  }

  @Test func anOldHelloIsAcknowledgedAndDropped() {
    var a = testChannel(1)
    let peer = testIdentity(2).id
    _ = a.linkUp(peer, at: t)
    _ = a.receiveHello(signedHello(2, sequence: 7, flags: .speaking), from: peer, at: t)
    for sequence in [7, 6, 0] as [UInt64] {
      let outputs = a.receiveHello(signedHello(2, sequence: sequence), from: peer, at: t)
      #expect(outputs == [.send(.helloReceived(bootID: 1, sequence: sequence), to: peer)])
    }
    #expect(a.members.first?.flags == .speaking)
    #expect(a.counters.repeated == 3)
  }

  @Test func aNewBootReplacesTheOldOneForGood() throws {
    var a = testChannel(1)
    let peer = testIdentity(2).id
    _ = a.linkUp(peer, at: t)
    _ = a.receiveHello(signedHello(2, bootID: 5, sequence: 9, name: "old"), from: peer, at: t)
    let old = try #require(a.members.first)
    let outputs = a.receiveHello(
      signedHello(2, bootID: 3, sequence: 1, name: "new"), from: peer, at: t)
    let new = try #require(a.members.first)
    #expect(old.bootID == 5 && new.bootID == 3 && new.name == "new")
    #expect(outputs.events == [.memberLeft(old, .replaced), .memberJoined(new)])

    let late = a.receiveHello(signedHello(2, bootID: 5, sequence: 10), from: peer, at: t)
    #expect(late.isEmpty)
    #expect(a.members == [new])
    #expect(a.counters.formerBoot == 1)
  }

  @Test func whoComesBackWithinOneBootIsToldWhoIsHere() throws {
    var a = testChannel(1)
    let peer = testIdentity(2).id
    let own = try SignedHello.verified(
      try #require(a.linkUp(peer, at: t).hellos.first), in: testKey.channelID)
    _ = a.receiveAcknowledgement(bootID: 1, sequence: own.sequence, from: peer, at: t)
    _ = a.receiveHello(signedHello(2, sequence: 1), from: peer, at: t)
    _ = a.receiveAcknowledgement(bootID: 1, sequence: own.sequence, from: peer, at: t)
    _ = a.receiveHello(signedHello(2, sequence: 2, flags: .left), from: peer, at: t)
    #expect(a.members.isEmpty && a.isSettled)
    let back = a.receiveHello(signedHello(2, sequence: 3), from: peer, at: t)
    #expect(back.hellos.count == 1)
    #expect(back.events.count == 1)
    #expect(a.members.count == 1)
  }

  @Test func aNodeThatRejoinsGoesOnAboveWhatItSaidBefore() throws {
    let peer = testIdentity(2).id
    var sequences: [UInt64] = []
    for now in [seconds(10), seconds(11)] {
      var a = testChannel(1)
      _ = a.linkUp(peer, at: now)
      let hello = try #require(a.setFlags(.audioMuted, at: now).hellos.first)
      sequences.append(try SignedHello.verified(hello, in: testKey.channelID).sequence)
    }
    #expect(sequences[0] < sequences[1])
  }

  @Test func aCrashIsToldByTheLink() {
    var room = Room(2)
    room.linkAll()
    room.run(for: .seconds(1))
    let member = room.states[1].ownMember
    room.unlink(0, 1)
    #expect(room.events[0].last == .memberLeft(member, .crashed))
    room.link(0, 1)
    room.run(for: .seconds(1))
    #expect(room.events[0].last == .memberJoined(member))
    #expect(room.events[0].count == 3)
  }

  @Test func forgedAndForeignHellosAreRefused() {
    var a = testChannel(1)
    let (peer, other) = (testIdentity(2).id, testIdentity(3).id)
    _ = a.linkUp(peer, at: t)
    var altered = signedHello(2, sequence: 1)
    altered[altered.count - 1] ^= 1
    let refused: [([UInt8], NodeID)] = [
      (altered, peer),
      (signedHello(2, sequence: 1, in: otherKey.channelID), peer),
      (signedHello(3, sequence: 1), peer),
      (signedHello(3, sequence: 1), other),
      ([], peer),
      ([UInt8](repeating: 0, count: 80), peer),
      ([UInt8](repeating: 0, count: 2000), peer),
    ]
    for (signed, from) in refused {
      #expect(a.receiveHello(signed, from: from, at: t).isEmpty)
    }
    #expect(a.members.isEmpty)
    #expect(a.counters.forged == 2)
    #expect(a.counters.foreign == 1)
    #expect(a.counters.unlinked == 1)
    #expect(a.counters.malformed == 3)
  }

  @Test(arguments: [1, 2] as [UInt64])
  func alteredAndTruncatedHellosChangeNothing(seed: UInt64) {
    var prng = PRNG(seed: seed)
    var a = testChannel(1)
    let peer = testIdentity(2).id
    _ = a.linkUp(peer, at: t)
    for step in 0..<500 {
      var signed = signedHello(2, sequence: UInt64(step) + 1)
      if prng.chance(0.5) {
        signed[prng.below(signed.count)] ^= UInt8(1 << prng.below(8))
      } else {
        signed.removeLast(1 + prng.below(signed.count))
      }
      let now = seconds(10 + Double(step))
      #expect(a.receiveHello(signed, from: peer, at: now).isEmpty, "seed \(seed)")
    }
    #expect(a.members.isEmpty)
  }

  @Test(arguments: ["a\u{202E}b\n", "\u{1B}[31mred", "  spaced  ", "plain", "žluťoučký", "\u{7F}"])
  func namesAreSanitised(name: String) throws {
    var a = testChannel(1)
    let peer = testIdentity(2).id
    _ = a.linkUp(peer, at: t)
    _ = a.receiveHello(signedHello(2, sequence: 1, name: name), from: peer, at: t)
    let shown = try #require(a.members.first?.name)
    #expect(shown == DisplayText.sanitized(name, limit: Limits.nameBytes))
    #expect(shown.unicodeScalars.allSatisfy { $0.value >= 0x20 && $0.value != 0x202E })
    #expect(testChannel(1, name: name).ownMember.name == shown)
  }

  @Test func aNamelessMemberIsShownByItsId() {
    var a = testChannel(1)
    let peer = testIdentity(2).id
    _ = a.linkUp(peer, at: t)
    _ = a.receiveHello(signedHello(2, sequence: 1, name: "   "), from: peer, at: t)
    #expect(a.members.first?.name == peer.short)
    let long = testChannel(1, name: String(repeating: "ä", count: 100)).ownMember.name
    #expect(long.utf8.count <= Limits.nameBytes)
  }

  @Test func contradictionsInAHelloAreLeftOut() {
    var a = testChannel(1)
    let peer = testIdentity(2).id
    _ = a.linkUp(peer, at: t)
    let layers = [VideoLayer(size: VideoSize(width: 0, height: 360), framesPerSecond: 30)]
    _ = a.receiveHello(
      signedHello(2, sequence: 1, flags: [.inCall, .audio], layers: layers), from: peer, at: t)
    #expect(a.members.first?.flags == .audio)
    #expect(a.members.first?.layers == [])
  }

  @Test func peersAndHellosAreBounded() {
    var a = testChannel(1)
    for number in 0..<100 { _ = a.linkUp(testIdentity(UInt64(number) + 2).id, at: t) }
    #expect(a.counters.peersRefused == UInt64(100 - Limits.peersPerChannel))

    let peer = testIdentity(2).id
    for sequence in 1...100 {
      _ = a.receiveHello(signedHello(2, sequence: UInt64(sequence)), from: peer, at: t)
    }
    #expect(a.counters.overBudget == 60)
  }

  @Test func nothingIsSentForNoChange() {
    var a = testChannel(1)
    _ = a.linkUp(testIdentity(2).id, at: t)
    #expect(a.setFlags([.audio, .inCall, .left], at: t).hellos.count == 1)
    #expect(a.ownMember.flags == .audio && !a.hasLeft)
    #expect(a.setFlags(.audio, at: t).isEmpty)
    let layers = [VideoLayer(size: VideoSize(width: 320, height: 180), framesPerSecond: 30)]
    #expect(a.setLayers(layers, at: t).hellos.count == 1)
    #expect(a.setLayers(layers, at: t).isEmpty)
    #expect(a.leaveCall(at: t).isEmpty)
  }

  @Test func afterTheLastWordNothingIsSaid() {
    var a = testChannel(1)
    let peer = testIdentity(2).id
    _ = a.linkUp(peer, at: t)
    #expect(a.leave(at: t).hellos.count == 1)
    #expect(a.leave(at: t).isEmpty)
    #expect(a.setFlags(.audioMuted, at: t).isEmpty)
    let id = CallID(high: 0, low: 1)
    #expect(a.startOrJoinCall(proposing: id, startedAt: 1, at: t).isEmpty)
    #expect(a.receiveHello(signedHello(2, sequence: 1), from: peer, at: t).isEmpty)
    #expect(a.linkUp(testIdentity(3).id, at: t).isEmpty)
  }
}
